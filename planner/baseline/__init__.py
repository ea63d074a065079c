"""What a job costs today, and what its user asks of a plan."""
