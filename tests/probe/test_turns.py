"""Settings tried in turns in the user's process: in drawn order, as often as planned."""

import json
import math
import random
from itertools import pairwise
from typing import Any

import pytest

from planner.proof.experiment import Design, hand_over, of_blocks, settings
from research.experiments import experiment
from telemetry.probe.path.gpucost_probe.applying.recipe import Turns
from telemetry.recording.events import turns as seen_turns

DESIGN = Design(warmup_steps=6, pilot_fours=4, most_fours=12, seed=3)


class Told:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """Keep an event as it would be read back."""
        self.events.append(json.loads(json.dumps({"event": event, **fields})))

    def odd(self, what: str) -> None:
        """Keep what went wrong."""
        self.write("odd", what=what)

    def by_kind(self) -> dict[str, list[dict[str, Any]]]:
        """Return the events by kind."""
        kinds = {each["event"] for each in self.events}
        return {kind: [e for e in self.events if e["event"] == kind] for kind in kinds}


def _turns(design: Design = DESIGN, workers: int = 0) -> tuple[Turns, Told]:
    told = Told()
    turns = Turns(lambda: told, hand_over(design))  # type: ignore[arg-type,return-value] # as far as it is used
    turns.join("compile", workers=workers)
    return turns, told


def _run(turns: Turns, gain: float, steps: int, spread: float = 0.0) -> list[bool]:
    """Take steps whose length follows the setting; return whether it was on in each."""
    draw, on = random.Random(1), []  # noqa: S311 - no secret
    for _ in range(steps):
        on.append(turns.on)
        turns.stepped(math.exp(draw.gauss(0.0, spread)) / (gain if turns.on else 1.0))
    return on


def test_it_is_on_and_off_as_the_design_says() -> None:
    """Warm-up, then each block as it was drawn, and in the end the faster of the two."""
    turns, told = _turns()
    on = _run(turns, 2.0, 600)
    drawn = [each for block in settings(DESIGN)[:16] for each in [block] * DESIGN.block_steps]
    assert on == [True] * 6 + drawn + [True] * (600 - 6 - len(drawn))
    assert told.by_kind()["turns-over"][0]["kept"] is True


def test_what_is_read_back_is_what_was_built_in() -> None:
    """The same gain as over all steps of a series, with what it rests on."""
    turns, told = _turns()
    _run(turns, 1.25, 600)
    seen = seen_turns([told.by_kind()])
    assert seen is not None
    found = of_blocks(seen)
    assert (found.ended, found.fours, found.kept) == ("planned", 4, "on")
    assert found.mid == pytest.approx(1.25)
    assert found.off_s == pytest.approx(1.0)
    assert found.on_s == pytest.approx(0.8)
    assert "compile" in found.basis
    assert "1.25x" in found.sentence


@pytest.mark.parametrize("seed", range(6))
def test_the_process_stops_where_the_plan_ends(seed: int) -> None:
    """Both sides plan the same number, from the pilot without signs: the reverse order ends there.

    Where nothing is gained, the reverse order turns the sign of each difference and nothing else.
    """
    design = Design(warmup_steps=0, pilot_fours=4, most_fours=40, seed=seed)
    lengths = []
    for gain, reverse in ((1.0, False), (1.0, True), (3.0, False)):
        told, order = Told(), hand_over(design)
        order["on"] = [on is not reverse for on in settings(design)]
        turns = Turns(lambda told=told: told, order)  # type: ignore[arg-type,return-value,misc] # as far as it is used
        turns.join("compile")
        _run(turns, gain, 4000, spread=0.4)
        seen = seen_turns([told.by_kind()])
        assert seen is not None
        found = of_blocks(seen)
        assert found.fours == len(seen.blocks) // 4
        assert found.ended in {"planned", "no-room"}
        lengths.append(len(seen.blocks))
        if not reverse:
            draw = random.Random(1)  # noqa: S311 - the same steps
            on = [False, *(b for b in settings(design) for _ in range(20))]
            steps = [math.exp(draw.gauss(0.0, 0.4)) / (gain if each else 1.0) for each in on]
            assert found.mid == pytest.approx(experiment(design, steps[1:]).speedup.mid, rel=1e-6)
    assert lengths[0] == lengths[1]


