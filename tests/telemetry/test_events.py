"""The probe's events of all processes become one job."""

from typing import Any

import pytest

from telemetry.recording.events import together
from telemetry.recording.observed import Pause


def _step(process: str, t_s: float, **more: Any) -> dict[str, Any]:
    line = {"event": "step", "process": process, "t_s": t_s, "step": 1, "n": 1, "step_s": 0.1}
    return {**line, "data_wait_s": 0.04, "h2d_s": None, "items": 8, "loader": 1, **more}


def _run(process: str, start_s: float, steps: int, **hello: Any) -> list[dict[str, Any]]:
    first = {"event": "hello", "process": process, "t_s": start_s, "framework": "pytorch", **hello}
    return [
        first,
        *(_step(process, start_s + 0.1 * (i + 1), step=i + 1) for i in range(steps)),
    ]


def _rank(process: str, rank: int, world: int = 2) -> dict[str, Any]:
    return {"event": "rank", "process": process, "t_s": 0.0, "rank": rank, "world": world}


def test_one_process_gives_its_steps() -> None:
    """A single process: its rows, its count, its own items."""
    found = together(_run("a", 100.0, 5))
    assert found.step_count == 5
    assert found.items == 1.0
    assert found.steps is not None
    assert found.steps["t_s"].tolist() == pytest.approx([100.1, 100.2, 100.3, 100.4, 100.5])


def test_ranks_of_one_run_count_once_and_their_items_add_up() -> None:
    """Two ranks that step together are one run: the count of one, the items of both."""
    events = [
        _rank("a", 0),
        *_run("a", 100.0, 5, ppid=7),
        _rank("b", 1),
        *_run("b", 100.0, 5, ppid=7),
    ]
    found = together(events)
    assert (found.step_count, found.items) == (5, 2.0)


def test_a_restarted_rank_counts_all_its_lives() -> None:
    """A launcher that restarts its workers leaves one run, with the steps of both lives."""
    lives = [("a", 100.0, 0), ("b", 100.0, 1), ("c", 200.0, 0), ("d", 200.0, 1)]
    events = [
        event
        for process, start, rank in lives
        for event in (_rank(process, rank), *_run(process, start, 3, ppid=7))
    ]
    assert together(events).step_count == 6


def test_programs_one_after_the_other_add_up() -> None:
    """A shell script that trains twice has the steps of both, without a note."""
    found = together([*_run("a", 100.0, 3), *_run("b", 200.0, 4)])
    assert found.step_count == 7
    assert found.steps is not None
    assert len(found.steps) == 7
    assert found.notes == ()


def test_programs_side_by_side_are_told_apart() -> None:
    """Two independent trainings at once: the step times of the longer one, and a note."""
    found = together([*_run("a", 100.0, 3), *_run("b", 100.0, 30)])
    assert found.step_count == 33
    assert found.steps is not None
    assert len(found.steps) == 30
    assert found.items == pytest.approx(33 / 30)
    assert "2 processes step independently" in found.notes[0]


@pytest.mark.parametrize(
    ("event", "precision"),
    [
        ({"autocast": "bfloat16", "dtype": "float32", "tf32": False}, "amp-bf16"),
        ({"autocast": "float16", "dtype": "float32", "tf32": None}, "amp-fp16"),
        ({"autocast": None, "dtype": "float32", "tf32": True}, "tf32"),
        ({"autocast": None, "dtype": "float32", "tf32": False}, "fp32"),
        ({"autocast": None, "dtype": "bfloat16", "tf32": False}, "bf16"),
        ({"autocast": None, "dtype": "float16"}, "fp16"),
        ({"autocast": None, "dtype": "float64"}, None),
    ],
)
def test_precision_is_what_the_heavy_operations_run_in(
    event: dict[str, Any], precision: str | None
) -> None:
    """Autocast decides where it is on, else the parameters' type, with TF32 where it is allowed."""
    events = [*_run("a", 100.0, 1), {"event": "precision", "process": "a", "t_s": 100.0, **event}]
    assert together(events).precision == precision


def test_facts_and_pauses_are_taken_over() -> None:
    """Batch, model and pauses reach the job; what nobody said is left out."""
    events = [
        {"event": "loader", "process": "a", "t_s": 99.0, "loader": 1, "batch_size": 64},
        {"event": "model", "process": "a", "t_s": 99.0, "parameters": 10, "parallelism": "ddp"},
        {"event": "span", "process": "a", "t_s": 100.0, "kind": "checkpoint", "s": 0.5},
        *_run("a", 100.0, 2),
    ]
    found = together(events)
    assert found.pauses == (Pause(kind="checkpoint", start_s=100.0, length_s=0.5),)
    stated = {
        "kind": "training",
        "framework": "pytorch",
        "batch_per_gpu": 64,
        "parallelism": "ddp",
        "parameters": 10,
    }
    assert {name: getattr(found, name) for name in stated} == stated
    assert found.precision is None


def test_pieces_of_one_pause_are_one() -> None:
    """A long evaluation comes in pieces, a checkpoint in files; each is one pause."""
    spans = [
        {"event": "span", "process": "a", "t_s": t_s, "kind": kind, "s": 1.0}
        for t_s, kind in ((1.0, "evaluation"), (2.0, "evaluation"), (3.0, "checkpoint"))
    ]
    later = {"event": "span", "process": "a", "t_s": 9.0, "kind": "checkpoint", "s": 1.0}
    found = together([*_run("a", 100.0, 2), *spans, later])
    assert [(p.kind, p.start_s, p.length_s) for p in found.pauses] == [
        ("evaluation", 1.0, 2.0),
        ("checkpoint", 3.0, 1.0),
        ("checkpoint", 9.0, 1.0),
    ]


def test_a_part_that_was_not_seen_is_left_out() -> None:
    """A first step without a known begin, a wait that was not seen: null, not zero."""
    events = _run("a", 100.0, 3)
    events[1] = {**events[1], "step_s": None, "data_wait_s": None}
    found = together(events)
    assert found.steps is not None
    assert found.steps["step_s"].isna().tolist() == [True, False, False]


def test_without_steps_nothing_is_claimed() -> None:
    """Events without a step give no frame, no count and no kind of job."""
    found = together([{"event": "hello", "process": "a", "t_s": 1.0, "framework": "pytorch"}])
    assert (found.steps, found.step_count) == (None, 0)
    assert found.kind is None


def test_what_waits_for_the_loader_want_of_cores_is_that_of_the_training_one() -> None:
    """The last word on the loader that fed the steps; another loader's is not taken for it."""
    told = [
        {"event": "loader", "process": "a", "t_s": 100.0, "loader": 1, "num_workers": 0},
        {"event": "loader", "process": "a", "t_s": 100.0, "loader": 2, "num_workers": 4},
        {
            "event": "reading",
            "process": "a",
            "t_s": 100.0,
            "loader": 1,
            "waited_s": 1,
            "wanted_s": 1,
        },
        {
            "event": "reading",
            "process": "a",
            "t_s": 100.1,
            "loader": 2,
            "waited_s": 9,
            "wanted_s": 9,
        },
        {
            "event": "reading",
            "process": "a",
            "t_s": 100.2,
            "loader": 1,
            "waited_s": 8,
            "wanted_s": 2,
        },
    ]
    found = together([*_run("a", 100.0, 5), *told])
    assert (found.loader_workers, found.reading_cores) == (0, 0.25)
    assert together([*_run("a", 100.0, 5), *told[:2]]).reading_cores is None
