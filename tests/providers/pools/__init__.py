"""Providers of node pools."""
