"""Tests of predictions and their laws."""
