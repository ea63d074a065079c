"""The steps of one run, row by row, as `profile.steps.jsonl` has them."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from pricing.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """Steps in a row of the series.

    Attributes:
        step: number of the last of them.
        n: how many.
        step_s: mean length, seconds.
        loss: of the last of them; None where it was not recorded.
    """

    step: int
    n: int
    step_s: float
    loss: float | None = None


def parse_steps(text: str, origin: str) -> tuple[StepRow, ...]:
    """Return the rows that have a length, the first one left out: start-up is in it.

    A last line that was cut off is left out.

    Raises:
        InputError: another line is not a row of steps.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    rows: list[StepRow] = []
    problems: list[str] = []
    for number, line in lines:
        try:
            row = _row(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            if number == lines[-1][0]:
                break
            problems.append(f"{origin}:{number}: not a row of steps; measure the run again.")
            continue
        if row is not None:
            rows.append(row)
    if problems:
        raise InputError(problems)
    return tuple(rows[1:])


def _row(item: dict[str, object]) -> StepRow | None:
    length, loss = item.get("step_s"), item.get("loss")
    if length is None:
        return None
    row = StepRow(
        step=int(str(item["step"])),
        n=int(str(item.get("n", 1))),
        step_s=float(str(length)),
        loss=None if loss is None else float(str(loss)),
    )
    if row.n < 1 or not (math.isfinite(row.step_s) and row.step_s > 0.0):
        raise ValueError(length)
    return row


def mean_step_s(rows: Iterable[StepRow]) -> float:
    """Return the mean length of a step, seconds."""
    rows = tuple(rows)
    return sum(row.n * row.step_s for row in rows) / sum(row.n for row in rows)
