"""Fits what predictions ship with, and scores them on published measurements left out of the fit.

Reads the data sets from a folder outside the package (they are not ours to ship); numpy and pandas
are imported here and nowhere on the way of a plan.
"""
