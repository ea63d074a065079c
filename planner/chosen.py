"""What a plan document chose for each job: the lines that an invoice will be held against."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pricing.errors import InputError
from pricing.lines import Priced
from pricing.money import usd

STAY = "o0"
_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLine:
    """One line of a predicted bill.

    Attributes:
        what: kind of cost, as in a quote.
        usd: exact.
        how: the formula with its numbers.
        parts: quantities at unit prices; empty where the plan states none.
    """

    what: str
    usd: Decimal
    how: str
    parts: tuple[Priced, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """How one job is to run, and what that costs in the period of the plan.

    Attributes:
        job: its name.
        option: its id; `o0` is as today.
        provider: as in the catalog.
        instance_type: the provider's size.
        region: None where one price holds everywhere.
        purchase: on_demand, spot, reserved_180d or reserved_1y.
        gpu: canonical model.
        gpu_count: GPUs of one machine.
        machines: how many.
        hours: expected hours of the period.
        low: dollars at the low end of the hours.
        mid: expected dollars.
        high: dollars at the high end.
        lines: they add up to `mid`, but for its rounding to cents.
    """

    job: str
    option: str
    provider: str
    instance_type: str
    region: str | None
    purchase: str
    gpu: str
    gpu_count: Decimal
    machines: int
    hours: Decimal
    low: Decimal
    mid: Decimal
    high: Decimal
    lines: tuple[PlannedLine, ...]


def choose(plan: _Json, named: Iterable[str] = ()) -> tuple[tuple[Chosen, ...], tuple[str, ...]]:
    """Return what each job runs on, and a sentence for each job whose cost is not known.

    Args:
        plan: the document of plan.json.
        named: JOB/ID, in place of the recommended option of that job; JOB may be left out where
            there is only one.

    Raises:
        InputError: a name fits no option, two are given for one job, an amount is none, or no
            job has a known cost.
    """
    wanted = _wanted(plan, named)
    found, unknown, problems = [], [], []
    for job in plan["jobs"]:
        id_ = wanted.get(job["name"], job["recommended"])
        record = _record(job, id_)
        if record["offer"] is None or record["cost"]["mid"] is None:
            unknown.append(f"{job['name']}/{id_}: its cost is not known; it is left out.")
            continue
        try:
            found.append(_chosen(job["name"], id_, record))
        except (InputError, ArithmeticError, KeyError, TypeError, ValueError):
            problems.append(
                f"{job['name']}/{id_}: an amount of its cost is no number; write the plan again "
                "with `gpucost plan -o plan.json`."
            )
    if problems:
        raise InputError(problems)
    if not found:
        raise InputError(unknown or ["the plan has no job; plan one with `gpucost plan`."])
    return tuple(found), tuple(unknown)


def period_start(plan: _Json) -> date:
    """Return the day of the plan's prices.

    Raises:
        InputError: it is no day.
    """
    try:
        return date.fromisoformat(plan["as_of"])
    except ValueError:
        raise InputError(
            f"the plan's as_of is {plan['as_of']!r}, which is no day; write the plan again with "
            "`gpucost plan -o plan.json`."
        ) from None


def plan_id(plan: _Json) -> str:
    """Return the SHA-256 of the plan's values, whatever the white space of its file."""
    text = json.dumps(plan, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _wanted(plan: _Json, named: Iterable[str]) -> dict[str, str]:
    """Return the named option of each job."""
    known = [
        (job["name"], id_)
        for job in plan["jobs"]
        for id_ in (STAY, *(option["id"] for option in job["options"]))
    ]
    wanted: dict[str, str] = {}
    problems = []
    for name in named:
        job_name, _, id_ = name.rpartition("/")
        fits = [(job, i) for job, i in known if i == id_ and job_name in (job, "")]
        if len(fits) != 1:
            shown = ", ".join(f"{job}/{i}" for job, i in known)
            problems.append(f"{name!r} is no option of this plan; known: {shown}.")
        elif fits[0][0] in wanted:
            problems.append(f"{name!r}: --option names {fits[0][0]} twice; a job runs one way.")
        else:
            wanted[fits[0][0]] = fits[0][1]
    if problems:
        raise InputError(problems)
    return wanted


def _record(job: _Json, id_: str) -> _Json:
    """Return an option in the form of plan.json's options; today's machine has no interval."""
    for option in job["options"]:
        if option["id"] == id_:
            return option  # type: ignore[no-any-return]
    today = job["baseline"]
    total = today["cost"]["total"] if id_ == STAY else None
    return {**today, "cost": {**today["cost"], "low": total, "mid": total, "high": total}}


def _chosen(name: str, id_: str, record: _Json) -> Chosen:
    offer, cost = record["offer"], record["cost"]
    return Chosen(
        job=name,
        option=id_,
        provider=offer["provider"],
        instance_type=offer["instance_type"],
        region=None if offer["region"] == "*" else offer["region"],
        purchase=offer["purchase"],
        gpu=offer["gpu"],
        gpu_count=Decimal(str(offer["gpu_count"])),
        machines=record["count"],
        hours=Decimal(str(record["hours"]["mid"])),
        low=usd(cost["low"]),
        mid=usd(cost["mid"]),
        high=usd(cost["high"]),
        lines=tuple(_line(line) for line in cost["lines"]),
    )


def _line(line: _Json) -> PlannedLine:
    parts = (
        Priced(usd(part["quantity"]), part["unit"], usd(part["unit_usd"]))
        for part in line.get("parts") or ()
    )
    return PlannedLine(what=line["what"], usd=usd(line["usd"]), how=line["how"], parts=tuple(parts))
