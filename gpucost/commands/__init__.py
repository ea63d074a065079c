"""One file per command: parse, build a value, call one function, print. No arithmetic here."""
