"""Documents of commands that print a few rows or lines: each is these fields and no other."""

import msgspec

from planner.plan.job import Remedy
from planner.signals.finding import Finding


class DiagnosedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job, what it wastes, and what can be done about it.

    Attributes:
        name: of the job; None where nothing names it.
        findings: ranked; the first one is the verdict.
        remedies: the actions on the job itself that apply, with what they would set.
    """

    name: str | None
    findings: tuple[Finding, ...]
    remedies: tuple[Remedy, ...]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What `gpucost diagnose -f json` prints.

    Attributes:
        schema: name and version of this form.
        jobs: in the order of their names.
    """

    schema: str
    jobs: tuple[DiagnosedJob, ...]


class ExplainedCode(msgspec.Struct, frozen=True, kw_only=True):
    """What `gpucost explain -f json` prints.

    Attributes:
        code: of a finding or an action.
        text: the explanation, a line each.
    """

    code: str
    text: tuple[str, ...]


class InstallationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `gpucost doctor`.

    Attributes:
        check: what was looked at.
        state: one word, such as `ok`, `stale`, `fail`, `set` or `not set`.
        detail: one sentence.
    """

    check: str
    state: str
    detail: str


class ReapedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `gpucost reap` and `gpucost watch`: a run, and what is done about it.

    Attributes:
        run: its name.
        provider: where it is.
        owner: who launched it, by its tags.
        deadline: when its machines end themselves, UTC, to the minute.
        resources: how many there are, as text.
        action: what is done: `keep` or what ends it.
        why: one sentence.
    """

    run: str
    provider: str
    owner: str
    deadline: str
    resources: str
    action: str
    why: str
