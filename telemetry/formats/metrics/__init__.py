"""Metrics with labels, as exporters and monitoring systems give them."""
