"""Machines that the user already has; and the SSH connections to machines of any provider."""
