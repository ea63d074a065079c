"""Tests of machines that run, and of their end."""
