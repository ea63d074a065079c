"""Fixtures of tests that make pools."""

from tests.gpucost.launching import aws, login, ocean

__all__ = ["aws", "login", "ocean"]
