"""Tests; each docstring is the guarantee that the test holds."""
