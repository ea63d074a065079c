"""Reads the text of plan.json into its values; every problem is said, each with its place.

What the file has beside the known fields is left alone, and what plans of earlier versions lack has
a default, so that a plan a month old can still be shown, exported and launched.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from mmap import mmap
from typing import Any, NamedTuple, TypeVar

import msgspec

from planner.plan_document.document import SCHEMA, PlanDocument
from planner.plan_document.encode import canonical
from planner.plan_document.jobs import JobDocument, RejectedDocument
from pricing.errors import InputError

_SHOWN = 10
_AGAIN = "write the plan again with `gpucost plan -o plan.json`"
_JOBS = "jobs"

Kind = TypeVar("Kind")
Content = str | bytes | mmap
"""Of a file: its text, or its bytes."""


class _Parts(NamedTuple):
    """The JSON values of a file, its jobs apart: those of a fleet are made one after another.

    Attributes:
        around: all but the jobs.
        jobs: each of them; None: the file has no list of jobs.
    """

    around: Mapping[str, object]
    jobs: Iterable[object] | None


def read_plan(content: Content, origin: str) -> PlanDocument:
    """Return the values of a plan.

    Args:
        content: of plan.json.
        origin: the file's name, for messages.

    Raises:
        InputError: it is not JSON, not a plan, or some of its values cannot be; each is listed.
    """
    try:
        return _values(_job_by_job(content), origin)
    except (msgspec.DecodeError, KeyError, RecursionError):
        pass  # the standard library says what is wrong and where, and takes more: NaN
    try:
        parts = _all_at_once(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin}: not valid JSON ({error}); write it again.") from error
    return _values(parts, origin)


def _job_by_job(content: Content) -> _Parts:
    """Return the values of a file, of its jobs one at a time.

    Raises:
        msgspec.DecodeError: it is not JSON as plans are; of a job once it is reached.
        KeyError: it has no jobs.
    """
    top = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    jobs = msgspec.json.decode(top.pop(_JOBS), type=list[msgspec.Raw])
    around = {name: msgspec.json.decode(raw) for name, raw in top.items()}
    return _Parts(around, map(msgspec.json.decode, jobs))


def _all_at_once(content: Content) -> _Parts:
    raw = json.loads(content if isinstance(content, str) else bytes(content))
    around = raw if isinstance(raw, dict) else {}
    if not isinstance(around.get(_JOBS), list):
        return _Parts(around, None)
    return _Parts({name: value for name, value in around.items() if name != _JOBS}, around[_JOBS])


def _values(parts: _Parts, origin: str) -> PlanDocument:
    if parts.around.get("schema") != SCHEMA:
        raise InputError(
            f"{origin}: not a plan ({SCHEMA}); `gpucost plan -o plan.json` writes one."
        )
    problems: list[str] = []
    found = _structured(parts, problems)
    if found is not None:
        return found
    more = len(problems) - _SHOWN
    if more > 0:
        problems = [*problems[:_SHOWN], f"and {more} more values cannot be"]
    raise InputError(f"{origin}: {problem}; {_AGAIN}." for problem in problems)


def _structured(parts: _Parts, problems: list[str]) -> PlanDocument | None:
    """Return the plan, or None with what is wrong with it."""
    if parts.jobs is None:
        _structure(parts.around, PlanDocument, "", problems)
        return None  # it lacks them
    identity = _Identity(parts.around)
    jobs = tuple(_jobs(parts.jobs, identity, problems))
    plan = _structure({**parts.around, _JOBS: []}, PlanDocument, "", problems)
    if plan is None or problems:
        return None
    try:
        return replace(plan, jobs=jobs, id=identity.end())
    except ValueError as error:  # what holds between the jobs and the fleet
        problems.append(str(error))
        return None


def _jobs(
    jobs: Iterable[object], identity: "_Identity", problems: list[str]
) -> Iterator[JobDocument]:
    """Yield the jobs that can be read; jobs share what is said of an offer in the same words."""
    said: dict[RejectedDocument, RejectedDocument] = {}
    for number, raw in enumerate(jobs):
        identity.add(raw)
        job = _structure(raw, JobDocument, f"{_JOBS}[{number}]", problems)
        if job is not None:
            yield replace(job, rejected=tuple(said.setdefault(one, one) for one in job.rejected))


def _structure(raw: object, kind: type[Kind], where: str, problems: list[str]) -> Kind | None:
    """Return values of a kind; None, with what is wrong, where they are not."""
    from cattrs import BaseValidationError  # noqa: PLC0415 - only where a plan is read back

    from planner.plan_document.structure import MisfitError, converter  # noqa: PLC0415 - the same

    try:
        return converter().structure(raw, kind)
    except (BaseValidationError, MisfitError) as error:
        problems.extend(_problems(error, where))
    except RecursionError:
        problems.append("it is nested too deeply")
    return None


class _Identity:
    """The SHA-256 of a plan's values (`encode.digest`), of jobs that come one after another."""

    def __init__(self, around: Mapping[str, object]) -> None:
        self._hash = hashlib.sha256()
        first, last = (
            canonical({name: value for name, value in around.items() if (name < _JOBS) is before})
            for before in (True, False)
        )
        self._between = (
            first[:-1] + ("," if len(first) > len("{}") else "") + f"{canonical(_JOBS)}:["
        )
        self._end = "]" + ("," if len(last) > len("{}") else "") + last[1:]

    def add(self, job: object) -> None:
        """Take the next job in."""
        self._hash.update((self._between + canonical(job)).encode())
        self._between = ","

    def end(self) -> str:
        """Return the digest of all of them."""
        left = "" if self._between == "," else self._between
        self._hash.update((left + self._end).encode())
        return self._hash.hexdigest()


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
