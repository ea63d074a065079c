"""Which option is recommended: its benefit, what it changes, and what to do first."""
