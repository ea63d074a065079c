"""How jobs fit on the fewest GPUs, as rows of numbers: by rules, by linear programs; a bound."""
