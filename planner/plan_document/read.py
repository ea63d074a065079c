"""Reads the text of plan.json into its values; every problem is said, each with its place.

What the file has beside the known fields is left alone, and what plans of earlier versions lack has
a default, so that a plan a month old can still be shown, exported and launched.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.plan_document.document import SCHEMA, PlanDocument
from planner.plan_document.encode import digest
from pricing.errors import InputError

_SHOWN = 10
_AGAIN = "write the plan again with `gpucost plan -o plan.json`"


def read_plan(text: str, origin: str) -> PlanDocument:
    """Return the values of a plan.

    Args:
        text: of plan.json.
        origin: the file's name, for messages.

    Raises:
        InputError: it is not JSON, not a plan, or some of its values cannot be; each is listed.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin}: not valid JSON ({error}); write it again.") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise InputError(
            f"{origin}: not a plan ({SCHEMA}); `gpucost plan -o plan.json` writes one."
        )
    return replace(_structured(raw, origin), id=digest(raw))


def _structured(raw: Mapping[str, object], origin: str) -> PlanDocument:
    from cattrs import BaseValidationError  # noqa: PLC0415 - only where a plan is read back

    from planner.plan_document.structure import converter  # noqa: PLC0415 - the same

    try:
        return converter().structure(raw, PlanDocument)
    except BaseValidationError as error:
        problems = list(_problems(error, ""))
    except RecursionError:
        problems = ["it is nested too deeply"]
    more = len(problems) - _SHOWN
    if more > 0:
        problems = [*problems[:_SHOWN], f"and {more} more values cannot be"]
    raise InputError(f"{origin}: {problem}; {_AGAIN}." for problem in problems)


def _problems(error: Exception, where: str) -> Iterator[str]:
    """Yield each problem of a tree of them, with its place: `jobs[0].name is missing`."""
    from cattrs import ClassValidationError, IterableValidationError  # noqa: PLC0415

    from planner.plan_document.structure import MisfitError  # noqa: PLC0415

    if isinstance(error, ClassValidationError | IterableValidationError):
        noted, bare = error.group_exceptions()
        for inner, note in noted:
            yield from _problems(inner, where + _step(note))
        for inner in bare:
            yield from _problems(inner, where)
        return
    shown = where.lstrip(".")
    if isinstance(error, KeyError):
        yield f"{shown} is missing"
    elif isinstance(error, MisfitError):
        yield f"{shown} {error}"
    else:  # an invariant of the value itself
        yield f"{shown}: {error}" if shown else str(error)


def _step(note: Any) -> str:  # noqa: ANN401 - a note of cattrs, of two kinds
    at = note.name if hasattr(note, "name") else note.index
    return f"[{at}]" if isinstance(at, int) else f".{at}"
