"""What can be rented where, at which price, on which day."""
