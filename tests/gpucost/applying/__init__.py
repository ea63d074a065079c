"""Tests of `gpucost run`: a recipe is read, applied to a command, and said."""
