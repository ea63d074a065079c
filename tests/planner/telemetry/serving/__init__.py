"""Tests of planner.telemetry.serving."""
