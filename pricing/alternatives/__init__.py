"""What else a GPU-hour can cost: a commitment, or a machine of one's own."""
