"""Machines that the user already has, over SSH."""
