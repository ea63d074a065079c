"""Where the time between two steps went: training, evaluation, saving."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.probe.path.gpucost_probe import tally as pace
from telemetry.probe.path.gpucost_probe.steps import Loader, Steps


class Kept:
    """Keeps events instead of writing them."""

    def __init__(self) -> None:
        self.flush: Any = None
        self.finish: Any = None
        self.greeted = True
        self.lines: list[dict[str, Any]] = []
        self.rounds: list[dict[str, Any]] = []
        self.spans: list[tuple[str, float]] = []

    def write(self, event: str, t_s: float, **fields: Any) -> None:
        """Keep a span."""
        assert event == "span"
        assert t_s > 0
        self.flush()
        self.spans.append((fields["kind"], fields["s"]))

    def line(self, text: str) -> None:
        """Keep a line of steps, or of rounds."""
        line = json.loads(text)
        (self.lines if line["event"] == "step" else self.rounds).append(line)

    def odd(self, what: str) -> None:
        """Nothing odd happens here."""
        raise AssertionError(what)

    def total(self, field: str) -> float:
        """Return a sum over all lines."""
        return sum(line[field] for line in self.lines)


def play(script: str, *, items: int = 1) -> tuple[Kept, float]:
    """Return what was written about a story, and its length in seconds.

    A word takes a second: `iT` starts an iteration of loader T, `T` fetches a batch of it, `T.`
    finds it exhausted, `-` computes, `save` saves, `step` steps.
    """
    kept = Kept()
    steps = Steps(kept)  # type: ignore[arg-type]
    loaders = {name: Loader(number) for number, name in enumerate("TVAB", 1)}
    now_s = 0.0
    for word in script.split():
        begin_s, now_s = now_s, now_s + 1.0
        if word == "save":
            steps.saved(1.0)
        elif word == "step":
            steps.stepped(now_s, 1.0)
        elif word.startswith("i"):
            steps.started(loaders[word[1]], begin_s, now_s)
        elif word.endswith("."):
            steps.exhausted(loaders[word[0]], begin_s, now_s)
        elif word != "-":
            steps.fetched(loaders[word], begin_s, now_s, items)
    steps.flush()
    kept.lines.append({"bye": steps.finish()})
    return kept, now_s


# story: data wait, evaluation, saving, items
STORIES = {
    "one epoch": ("iT T - step T - step", (3, 0, 0, 2)),
    "two epochs": ("iT T step T. iT T step", (5, 0, 0, 2)),
    "accumulated": ("iT T - T - step T - T - step", (5, 0, 0, 4)),
    "evaluated": ("iT T step T. iV V - V - V. iT T step", (5, 6, 0, 2)),
    "evaluation in mid epoch": ("iT T step iV V - V - V. T step", (3, 6, 0, 2)),
    "evaluation left early": ("iT T step iV V - V - V - T step", (3, 7, 0, 2)),
    "two evaluations": ("iT T step iV V - V. iA A - A. T step", (3, 8, 0, 2)),
    "saved": ("iT T step save save T step", (3, 0, 2, 2)),
    "saved within an evaluation": ("iT T step iV V - V - save T step", (3, 5, 1, 2)),
    "saved after an evaluation": ("iT T step iV V - V. save T step", (3, 4, 1, 2)),
    "sanity check first": ("iV V - V - iT T - step T - step", (3, 0, 0, 2)),
    "two loaders in step": ("iT iA T A - step T A - step", (6, 0, 0, 2)),
    "two loaders, new epoch": ("iT iA T A step T. iT iA T A step", (9, 0, 0, 2)),
    "a new loader each epoch": ("iT T step T. iA A step A. iB B step", (8, 0, 0, 3)),
    "trained and read ahead": ("iT T T step T step T. step", (5, 0, 0, 3)),
    "evaluated on the training data": (
        "iT T step T step T. iT T - T - T. iT T step",
        (6, 6, 0, 3),
    ),
    "statistics first": ("iT T - T - T. iT T step T step", (3, 0, 0, 2)),
}


@pytest.mark.parametrize("name", STORIES)
def test_each_second_is_told_once(name: str) -> None:
    """Waits, evaluation, saving and items of a story are what its words say."""
    script, expected = STORIES[name]
    kept, _ = play(script)
    kept.lines.pop()
    fields = ("data_wait_s", "evaluation_s", "checkpoint_s", "items")
    assert tuple(kept.total(field) for field in fields) == pytest.approx(expected)
    assert kept.total("n") == script.split().count("step")


@pytest.mark.parametrize("name", STORIES)
def test_steps_and_evaluations_fill_the_time(name: str) -> None:
    """From the start of training to the last step, no second is lost and none counted twice."""
    script, _ = STORIES[name]
    kept, _ = play(script)
    kept.lines.pop()
    words = script.split()
    trains = words.index("iT")
    if name == "statistics first":
        trains = words.index("iT", trains + 1)
    last = len(words) - words[::-1].index("step")
    assert kept.total("step_s") + kept.total("evaluation_s") == pytest.approx(last - trains)


def test_an_evaluation_beside_steps_without_a_loader_is_one() -> None:
    """A loop that makes its batches itself evaluates with a loader: no wait of a step."""
    kept, _ = play("step - step iV V - V - V. - step")
    assert kept.spans == [("evaluation", 6)]
    assert [line["data_wait_s"] for line in kept.lines[:-1]] == [None] * (len(kept.lines) - 1)
    assert kept.lines[-2]["evaluation_s"] == 6


def test_an_evaluation_after_the_last_step_is_told() -> None:
    """What is read after the last step is written at the end."""
    kept, _ = play("iT T step T. iV V - V.")
    assert kept.spans == [("evaluation", 4)]


def test_a_known_evaluation_is_told_in_pieces() -> None:
    """A loader that evaluated before is written while it is read: a kill does not lose it."""
    kept, _ = play("iT T step iV V - V - V. T step iV V - V")
    assert sum(s for _, s in kept.spans) == pytest.approx(6 + 4)
    assert len(kept.spans) > 2


def test_a_program_that_only_reads_keeps_little() -> None:
    """Without a step, readings are told from time to time and do not pile up."""
    kept, _ = play("iV V - V. " * 500)
    assert sum(s for _, s in kept.spans) == pytest.approx(500 * 4)


def test_lines_are_not_more_than_twenty_a_second() -> None:
    """Steps share lines: in a second of steps without any other event, at most 21 are written."""
    kept = Kept()
    steps = Steps(kept)  # type: ignore[arg-type]
    begin_s = now_s = time.perf_counter()
    while now_s - begin_s < 0.4:
        now_s = time.perf_counter()
        steps.stepped(now_s, 0.0)
    assert len(kept.lines) <= 2 + 0.4 / pace.width_s(0.0)
    steps.flush()
    assert kept.total("n") == kept.lines[-1]["step"] == steps.count


@given(st.lists(st.sampled_from(["T", "iT", "T.", "iV", "V", "V.", "-", "save", "step"])))
def test_no_story_makes_a_time_negative(words: list[str]) -> None:
    """Whatever a program does, times are not negative, and steps are counted exactly."""
    kept, whole_s = play(" ".join(words))
    kept.lines.pop()
    assert kept.lines == [] or kept.lines[-1]["step"] == words.count("step")
    for line in kept.lines:
        for field in ("step_s", "data_wait_s", "evaluation_s", "checkpoint_s"):
            value = line[field]
            assert value is None or -1e-9 <= value <= whole_s * (1 + line["n"])
    assert sum(line["n"] for line in kept.lines) == words.count("step")
