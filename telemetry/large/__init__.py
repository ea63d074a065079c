"""Measurements too large for objects in Python: DuckDB reads them into columns of numbers.

A log of GPU readings becomes columns (`smi_log`), those the checked readings of a job
(`recording`), and those a profile (`profile`).
"""
