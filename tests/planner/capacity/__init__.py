"""Tests of pools of other sizes."""
