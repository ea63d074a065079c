"""Tests of telemetry.serving."""
