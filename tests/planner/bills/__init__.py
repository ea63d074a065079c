"""Tests of the readers of bills."""
