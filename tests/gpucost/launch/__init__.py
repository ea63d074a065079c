"""Tests of what leads to a launch."""
