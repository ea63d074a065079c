"""Tests of planner.telemetry."""
