"""Fitted coefficients and measured tables of our own making, each with its source and fit date."""
