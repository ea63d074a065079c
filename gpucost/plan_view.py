"""The plan as a table in the terminal."""

from typing import Any

import click

from gpucost.output import Output, Table, print_table
from templates import wording

_RIGHT = frozenset(("hours", "USD", "saves"))


def print_plan(plan: dict[str, Any], output: Output) -> None:
    """Print every job's headline and options, and the fleet, from the document of plan.json."""
    if output.format == "csv":
        rows = tuple(row for job in plan["jobs"] for row in _rows(job))
        print_table(Table(columns=_columns(plan), rows=rows), output)
        return
    for job in plan["jobs"]:
        paid, advice = wording.headline(job, plan)
        click.echo(f"{job['name']}: {paid}")
        click.echo(advice)
        for finding in job["findings"]:
            click.echo(f"  {_finding(finding)}")
        print_table(Table(columns=_columns(plan), rows=tuple(_rows(job)), right=_RIGHT), output)
    if plan["fleet"]:
        _print_fleet(plan, output)
    for note in (*plan["assumptions"], *plan["warnings"]):
        output.say(f"note: {note}")


def _columns(plan: dict[str, Any]) -> tuple[str, ...]:
    dollars = f"USD {wording.period_words(plan)}"
    return ("option", "where", "GPU", "how", "hours", dollars, "saves", "per work")


def _rows(job: dict[str, Any]) -> list[tuple[str, ...]]:
    today = job["baseline"]
    offer = today["offer"]
    rows: list[tuple[str, ...]] = [
        (
            f"{job['name']}/o0" + ("*" if job["recommended"] == wording.STAY else ""),
            wording.place(offer, today["count"]) + (" (assumed)" if today["assumed"] else ""),
            f"{offer['gpu_count']}x {offer['gpu']}" if offer else "unknown",
            "as today",
            wording.hours(today["hours"]),
            wording.whole_dollars(today["cost"]["total"]),
            "",
            wording.per_work(today),
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
            )
        )
    return rows


def _finding(finding: dict[str, Any]) -> str:
    cost = f", costs {wording.whole_dollars(finding['waste_usd'])}" if finding["waste_usd"] else ""
    readings = wording.evidence(finding)
    return f"{finding['code']} ({finding['confidence']}{cost})" + (
        f": {readings}" if readings else ""
    )


def _print_fleet(plan: dict[str, Any], output: Output) -> None:
    fleet = plan["fleet"]
    click.echo(
        f"fleet: {fleet['gpus_before']} GPUs -> {fleet['gpus_after']} (at least "
        f"{fleet['gpus_lower_bound']}), {wording.dollars(fleet['cost_before'])} -> "
        f"{wording.dollars(fleet['cost_after'])} {wording.period_words(plan)}, "
        f"{fleet['saves']['fraction']:.0%} less"
    )
    rows = tuple(
        (str(p["id"]), wording.place(p["offer"]), p["mode"] or "alone", ", ".join(p["jobs"]))
        for p in fleet["placements"]
    )
    print_table(Table(columns=("GPU", "machine", "mode", "jobs"), rows=rows), output)
    for one in fleet["unmoved"]:
        output.say(f"note: {one['job']} keeps a GPU of its own: {one['reason']}, {one['detail']}")
