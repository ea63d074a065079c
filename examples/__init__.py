"""Profiles written from published measurements; a package only so that a wheel carries them."""
