"""Tests of prices and quotes."""
