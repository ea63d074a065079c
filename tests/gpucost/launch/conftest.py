"""Fixtures of tests that launch."""

from tests.gpucost.launching import aws, login, ocean

__all__ = ["aws", "login", "ocean"]
