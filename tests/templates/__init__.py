"""Tests of what is said: reports and their wording."""
