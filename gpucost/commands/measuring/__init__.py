"""Commands that measure a job, or read what measured it."""
