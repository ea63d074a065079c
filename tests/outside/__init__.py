"""Tests against data outside of the repository: they skip, and say so, where it is absent."""
