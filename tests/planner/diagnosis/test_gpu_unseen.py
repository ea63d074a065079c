"""A program whose GPU nobody measured: where its time goes is said, and no dollar of it."""

from msgspec.structs import replace

from planner.diagnosis.diagnose import diagnose
from planner.profile.model import Wait
from tests.planner.factories import a_profile, plan, running

LOAD = (Wait(place="load (train.py:5)", doing="host", time_fraction=0.6),)


def test_no_gpu_waits_that_nobody_measured() -> None:
    """The line of the program is named as a possibility; its waste is unknown, not 100 %."""
    profile = replace(a_profile({}), waits=LOAD)
    finding = next(f for f in diagnose(profile) if f.code == "host-bound")
    assert finding.cause.startswith("No GPU was measured")
    assert "load (train.py:5)" in finding.cause
    assert (finding.confidence, finding.waste_fraction, finding.evidence) == ("possible", None, ())
    (job,) = plan(running(profile)).jobs
    assert all(not f.waste_usd for f in job.findings)


def test_a_measured_gpu_waits_as_before() -> None:
    """With the GPU's use read, the same line is the cause, with its waste."""
    profile = replace(a_profile({"util.kernel_time": 0.3}), waits=LOAD)
    finding = next(f for f in diagnose(profile) if f.code == "host-bound")
    assert finding.confidence == "measured"
    assert finding.waste_fraction
