"""Commands that launch machines, look at them and end them."""
