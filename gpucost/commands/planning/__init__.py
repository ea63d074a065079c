"""Commands that decide: plans, what they say, and what to make of them."""
