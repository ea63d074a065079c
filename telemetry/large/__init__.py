"""Measurements too large for objects in Python: read in blocks, kept as columns of numbers.

A log of GPU readings becomes columns (`smi_log`), those become for each GPU and slot how many
seconds each value stood (`histogram`), and that a profile (`profile`).
"""
