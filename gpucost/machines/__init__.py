"""Machines that run: found in the journal, reached, extended, ended, reaped."""
