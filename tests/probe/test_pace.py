"""Lines widen as a process ages: a week fits on the disk, and lengths of steps survive."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.probe.path.gpucost_probe.steps import Steps
from telemetry.probe.path.gpucost_probe.tally import BUCKETS, Spent, Tally, bucket, width_s
from tests.probe.child import run
from tests.probe.test_clock import Kept
from tests.probe.test_hooks import START

WEEK_S = 7 * 86400.0
RANKS = 8


def test_a_week_of_eight_ranks_takes_a_hundred_megabytes_at_most() -> None:
    """Steps, and a checkpoint and an evaluation each minute: all lines of a week, fully written."""
    kept = Kept()
    steps = Steps(kept)  # type: ignore[arg-type]
    bytes_ = 0
    keep = kept.line

    def count(text: str) -> None:
        nonlocal bytes_
        bytes_ += len(text) + 1
        kept.lines.clear()
        keep(text)

    kept.line = count  # type: ignore[method-assign]
    now_s, turn = 0.0, 0
    while now_s < WEEK_S:
        turn += 1
        now_s += max(0.25, 0.9 * width_s(now_s))  # nearly as many lines as there can be
        steps.stepped(now_s, 0.001)
        if turn % 10 == 0:
            steps.spans.add("checkpoint", now_s, 0.1)
            steps.spans.add("evaluation", now_s, 0.1, 0.01)
    bytes_ += 150 * len(kept.spans)
    assert RANKS * bytes_ <= 100e6


def test_the_lines_of_a_process_cover_more_and_more() -> None:
    """Widths grow with age, from a twentieth of a second to half a minute."""
    widths = [width_s(age_s) for age_s in (0, 59, 61, 601, 3601, 21601, WEEK_S)]
    assert widths == sorted(widths)
    assert (widths[0], widths[-1]) == (0.05, 30.0)


@given(st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=60))
def test_no_length_is_further_off_than_its_bucket(lengths: list[float]) -> None:
    """A line holds each length to within its bucket of 4.4 %, the longest exactly."""
    total = Spent(0)
    for length_s in lengths:
        one = Spent(1)
        one.step_s = length_s
        one.measured()
        total.add(one)
    assert total.longest_s == max(lengths)
    assert sum(total.lengths.values()) == len(lengths)
    for length_s in lengths:
        low = 2 ** (bucket(length_s) / BUCKETS)
        assert low * (1 - 1e-12) <= length_s <= low * 2 ** (1 / BUCKETS) * (1 + 1e-12)


def test_the_usual_length_is_the_median() -> None:
    """What counts as usual is not moved by a few long steps; before five steps it is unknown."""
    kept = Kept()
    tally = Tally(kept)  # type: ignore[arg-type]
    for length_s in (0.02, 0.02, 9.0, 0.02):
        one = Spent(1)
        one.step_s = length_s
        one.measured()
        tally.hold(one, None)
        tally.flush(1.0)
    assert tally.typical_s() is None
    tally.hold(one, None)
    tally.flush(1.0)
    assert tally.typical_s() == pytest.approx(0.02, rel=0.05)


def test_stretches_of_an_old_process_are_written_together() -> None:
    """After ten minutes stretches of a kind share a line, which carries their number and sum."""
    kept = Kept()
    told: list[dict[str, float]] = []
    kept.write = lambda *_args, **fields: told.append(fields)  # type: ignore[method-assign]
    spans = Steps(kept).spans  # type: ignore[arg-type]
    spans.add("checkpoint", 0.0, 0.25)
    for i in range(100):
        spans.add("checkpoint", 10_000.0 + i, 0.25)
    spans.flush()
    assert len(told) < 20
    assert sum(one.get("n", 1) for one in told) == 101
    assert sum(one["s"] for one in told) == pytest.approx(101 * 0.25)


def test_a_step_much_longer_than_usual_is_a_stall(tmp_path: Path) -> None:
    """A pause in the loop is told with its length; the steps around it are not.

    A machine that is busy with others' work may stop a step or two by itself.
    """
    program = """
for b in DataLoader(range(40), 2):
    time.sleep(0.7 if b == [20, 21] else 0.02); o.step()
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    stalls = [span["s"] for span in done.of("span") if span["kind"] == "stall"]
    assert max(stalls) >= 0.65
    assert len(stalls) < 5


def test_batches_tell_the_rounds_of_a_program_without_an_optimizer(tmp_path: Path) -> None:
    """Inference: each batch is a round with its wait; nothing is said of steps."""
    program = """
class Slow:
    def __len__(self): return 30
    def __getitem__(self, i): time.sleep(0.02); return i
for b in DataLoader(Slow(), 2): time.sleep(0.01)
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    rounds = [line for line in done.of("iteration") if line["by"] == "batch"]
    assert done.of("step") == []
    assert sum(line["n"] for line in rounds) == 15
    known = [line for line in rounds if line["step_s"] is not None]
    waits = sum(line["data_wait_s"] for line in known)
    assert 14 * 0.04 <= waits <= sum(line["step_s"] for line in known) - 14 * 0.01
