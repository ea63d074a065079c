"""The plan in the terminal: the fleet first, then every job's verdict and options."""

from typing import Any

import click

from gpucost.views.output import Output, Table, print_table, printable
from templates import wording
from templates.totals import total

_Json = dict[str, Any]
_RIGHT = frozenset(("hours", "saves"))
_SPARE = ("price read", "per work", "hours", "GPU", "how")
_CSV = (
    "job option recommended provider instance_type region gpus gpu count purchase actions "
    "hours_low hours_mid hours_high usd_low usd_mid usd_high saves_usd saves_fraction "
    "price_as_of stale net_benefit_usd"
)


def print_plan(plan: _Json, output: Output) -> None:
    """Print a plan from the document of plan.json."""
    if output.format == "csv":
        rows = tuple(row for job in plan["jobs"] for row in _records(job))
        print_table(Table(columns=tuple(_CSV.split()), rows=rows), output)
        return
    if len(plan["jobs"]) > 1:
        click.echo(printable(total(plan)))
    if plan["fleet"]:
        _print_fleet(plan, output)
    for job in plan["jobs"]:
        paid, advice = wording.headline(job, plan)
        click.echo(printable(f"{job['name']}: {paid}"))
        click.echo(printable(advice))
        click.echo(printable(f"Confidence {wording.confidence(job)}."))
        for finding in job["findings"]:
            click.echo(printable(f"  {_finding(finding)}"))
        rows = tuple(_rows(job))
        print_table(Table(columns=_columns(plan), rows=rows, right=_RIGHT, spare=_SPARE), output)
        if job["options"]:
            click.echo(printable(f"  named: {wording.named(job)}"))
        if job["probe"]:
            click.echo(printable(f"  probe: {wording.probe(job['probe'])}"))
    for note in (*plan["assumptions"], *plan["warnings"]):
        output.say(f"note: {note}")


def _columns(plan: _Json) -> tuple[str, ...]:
    dollars = f"USD {wording.period_words(plan)}"
    return ("option", "where", "GPU", "how", "hours", dollars, "saves", "per work", "price read")


def _rows(job: _Json) -> list[tuple[str, ...]]:
    today = job["baseline"]
    offer = today["offer"]
    rows: list[tuple[str, ...]] = [
        (
            f"{job['name']}/o0" + ("*" if job["recommended"] == wording.STAY else ""),
            wording.place(offer, today["count"]) + (" (assumed)" if today["assumed"] else ""),
            f"{offer['gpu_count']}x {offer['gpu']}" if offer else "unknown",
            "as today",
            wording.hours(today["hours"]),
            wording.today_cost(today["cost"]),
            "",
            wording.per_work(today),
            wording.read_on(offer),
        )
    ]
    for option in job["options"]:
        star = "*" if option["id"] == job["recommended"] else ""
        fraction = option["saves"]["fraction"]
        rows.append(
            (
                f"{job['name']}/{option['id']}{star}",
                wording.place(option["offer"], option["count"]),
                f"{option['offer']['gpu_count']}x {option['offer']['gpu']}",
                wording.changes(option),
                wording.hours(option["hours"]),
                wording.cost_range(option),
                "unknown" if fraction is None else f"{fraction:.0%}",
                wording.per_work(option),
                wording.read_on(option["offer"]),
            )
        )
    return rows


def _records(job: _Json) -> list[tuple[str, ...]]:
    """Return plain values for programs, today's machine first."""
    today = job["baseline"]
    total = today["cost"]["total"]
    cost = {"low": total, "mid": total, "high": total}
    first = {**today, "id": wording.STAY, "actions": [], "cost": cost, "saves": {}}
    return [_record(job, option) for option in (first, *job["options"])]


def _record(job: _Json, option: _Json) -> tuple[str, ...]:
    offer = option["offer"] or {}
    hours, cost, saves = option["hours"], option["cost"], option["saves"]
    values = (
        job["name"],
        option["id"],
        "yes" if option["id"] == job["recommended"] else "no",
        *(offer.get(key) for key in ("provider", "instance_type", "region", "gpu_count", "gpu")),
        option["count"],
        offer.get("purchase"),
        " ".join(option["actions"]),
        *(hours[end] for end in ("low", "mid", "high")),
        *(cost[end] for end in ("low", "mid", "high")),
        saves.get("usd"),
        saves.get("fraction"),
        offer.get("as_of"),
        "yes" if offer.get("stale") else "no",
        option.get("benefit", {}).get("net_usd"),
    )
    return tuple("" if value is None else str(value) for value in values)


def _finding(finding: _Json) -> str:
    cost = f", costs {wording.whole_dollars(finding['waste_usd'])}" if finding["waste_usd"] else ""
    readings = wording.evidence(finding)
    return f"{finding['code']} ({finding['confidence']}{cost}): {readings or finding['cause']}"


def _print_fleet(plan: _Json, output: Output) -> None:
    fleet = plan["fleet"]
    click.echo(
        f"fleet: {fleet['gpus_before']} GPUs -> {fleet['gpus_after']} (at least "
        f"{fleet['gpus_lower_bound']}), {wording.dollars(fleet['cost_before'])} -> "
        f"{wording.dollars(fleet['cost_after'])} {wording.period_words(plan)}, "
        f"{fleet['saves']['fraction']:.0%} less{_alone(plan)}"
    )
    rows = tuple(
        (str(p["id"]), wording.place(p["offer"]), p["mode"] or "alone", ", ".join(p["jobs"]))
        for p in fleet["placements"]
    )
    print_table(Table(columns=("GPU", "machine", "mode", "jobs"), rows=rows), output)
    for one in fleet["unmoved"]:
        output.say(f"note: {one['job']} keeps a GPU of its own: {one['reason']}, {one['detail']}")
    click.echo("Job by job, on its own:\n")


def _alone(plan: _Json) -> str:
    """Return what the fleet's saving leaves out, where it is not the whole recommendation."""
    total = plan["recommended"]["cost"]["mid"]
    return "" if total == plan["fleet"]["cost_after"] else ", by sharing GPUs alone"
