"""The values of plan.json: what is written, read back, looked up and shown."""
