"""A record of outcomes as JSON lines (`gpucost.outcome/v1`), one a line, in the order of time."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from planner.models.track_record import Ends, PastPrediction
from pricing.errors import InputError

SCHEMA = "gpucost.outcome/v1"


def outcome_line(one: PastPrediction) -> str:
    """Return an outcome as one line, with its end."""
    item = {"schema": SCHEMA, **asdict(one), "recorded": f"{one.recorded.astimezone(UTC):%FT%TZ}"}
    return json.dumps(item, ensure_ascii=True, separators=(",", ":")) + "\n"


def parse_outcomes(text: str, origin: str) -> tuple[PastPrediction, ...]:
    """Return the outcomes in a file; a last line that was cut off is left out.

    Raises:
        InputError: another line is not an outcome, each named with its number.
    """
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    found: list[PastPrediction] = []
    problems: list[str] = []
    for number, line in lines:
        try:
            found.append(_outcome(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if number == lines[-1][0] and not text.endswith("\n"):
                break
            problems.append(
                f"{origin}:{number}: not an outcome ({error!r}). `gpucost verify BEFORE AFTER "
                "--plan PLAN` records them; take the line out."
            )
    if problems:
        raise InputError(problems)
    return tuple(found)


def _outcome(item: dict[str, Any]) -> PastPrediction:
    if item.pop("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    recorded = datetime.fromisoformat(item.pop("recorded"))
    actions = tuple(str(code) for code in item.pop("actions"))
    predicted, measured = Ends(**item.pop("predicted")), Ends(**item.pop("measured"))
    return PastPrediction(
        recorded=recorded, actions=actions, predicted=predicted, measured=measured, **item
    )
