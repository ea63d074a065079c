"""Servers of language models: how long their steps take, and how many copies keep a target."""
