"""Tests of measuring a running job."""
