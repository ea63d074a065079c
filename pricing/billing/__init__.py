"""How a use becomes a bill: each provider's rules, and lines that add up."""
