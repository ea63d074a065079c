"""Jobs of a real research cluster wait as long as an independent simulation of them says."""

import math
from pathlib import Path
from statistics import fmean

import pytest

from planner.capacity.queueing import waits
from telemetry.job_trace_file import read_trace
from telemetry.readers.payload import Stream


@pytest.mark.parametrize(("load", "minutes"), [(0.80, 9636), (0.95, 18_857)])
def test_waits_of_the_philly_trace(load: float, minutes: float, shared: Path) -> None:
    """Jobs of one GPU, served in order: the mean wait is within 10 % of the published figure."""
    with Stream(str(shared / "datasets/queueing/philly_jobs.csv.gz")) as stream:
        reading = read_trace("philly_jobs.csv.gz", stream.load().text, {})
    trace = reading.trace.only(1, 1)
    gpus = math.ceil(trace.load_gpus / load)
    found = [wait or 0.0 for wait in waits(trace.jobs, gpus, "fcfs")]
    assert fmean(found) / 60 == pytest.approx(minutes, rel=0.1)
