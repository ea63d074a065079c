"""Tests of plans on the command line, and of what is made of them."""
