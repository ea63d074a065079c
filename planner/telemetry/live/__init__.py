"""Measurements that a server keeps: asked for in parts, kept until all have come, then read."""
