"""Tests of signals, findings and remedies."""
