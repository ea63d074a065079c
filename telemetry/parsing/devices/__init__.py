"""Rows of one device at one instant, and the JSON in which tools print them."""
