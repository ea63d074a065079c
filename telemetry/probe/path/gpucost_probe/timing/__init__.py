"""How the time between two steps was spent: told by hooks, seen on stacks, summed."""
