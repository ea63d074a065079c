"""What inference servers report of themselves at /metrics: its names, and what it adds up to."""
