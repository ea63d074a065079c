"""Tests of options and their ranking."""
