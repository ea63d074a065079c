"""Step statistics do not depend on how the probe cut its lines."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.probe.path.gpucost_probe.tally import Spent
from telemetry.probe.path.gpucost_probe.tally import bucket as bucket_of_probe
from telemetry.recording.events import together
from telemetry.recording.observed import StepTimes, add_up, of_line

BUCKET = 2 ** (1 / 16)
lengths_s = st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=80)


def line(process: str, t_s: float, lengths: Sequence[float]) -> dict[str, Any]:
    """Return what the probe writes of some steps in one line."""
    held = Spent(0)
    for length_s in lengths:
        one = Spent(1)
        one.step_s = length_s
        one.measured()
        held.add(one)
    return {
        "event": "step",
        "process": process,
        "t_s": t_s,
        "step": len(lengths),
        "n": held.n,
        "step_s": held.step_s,
        "longest_s": held.longest_s,
        "lengths": {str(b): n for b, n in held.lengths.items()} if held.n > 1 else {},
    }


def cut(lengths: Sequence[float], places: Sequence[int]) -> list[Sequence[float]]:
    """Return a list cut at some places."""
    edges = sorted({0, len(lengths), *(place % (len(lengths) + 1) for place in places)})
    return [lengths[a:b] for a, b in itertools.pairwise(edges)]


@given(lengths_s, st.lists(st.integers(0, 80)), st.lists(st.integers(0, 80)))
def test_statistics_do_not_depend_on_the_lines(
    lengths: list[float], here: list[int], there: list[int]
) -> None:
    """Lines of any widths give the same counts, the same longest step and the same quantiles."""
    one, other = (
        add_up(of_line(line("a", 0.0, part)) for part in cut(lengths, places))
        for places in (here, there)
    )
    assert one.n == other.n == len(lengths)
    assert one == other


@given(lengths_s, st.floats(0.01, 1.0))
def test_quantiles_are_within_a_bucket(lengths: list[float], share: float) -> None:
    """A quantile is within 4.4 % of that of the lengths themselves."""
    times = of_line(line("a", 0.0, lengths))
    rank = max(1, -(-len(lengths) * share // 1))
    true_s = sorted(lengths)[int(rank) - 1]
    found_s = times.quantile(share)
    assert found_s is not None
    assert true_s / BUCKET <= found_s * (1 + 1e-9)
    assert found_s <= true_s * BUCKET * (1 + 1e-9)


@given(lengths_s, st.integers(1, 79), st.lists(st.integers(0, 80)))
def test_a_restart_changes_the_first_step_only(
    lengths: list[float], where: int, places: list[int]
) -> None:
    """A run that was killed and goes on has the steps of both lives, without each first."""
    lives = [part for part in cut(lengths, [where]) if part]
    events: list[dict[str, Any]] = []
    for number, life in enumerate(lives):
        process, t_s = f"p{number}", 1000.0 * number
        events.append({"event": "hello", "process": process, "t_s": t_s})
        events.append(line(process, t_s + 1.0, life[:1]))
        events += [
            line(process, t_s + 2.0 + i, part)
            for i, part in enumerate(cut(life[1:], places))
            if part
        ]
    kept = [length_s for life in lives for length_s in life[1:]]
    times = together(events).step_times
    assert times.n == len(kept)
    assert times.longest_s == max(kept, default=None)


@given(lengths_s)
def test_reader_and_probe_agree_on_buckets(lengths: list[float]) -> None:
    """A line of one step is read into the bucket that the probe would have written."""
    for length_s in lengths:
        assert set(of_line(line("a", 0.0, [length_s])).counts) == {bucket_of_probe(length_s)}


def test_long_steps_are_counted_and_added() -> None:
    """Steps from a length on: their number exactly, their sum to within a bucket."""
    times = of_line(line("a", 0.0, [0.02] * 50 + [2.0, 3.0]))
    count, total_s = times.from_length(0.5)
    assert count == 2
    assert total_s == pytest.approx(5.0, rel=0.05)


def test_nothing_measured_is_unknown() -> None:
    """Without steps there is no quantile; a line of unknown length says nothing of lengths."""
    assert StepTimes().quantile(0.5) is None
    assert of_line({"n": 1, "step_s": None}) == StepTimes()
