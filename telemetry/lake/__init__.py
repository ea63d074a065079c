"""Tables of readings where they lie: Parquet files and warehouses, counted there, finished here.

The table becomes, for each job, device and slot, how many seconds each rounded value stood. That is
one Ibis expression (`histogram`), so that any engine of Ibis can count (`place`); `profiles` makes
profiles of what comes back, which is small.
"""
