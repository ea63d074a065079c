"""Schedulers, servers of models and clouds: what they count of a job."""
