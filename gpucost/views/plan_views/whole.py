"""The plan in the terminal, all of it: the fleet first, then every job's options."""

import click

from gpucost.views.output import Output, Table, print_prose, print_table
from planner.plan_document.document import FleetDocument, PlanDocument
from planner.plan_document.find import FoundOption, every_option
from planner.plan_document.jobs import FindingDocument, JobDocument
from pricing.listing import counted
from templates import advice, report_text
from templates.totals import alternative, total

_RIGHT = frozenset(("hours", "saves"))
_SPARE = ("price read", "per work", "hours", "GPU", "how")
_CSV = (
    "job option recommended provider instance_type region gpus gpu count purchase actions "
    "hours_low hours_mid hours_high usd_low usd_mid usd_high saves_usd saves_fraction "
    "price_as_of stale net_benefit_usd launchable"
)
_OF_OFFER = ("provider", "instance_type", "region", "gpu_count", "gpu")


def print_whole_plan(plan: PlanDocument, output: Output) -> None:
    """Print every option of every job; with -v also causes, confidence and notes."""
    if output.format == "csv":
        rows = tuple(_record(found) for job in plan.jobs for found in every_option(job))
        print_table(Table(columns=tuple(_CSV.split()), rows=rows), output)
        return
    if len(plan.jobs) > 1:
        print_prose(total(plan))
    if plan.fleet:
        _print_fleet(plan.fleet, plan, output)
    for job in plan.jobs:
        _print_job(job, plan, output)
    for note in (*plan.assumptions, *plan.warnings) if output.verbose else ():
        output.say(f"note: {note}")


def _print_job(job: JobDocument, plan: PlanDocument, output: Output) -> None:
    paid, todo = advice.headline(job, plan)
    print_prose(f"{job.name}: {paid}")
    print_prose(todo)
    if output.verbose:
        print_prose(f"Confidence {report_text.confidence(job)}.")
        for finding in job.findings:
            print_prose(_finding(finding), indent="  ")
    columns = _columns(plan)
    ids = [report_text.STAY, *(option.id for option in job.options)]
    table = Table(
        columns=columns,
        rows=tuple(_rows(job)),
        right=_RIGHT,
        spare=_SPARE,
        whole=frozenset((*columns[4:], "GPU")),
        chosen=ids.index(job.recommended) if job.recommended in ids else None,
    )
    print_table(table, output)
    if job.options:
        print_prose(f"named: {advice.named(job)}", indent="  ")
    if job.probe:
        print_prose(f"probe: {report_text.probe(job.probe)}", indent="  ")


def _columns(plan: PlanDocument) -> tuple[str, ...]:
    dollars = f"USD {report_text.period_words(plan)}"
    return ("option", "where", "GPU", "how", "hours", dollars, "saves", "per work", "price read")


def _rows(job: JobDocument) -> list[tuple[str, ...]]:
    today = job.baseline
    offer = today.offer
    rows: list[tuple[str, ...]] = [
        (
            f"{report_text.STAY}" + ("*" if job.recommended == report_text.STAY else ""),
            report_text.place(offer, today.count) + (" (assumed)" if today.assumed else ""),
            f"{offer.gpu_count}x {offer.gpu}" if offer else "unknown",
            "as today",
            report_text.hours(today.hours),
            report_text.today_cost(today.cost),
            "",
            report_text.per_work(today),
            report_text.read_on(offer),
        )
    ]
    for option in job.options:
        star = "*" if option.id == job.recommended else ""
        fraction = option.saves.fraction
        most = "<= " if option.cost.at_least else ""  # a part of its cost has no known price
        rows.append(
            (
                f"{option.id}{star}",
                report_text.place(option.offer, option.count),
                f"{option.offer.gpu_count}x {option.offer.gpu}",
                report_text.changes(option),
                report_text.hours(option.hours),
                report_text.cost_range(option),
                "unknown" if fraction is None else f"{most}{fraction:.0%}",
                report_text.per_work(option),
                report_text.read_on(option.offer),
            )
        )
    return rows


def _record(found: FoundOption) -> tuple[str, ...]:
    """Return plain values for programs."""
    offer, option, cost = found.offer, found.option, found.cost
    values = (
        found.job.name,
        found.id,
        "yes" if found.is_recommended else "no",
        *(getattr(offer, name, None) for name in _OF_OFFER),
        found.count,
        offer.purchase if offer else None,
        " ".join(found.actions),
        found.hours.low,
        found.hours.mid,
        found.hours.high,
        *(getattr(cost, end, None) for end in ("low", "mid", "high")),
        option.saves.usd if option else None,
        option.saves.fraction if option else None,
        offer.as_of if offer else None,
        "yes" if offer and offer.stale else "no",
        option.benefit.net_usd if option and option.benefit else None,
        "yes" if option and option.provisionable else "no",
    )
    return tuple("" if value is None else str(value) for value in values)


def _finding(finding: FindingDocument) -> str:
    waste = finding.waste_usd
    cost = "" if waste is None else f", costs {report_text.whole_dollars(waste)}"
    readings = report_text.evidence(finding)
    return f"{finding.code} ({finding.confidence}{cost}): {readings or finding.cause}"


def _print_fleet(fleet: FleetDocument, plan: PlanDocument, output: Output) -> None:
    print_prose(
        f"fleet: {counted(fleet.gpus_before, 'GPU')} -> {fleet.gpus_after} (at least "
        f"{fleet.gpus_lower_bound}), {report_text.dollars(fleet.cost_before)} -> "
        f"{report_text.dollars(fleet.cost_after)} {report_text.period_words(plan)}, "
        f"{fleet.saves.fraction or 0.0:.0%} less{_alone(fleet, plan)}"
    )
    rows = tuple(
        (str(p.id), report_text.place(p.offer), p.mode or "alone", ", ".join(p.jobs))
        for p in fleet.recommended
    )
    print_table(Table(columns=("GPU", "machine", "mode", "jobs"), rows=rows), output)
    for placement in fleet.recommended:
        for risk in placement.risks or ():
            print_prose(f"GPU {placement.id}: {risk}", indent="  ")
    if fleet.roll_back:
        print_prose(fleet.roll_back)
    for one in () if fleet.taken else fleet.unmoved:
        output.say(f"note: {one.job} stays on its GPU: {one.reason}, {one.detail}")
    for other in fleet.alternatives:
        word = "recommended:" if other is fleet.taken else "or"
        print_prose(f"{word} {alternative(other, plan)}")
    click.echo("Job by job, on its own:\n")


def _alone(fleet: FleetDocument, plan: PlanDocument) -> str:
    """Return what the fleet's saving leaves out, where it is not the whole recommendation."""
    whole = plan.recommended is None or plan.recommended.cost.mid == fleet.cost_after
    return "" if whole else ", by sharing GPUs alone"
