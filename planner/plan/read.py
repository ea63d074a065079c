"""Reads the text of plan.json into its values; every problem is said, each with its place.

What the file has beside the known fields is left alone, and what plans of earlier versions lack has
a default, so that a plan a month old can still be shown, exported and launched.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from mmap import mmap

import msgspec

from planner.actions.settings import MachineSettings, Settings
from planner.json_schema import find_problems, plain_sentence
from planner.models.document import canonical, convert, decode
from planner.models.estimate import Estimate
from planner.plan.bill import OptionCost, RentedOffer
from planner.plan.job import JobPlan, Rejected
from planner.plan.option import STAY, Option
from planner.plan.plan import SCHEMA, Plan
from pricing.errors import InputError
from pricing.listing import listed
from pricing.message import Message

_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOption:
    """One way to run one job: an option, or today's machine.

    Attributes:
        job: the job.
        option: the option; None for today's machine.
    """

    job: JobPlan
    option: Option | None

    @property
    def id(self) -> str:
        """The option's id; `o0` for today's machine."""
        return self.option.id if self.option else STAY

    @property
    def name(self) -> str:
        """What the command line calls it: JOB/ID."""
        return f"{self.job.name}/{self.id}"

    @property
    def is_recommended(self) -> bool:
        """Whether the plan recommends it for the job alone."""
        return self.id == self.job.recommended

    @property
    def offer(self) -> RentedOffer | None:
        """What is rented; None where today's machine has no known price."""
        return (self.option or self.job.baseline).offer

    @property
    def count(self) -> int:
        """Machines."""
        return (self.option or self.job.baseline).count

    @property
    def hours(self) -> Estimate:
        """Hours of the period."""
        return (self.option or self.job.baseline).hours

    @property
    def actions(self) -> tuple[str, ...]:
        """Codes of what changes against today."""
        return self.option.actions if self.option else ()

    @property
    def machine(self) -> MachineSettings | None:
        """What is set on each machine; None in plans of versions that did not say."""
        return (self.option or self.job.baseline).machine

    @property
    def settings(self) -> dict[str, Settings]:
        """What each action that applies there would set."""
        if self.option is None:
            return {remedy.code: remedy.settings for remedy in self.job.remedies}
        return dict(self.option.settings or {})

    @property
    def cost(self) -> OptionCost | None:
        """The bill of the period; today's has no interval. None where no price is known."""
        if self.option is not None:
            return self.option.cost
        today = self.job.baseline.cost
        if today.total is None:
            return None
        return OptionCost(
            low=today.total,
            mid=today.total,
            high=today.total,
            lines=today.lines,
            at_least=today.at_least,
            unknown=today.unknown,
        )


def every_option(job: JobPlan) -> tuple[FoundOption, ...]:
    """Return the ways to run a job, today's machine first."""
    return tuple(FoundOption(job=job, option=o) for o in (None, *job.options))


def find_option(plan: Plan, name: str) -> FoundOption:
    """Return the option called JOB/ID; `o0` is today's machine.

    Args:
        plan: made now, or read back with `load_plan`.
        name: the job may be left out where there is only one.

    Raises:
        InputError: none is called so, or several are; what there is is listed.
    """
    named = [o for job in plan.jobs for o in every_option(job)]
    for form in (str, str.casefold):
        fits = [o for o in named if form(name) in (form(o.name), form(o.id))]
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise InputError(f"{name!r} fits {len(fits)} options; say which: {_names(fits)}.")
    raise InputError(f"{name!r} is not an option of this plan; known: {_names(named)}.")


def _names(options: Iterable[FoundOption]) -> str:
    return listed([o.name for o in options], _SHOWN)


def find_recommended(plan: Plan) -> FoundOption:
    """Return what the plan recommends for its only job.

    Raises:
        InputError: it has several; the recommended option of each is listed.
    """
    if len(plan.jobs) != 1:
        names = listed([f"{job.name}/{job.recommended}" for job in plan.jobs], _SHOWN)
        raise InputError(f"the plan has {len(plan.jobs)} jobs; say --option JOB/ID, of: {names}.")
    return FoundOption(job=plan.jobs[0], option=plan.jobs[0].choice)


_MOST_PROBLEMS = 10
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
        raise InputError(Message("input.plan-not-json", origin=origin, why=str(error))) from error
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        raise InputError(f"{origin}: {_not_this_plan(schema)}")
    problems = list(find_problems(Plan, raw, plain_sentence))
    if not problems:
        try:
            return _with_id(convert(Plan, raw), _Identity.of(raw))
        except msgspec.ValidationError as error:
            problems.append(_sentence(error))
    hidden = len(problems) - _MOST_PROBLEMS
    if hidden > 0:
        problems = [*problems[:_MOST_PROBLEMS], f"and {hidden} more values cannot be"]
    raise InputError(f"{origin}: {problem}; {_AGAIN}." for problem in problems)


def _not_this_plan(schema: object) -> str:
    """Return why a document is not a plan that this version reads, and what to type."""
    kind, _, version = schema.partition("/") if isinstance(schema, str) else ("", "", "")
    if kind == SCHEMA.partition("/")[0]:
        return (
            f"a plan of another version of gpucost ({version[:20]!r}; this one reads {SCHEMA}); "
            f"{_AGAIN}."
        )
    if kind == "gpucost.profile":
        return "a profile, not a plan; `gpucost plan PROFILE -o plan.json` makes one of it."
    return f"not a plan ({SCHEMA}); `gpucost plan -o plan.json` writes one."


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
        rejected = tuple(shared.setdefault(reason, reason) for reason in job.rejected)
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
        indent = "" if self._between == "," else self._between
        self._hash.update((indent + self._end).encode())
        return self._hash.hexdigest()
