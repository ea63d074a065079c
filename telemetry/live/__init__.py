"""What a server of metrics answered, as the profiles of its jobs."""
