"""Servers of metrics as SOURCE: who asks, what is asked, and what is kept until all has come."""
