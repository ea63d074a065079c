"""Refreshed prices: asked for, checked, kept beside the bundled ones."""
