"""What a job costs today, what it could run on instead, and which change is recommended."""
