"""What a plan document chose for each job: the lines that an invoice will be held against."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pricing.billing.lines import Priced
from pricing.errors import InputError
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
        job: its name; of jobs that share a GPU all names, with `+` between them.
        option: its id; `o0` is as today, `placement-1` a shared GPU.
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

    Jobs that are recommended to share a GPU are one entry, unless an option of one is named.

    Args:
        plan: the document of plan.json.
        named: JOB/ID, in place of the recommended option of that job; JOB may be left out where
            there is only one.

    Raises:
        InputError: a name fits no option, two are given for one job, an amount is none, or no
            job has a known cost.
    """
    wanted = _wanted(plan, named)
    unknown, problems = [], []
    shared = _shared(plan, wanted)
    found = [_placed(place) for place in shared]
    packed = {name for place in shared for name in place["jobs"]}
    for job in plan["jobs"]:
        if job["name"] in packed:
            continue
        id_ = wanted.get(job["name"], job["recommended"])
        record = _record(job, id_)
        if record["offer"] is None or record["cost"]["mid"] is None:
            unknown.append(f"{job['name']}/{id_}: its cost is not known; it is left out.")
            continue
        if record["cost"].get("at_least"):
            parts = ", ".join(record["cost"]["unknown"])
            unknown.append(
                f"{job['name']}/{id_}: no price is known of {parts}; it costs at least so much."
            )
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


def recommended_usd(plan: _Json) -> Decimal:
    """Return the one total that a plan recommends, dollars of its period.

    Raises:
        InputError: the cost of a job is not known, or an amount is none.
    """
    stated = plan.get("recommended")
    if stated is None:  # a plan of an earlier version
        found, unknown = choose(plan)
        if unknown:
            raise InputError(unknown)
        return sum((one.mid for one in found), Decimal(0))
    if stated["unknown"]:
        raise InputError(f"{name}: its cost is not known." for name in stated["unknown"])
    return usd(stated["cost"]["mid"])


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


def _shared(plan: _Json, wanted: Mapping[str, str]) -> list[_Json]:
    """Return the placements of jobs that are recommended to share, no option of theirs named."""
    packed = {job["name"] for job in plan["jobs"] if job.get("placement") is not None}
    return [
        place
        for place in (plan.get("fleet") or {}).get("placements", ())
        if packed.issuperset(place["jobs"]) and not wanted.keys() & set(place["jobs"])
    ]


def _placed(place: _Json) -> Chosen:
    """Return the jobs of one GPU as one thing that is billed."""
    cost = {"low": place["cost"], "mid": place["cost"], "high": place["cost"]}
    record = {
        "offer": place["offer"],
        "count": 1,
        "hours": {"mid": place["hours"]},
        "cost": {**cost, "lines": place["lines"]},
    }
    return _chosen("+".join(place["jobs"]), f"placement-{place['id']}", record)


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
