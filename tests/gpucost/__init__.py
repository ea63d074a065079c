"""Tests of the front door: commands, settings, the public API."""
