"""Tests of the life of a run and of its journal."""
