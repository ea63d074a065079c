"""Reads the text of plan.json into its values; every problem is said, each with its place.

What the file has beside the known fields is left alone, and what plans of earlier versions lack has
a default, so that a plan a month old can still be shown, exported and launched.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from mmap import mmap

import msgspec

from planner.models.document import canonical, convert, decode
from planner.models.json_schema import find_problems, plain_sentence
from planner.plan.job import JobPlan, Rejected
from planner.plan.plan import SCHEMA, Plan
from pricing.errors import InputError

_SHOWN = 10
_AGAIN = "write the plan again with `gpucost plan -o plan.json`"
_JOBS = "jobs"
_AT = re.compile(r"(?P<what>.*) - at `\$\.?(?P<place>.*)`", re.DOTALL)

Content = str | bytes | mmap
"""Of a file: its text, or its bytes."""


def read_plan(content: Content, origin: str) -> Plan:
    """Return the values of a plan.

    Args:
        content: of plan.json.
        origin: the file's name, for messages.

    Raises:
        InputError: it is not JSON, not a plan, or some of its values cannot be; each is listed.
    """
    try:
        return _job_by_job(content)
    except (msgspec.MsgspecError, KeyError, RecursionError):
        pass  # below every problem is named; the standard library takes more, such as NaN
    try:
        raw = json.loads(content if isinstance(content, str) else bytes(content))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin}: not valid JSON ({error}); write it again.") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise InputError(
            f"{origin}: not a plan ({SCHEMA}); `gpucost plan -o plan.json` writes one."
        )
    problems = list(find_problems(Plan, raw, plain_sentence))
    if not problems:
        try:
            return _with_id(convert(Plan, raw), _Identity.of(raw))
        except msgspec.ValidationError as error:
            problems.append(_sentence(error))
    hidden = len(problems) - _SHOWN
    if hidden > 0:
        problems = [*problems[:_SHOWN], f"and {hidden} more values cannot be"]
    raise InputError(f"{origin}: {problem}; {_AGAIN}." for problem in problems)


def _job_by_job(content: Content) -> Plan:
    """Return a plan; its jobs are read one by one: a fleet does not fit into memory twice.

    Jobs share what is said of an offer in the same words.
    """
    top = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    raws = msgspec.json.decode(top.pop(_JOBS), type=list[msgspec.Raw])
    around = {name: msgspec.json.decode(raw) for name, raw in top.items()}
    identity = _Identity(around)
    shared: dict[Rejected, Rejected] = {}
    jobs = []
    for raw in raws:
        identity.add(msgspec.json.decode(raw))
        job = decode(JobPlan, raw)
        rejected = tuple(shared.setdefault(one, one) for one in job.rejected)
        jobs.append(msgspec.structs.replace(job, rejected=rejected))
    return _with_id(convert(Plan, {**around, _JOBS: jobs}), identity)


def _with_id(plan: Plan, identity: "_Identity") -> Plan:
    plan.__dict__["id"] = identity.end()
    return plan


def _sentence(error: msgspec.ValidationError) -> str:
    """Return what a class says of its value, behind the place: `jobs[0]: count is below 1`."""
    at = _AT.fullmatch(str(error))
    return f"{at['place']}: {at['what']}" if at else str(error)


class _Identity:
    """The SHA-256 of a plan's values (`digest`), of jobs that come one after another."""

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

    @classmethod
    def of(cls, raw: Mapping[str, object]) -> "_Identity":
        """Return that of values that are all read."""
        identity = cls({name: value for name, value in raw.items() if name != _JOBS})
        jobs = raw[_JOBS]
        for job in jobs if isinstance(jobs, list) else ():
            identity.add(job)
        return identity

    def add(self, job: object) -> None:
        """Take the next job in."""
        self._hash.update((self._between + canonical(job)).encode())
        self._between = ","

    def end(self) -> str:
        """Return the digest of all of them."""
        left = "" if self._between == "," else self._between
        self._hash.update((left + self._end).encode())
        return self._hash.hexdigest()
