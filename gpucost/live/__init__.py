"""Servers of metrics as SOURCE: who asks, what is asked, and where answers are stored."""
