"""New prices from outside: what every reader shares, what is kept out, what is kept."""
