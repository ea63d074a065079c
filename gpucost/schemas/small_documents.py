"""Documents of commands that print a few rows or lines: each is these fields and no other."""

import json
from datetime import date
from importlib.resources import files
from typing import Literal

import msgspec

from gpucost.schemas.documents import one_of
from planner.json_schema import Schema
from planner.models.document import Number
from planner.plan.bill import CostRange
from planner.plan.job import Remedy
from planner.signals.finding import Finding
from pricing.money import Amount
from telemetry.recording.recording import GpuIdentity


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

    schema: str = "gpucost.diagnosis/v1"
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


class BriefAction(msgspec.Struct, frozen=True, kw_only=True):
    """One of the numbered things to do.

    Attributes:
        label: now, next, cheapest; of a fleet at home, in all.
        option: its id in the plan; None where it is none.
        what: where, and with which changes.
        usd: of the period; None where it is unknown, or nothing changes.
    """

    label: str
    option: str | None
    what: str
    usd: CostRange | None


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says on its first screen, in under 60 lines.

    Attributes:
        schema: name and version of this form.
        as_of: day of prices and rules.
        currency: of every amount.
        period: every amount is of it.
        headline: the job and where it runs today, or how many jobs on how many GPUs.
        recommended: an option's id, `o0` means leave it; None of several jobs.
        low: of what is recommended, the 5 % end; None where it is unknown, as the next two.
        mid: expected.
        high: the 95 % end.
        paid_usd: today; None where it is unknown.
        wasted_usd: of that; None where it is unknown.
        cause: of most of the waste; empty where none is known.
        busy_fraction: share of the time that the GPUs are busy; None where it is unknown.
        notes: what a reader must know, a sentence each.
        actions: what to do, in this order.
        jobs: of several jobs those that save most.
        commands: what to type; they read ./plan.json, which -o writes.
    """

    schema: str
    as_of: date
    currency: str
    period: Literal["month", "run"]
    headline: str
    recommended: str | None
    low: Amount | None
    mid: Amount | None
    high: Amount | None
    paid_usd: Amount | None
    wasted_usd: Amount | None
    cause: str
    busy_fraction: Number | None
    notes: tuple[str, ...]
    actions: tuple[BriefAction, ...]
    jobs: tuple[str, ...]
    commands: tuple[str, ...]


def schema() -> Schema:
    """Return the JSON Schema (2020-12) of a line of a capture."""
    document: Schema = json.loads(files("gpucost.schemas").joinpath("capture.json").read_bytes())
    devices = one_of("devices", "The devices of a capture.", (GpuIdentity,))["$defs"]
    return {**document, "$defs": document["$defs"] | devices}
