"""The languages of reports: one table for each, keyed by the English sentence or by the code."""
