"""Each signal carries its name and its unit: no output guesses them from a key."""

import re

import pytest
from msgspec.structs import replace

from planner.profile.kinds import JobKind
from planner.profile.model import Health, Wait
from planner.signals.condition import FRACTION
from planner.signals.finding import Reading
from planner.signals.signals import SIGNALS, read_signals
from pricing.message import Message
from telemetry.readers.ledger import findings
from templates.report_text import reading
from tests.planner.factories import a_profile

# Endings of the units that metrics are named with.
UNITS = {"_gib": "GiB", "_mib_s": "MiB/s", "_gbps": "Gbit/s", "_fraction": FRACTION, "_c": "°C"}


@pytest.mark.parametrize("ending", UNITS)
def test_the_unit_is_the_one_of_the_key(ending: str) -> None:
    """A signal whose key ends in a unit has that unit."""
    found = {
        key: SIGNALS[key].unit
        for key in SIGNALS
        if key.removesuffix(".mean").removesuffix(".max").endswith(ending)
    }
    assert found
    assert set(found.values()) == {UNITS[ending]}


def test_what_a_gpu_spends_its_time_on_is_a_share() -> None:
    """Every `util.`, `step.` and `.exposed` signal is a fraction."""
    shares = [k for k in SIGNALS if k.startswith(("util.", "step.")) or k.endswith("exposed")]
    assert {SIGNALS[key].unit for key in shares} == {FRACTION}


def test_a_share_stays_within_0_and_1() -> None:
    """A profile that reads nearly full gives no fraction beyond 1."""
    found = read_signals(a_profile({"util.kernel_time": 1.0, "util.sm_active": 0.99}))
    shares = [v for k, v in found.items() if SIGNALS[k].unit == FRACTION and v is not None]
    assert shares
    assert all(isinstance(v, float | int) and 0 <= v <= 1 for v in shares)


def test_people_read_shares_in_percent_and_the_rest_as_it_is() -> None:
    """`fraction` is shown in percent; words and other units are not."""
    assert reading("GPU busy", 0.22, FRACTION) == "GPU busy 22 %"
    assert reading("longest stall, s", 12.345, "s") == "longest stall, s 12.35"
    assert reading("kind of job", "training", None) == "kind of job training"


def test_a_plan_that_was_written_without_units_reads_in_percent() -> None:
    """A reading of an older plan has the unit of its signal; an unknown signal has none."""
    old = Reading(metric="util.kernel_time.mean", value=0.22, test="< 0.5", name="GPU busy")
    assert old.unit == FRACTION
    assert Reading(metric="gone", value=1.0, test="> 0", name="gone").unit is None


@pytest.mark.parametrize(("kind", "host"), [("inference_online", 0.1), ("training", 0.8)])
def test_a_service_is_not_held_up_while_it_waits_for_requests(kind: str, host: float) -> None:
    """Its sleep between requests is no work of the host; that of a training job is."""
    waits = (
        Wait(place="serve (app.py:7)", doing="sleep", time_fraction=0.7),
        Wait(place="answer (app.py:9)", doing="host", time_fraction=0.1),
    )
    found = read_signals(a_profile({"util.kernel_time": 0.1}, kind=JobKind(kind), waits=waits))
    assert found["waits.host"] == pytest.approx(host)


def test_what_fails_is_said_as_it_was_noted_and_in_chinese() -> None:
    """Each sentence that the readers of logs write of a fault is known, and none stays English."""
    noted = findings(
        [
            ("GPU 0", "xid", 48.0),
            ("GPU 1", "xid", 64.0),
            ("GPU 2", "xid", 79.0),
            ("GPU 3", "memory errors", 3.0),
            ("GPU 4", "remap failure", 1.0),
            ("GPU 5", "lanes", 8.0),
            ("GPU 5", "lanes at most", 16.0),
        ]
    )
    lost = Health(gpu="GPU 6", code="lost")
    profile = replace(a_profile({}), health=(*noted, lost))
    worst = read_signals(profile)["health.worst"]
    assert isinstance(worst, Message)
    assert "; ".join(fault.sentence for fault in profile.health) in worst
    assert not re.search(r"[a-z]{4}", worst.translate_to("zh"))


@pytest.mark.parametrize(("kind", "host"), [("inference_online", 0.08), ("training", 0.9)])
def test_a_service_that_uses_no_core_runs_no_code(kind: str, host: float) -> None:
    """1 % of 8 cores is at most 8 % of the time in code; the rest of the call is waiting."""
    waits = (Wait(place="run (serve.py:2)", doing="host", time_fraction=0.9),)
    found = read_signals(
        a_profile(kind=JobKind(kind), waits=waits, host={"cpu_util": 0.01}, cpu_cores=8)
    )
    assert found["waits.host"] == found["waits.python"] == pytest.approx(host)
