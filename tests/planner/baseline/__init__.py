"""Tests of what a job costs today and what its user asks."""
