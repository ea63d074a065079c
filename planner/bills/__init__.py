"""Actual bills, read into lines that a plan can be held against.

One module a format, one row in `planner.bills.formats`. A reader lists every problem of a file with
its line before it gives up; amounts are exact from the first character.
"""
