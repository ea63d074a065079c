"""Tests of two runs held against each other, and of experiments within one."""
