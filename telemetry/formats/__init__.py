"""One module for each format that is read, in folders by family, and the tables that tell them.

A family's `rows.py` says how a source of each of its formats begins; `sniff` tries them all.
"""
