"""Fits what predictions ship with, and scores them on published measurements left out of the fit.

Not part of the wheel. Reads the data sets from a folder that is named (they are not ours to ship).
"""
