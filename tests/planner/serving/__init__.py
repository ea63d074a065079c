"""Tests of servers of language models."""
