"""The labelled set of the diagnosis, and how well the rules find its labels."""