def test_a_run_that_ends_early_says_what_it_knows() -> None:
    """Three fours say something, fewer nothing; a block that was cut off does not count."""
    for steps, ended, fours in ((6 + 12 * 20 + 7, "run-ended", 3), (6 + 9 * 20, "too-few", 2)):
        turns, told = _turns()
        _run(turns, 1.5, steps, spread=0.01)
        seen = seen_turns([told.by_kind()])
        assert seen is not None
        found = of_blocks(seen)
        assert (found.ended, found.fours, found.is_known) == (ended, fours, ended == "run-ended")
        assert found.sentence


def test_a_setting_that_is_lost_ends_it_without_a_result() -> None:
    """What follows would hold the program against itself."""
    turns, told = _turns()
    _run(turns, 1.5, 300)
    turns.lose("workers ended in OSError")
    _run(turns, 1.0, 600)
    seen = seen_turns([told.by_kind()])
    assert seen is not None
    found = of_blocks(seen)
    assert (found.ended, found.mid) == ("lost", None)
    assert "workers ended in OSError" in found.sentence


@pytest.mark.parametrize("workers", range(1, 17))
def test_blocks_hold_whole_rounds_of_the_workers(workers: int) -> None:
    """Workers that began together deliver together: half a round more would be a false gain."""
    turns, told = _turns(workers=workers)
    _run(turns, 1.0, 7)
    (begun,) = told.by_kind()["turns"]
    counted = begun["block_steps"] - begun["settle_steps"]
    assert begun["settle_steps"] % workers == counted % workers == 0
    assert begun["settle_steps"] > workers
    assert counted >= max(15, 2 * workers)


def test_how_long_it_stays_on_is_known_ahead() -> None:
    """The steps left, the one to come included, over blocks that follow each other."""
    turns, _ = _turns()
    assert turns.steps_left() is None
    on = _run(turns, 1.0, 6 + 16 * 20)
    again, _ = _turns()
    for step, is_on in enumerate(on):
        left = again.steps_left()
        if step > 6 and is_on and left is not None and step + left < len(on):
            assert all(on[step : step + left])
            assert not on[step + left]
        again.stepped(1.0)


def test_parts_that_cannot_be_asked_are_told() -> None:
    """Each change is told once; an error in it ends the turns, never the program."""
    turns, told = _turns()
    heard: list[bool] = []
    turns.join("tf32", heard.append)
    _run(turns, 1.0, 200)
    assert heard
    assert all(one is not other for one, other in pairwise(heard))

    def broken(on: bool) -> None:  # noqa: FBT001 - as it is called
        raise OSError(on)

    turns.join("channels-last", broken)
    _run(turns, 1.0, 200)
    assert "the turns ended early" in told.by_kind()["odd"][0]["what"]


def test_nothing_begins_before_a_setting_is_there() -> None:
    """A program whose settings were all left is never switched."""
    told = Told()
    turns = Turns(lambda: told, hand_over(DESIGN))  # type: ignore[arg-type,return-value] # the same
    assert all(_run(turns, 1.0, 100))
    assert told.events == []


@pytest.mark.parametrize(("workers", "ahead"), [(1, 2), (2, 8), (4, 8), (3, 12), (0, 0)])
def test_batches_read_ahead_are_no_gain(workers: int, ahead: int) -> None:
    """A turn whose first steps pay for batches that its last ones get for nothing: steady steps."""
    told = Told()
    turns = Turns(lambda: told, hand_over(DESIGN))  # type: ignore[arg-type,return-value] # the same
    turns.join("dataloader-workers", workers=workers, ahead=ahead)
    since = 0
    for _ in range(4000):
        left = turns.steps_left()
        length_s = 1.0 / (1.1 if turns.on else 1.0)
        if turns.on and left is not None:
            length_s += 0.5 * ((since < ahead) - (left <= ahead))
        since = since + 1 if turns.on else 0
        turns.stepped(length_s)
    seen = seen_turns([told.by_kind()])
    assert seen is not None
    assert of_blocks(seen).mid == pytest.approx(1.1)
