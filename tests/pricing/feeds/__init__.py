"""Tests of price feeds and of what keeps planted errors out."""
