"""Tests of `gpucost profile`."""
