"""From an option of a plan to a launch: what, at which price, with whose consent."""
