"""The formats that are read: formats.toml lists them and how each is recognized.

A file reads the formats of a family; `sniff` finds the format of a source. What the columns of a
format hold stands in `readers/columns.toml`.
"""
