"""Tests of planner.profile and of what builds profiles."""
