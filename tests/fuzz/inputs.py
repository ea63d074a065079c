"""Where damaged inputs come from, and what each must come out as."""

from __future__ import annotations

import math
import os
import random
import signal
import time
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.profile.codec import dump, parse_profiles
from planner.profile.kinds import SLOTS
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.fuzz.mutations import mutated
from tests.telemetry.reading import read_source

if TYPE_CHECKING:
    from types import FrameType

    from planner.profile.model import Profile

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "telemetry"
MORE = "GPUCOST_FUZZ_FILES"
LARGEST = 300_000
HINTS = (Hints(), Hints(), Hints(tz="Europe/Berlin"), Hints(interval_s=2.5), Hints(job="a"))
# Of processor time: a file of this size takes under one second where nothing goes wrong.
MOST_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An input that was neither read nor refused.

    Attributes:
        seed: makes the input again, with the same files.
        origin: the file that was damaged.
        problem: what came out.
    """

    seed: int
    origin: str
    problem: str


@cache
def files() -> list[tuple[str, bytes]]:
    """Return the whole files that are damaged, by name."""
    folders = [FIXTURES, *(Path(one) for one in filter(None, [os.environ.get(MORE)]))]
    found = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    read = [(file.name, file.read_bytes()) for file in found if file.suffix != ".md"]
    return [(name, data) for name, data in read if 0 < len(data) <= LARGEST]


def damaged(seed: int) -> tuple[str, bytes]:
    """Return the input of a seed, and the file that it comes from."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    name, data = rng.choice(files())
    return name, mutated(rng, data, [other for _, other in files()])


class TooLongError(Exception):
    """An input took longer than any may."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooLongError


def tried(seed: int, folder: Path) -> Failure | None:
    """Return how the input of a seed failed, None where it was read or refused."""
    name, data = damaged(seed)
    file = folder / f"{os.getpid()}-{name}"
    file.write_bytes(data)
    hints = HINTS[seed % len(HINTS)]
    problem = None
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        problem = wrong(read_source(str(file), hints))
    except InputError as error:
        problem = None if all(str(one).strip() for one in error.problems) else "no sentence"
    except TooLongError:
        problem = f"over {MOST_SECONDS} s\n{traceback.format_exc()}"
    except Exception:  # noqa: BLE001 - that is what is looked for
        problem = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        file.unlink(missing_ok=True)
    return None if problem is None else Failure(seed=seed, origin=name, problem=problem)


def wrong(profiles: tuple[Profile, ...]) -> str | None:
    """Return what a profile says that cannot be, None where all can."""
    for profile in profiles:
        for gpu in profile.gpus:
            for slot, statistics in gpu.metrics.items():
                low, high = SLOTS[slot].low, SLOTS[slot].high
                for value in (statistics.mean, statistics.min, statistics.max, statistics.p50):
                    if value is None:
                        continue
                    if not math.isfinite(value):
                        return f"{slot} is {value}"
                    if (low is not None and value < low) or (high is not None and value > high):
                        return f"{slot} is {value}, outside {low} to {high}"
    try:
        parse_profiles(dump(profiles).encode(), "written")
    except InputError as error:
        return f"written, it is refused: {error}"
    return None


def run(seeds: range, folder: Path, until: float) -> tuple[int, list[Failure]]:
    """Return how many inputs were tried until a time of the monotonic clock, and the failures."""
    failures, count = [], 0
    for seed in seeds:
        if time.monotonic() > until:
            break
        count += 1
        if (failure := tried(seed, folder)) is not None:
            failures.append(failure)
    return count, failures
