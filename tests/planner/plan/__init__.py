"""Tests of the values of plan.json."""
