"""The plan in the terminal, all of it: the fleet first, then every job's options."""

import click

from gpucost.views.output import Output, Table, print_prose, print_table
from planner.plan_document.document import FleetDocument, PlanDocument
from planner.plan_document.find import FoundOption, every_option
from planner.plan_document.jobs import FindingDocument, JobDocument
from templates import advice, report_text
from templates.language.translate import _, join, translate_text, word
from templates.reports.fleet_rows import alternative, total

_SPARE = (8, 7, 4, 2, 3)  # columns that a narrow terminal leaves out, the first one first
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
        output.say(_("note: {note}", note=translate_text(note)))


def _print_job(job: JobDocument, plan: PlanDocument, output: Output) -> None:
    paid, todo = advice.headline(job, plan)
    print_prose(_("{job}: {paid}", job=job.name, paid=paid))
    print_prose(todo)
    if output.verbose:
        print_prose(_("Confidence {sure}.", sure=report_text.confidence(job)))
        for finding in job.findings:
            print_prose(_finding(finding), indent="  ")
    columns = _columns(plan)
    ids = [report_text.STAY, *(option.id for option in job.options)]
    table = Table(
        columns=columns,
        rows=tuple(_rows(job)),
        right=frozenset((columns[4], columns[6])),
        spare=tuple(columns[at] for at in _SPARE),
        whole=frozenset((*columns[4:], "GPU")),
        chosen=ids.index(job.recommended) if job.recommended in ids else None,
    )
    print_table(table, output)
    if job.options:
        print_prose(_("named: {what}", what=advice.named(job)), indent="  ")
    if job.probe:
        print_prose(_("probe: {what}", what=report_text.probe(job.probe)), indent="  ")


def _columns(plan: PlanDocument) -> tuple[str, ...]:
    return (
        _("option"),
        _("where"),
        "GPU",
        _("how"),
        _("hours"),
        _("USD {period}", period=report_text.period_words(plan)),
        _("saves"),
        _("per work"),
        _("price read"),
    )


def _rows(job: JobDocument) -> list[tuple[str, ...]]:
    today = job.baseline
    offer = today.offer
    rows: list[tuple[str, ...]] = [
        (
            f"{report_text.STAY}" + ("*" if job.recommended == report_text.STAY else ""),
            report_text.place(offer, today.count) + (_(" (assumed)") if today.assumed else ""),
            f"{offer.gpu_count}x {offer.gpu}" if offer else _("unknown"),
            _("as today"),
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
                _("unknown") if fraction is None else f"{most}{fraction:.0%}",
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
    cost = "" if waste is None else _(", costs {usd}", usd=report_text.whole_dollars(waste))
    return _(
        "{code} ({sure}{cost}): {what}",
        code=finding.code,
        sure=word("confidence", finding.confidence),
        cost=cost,
        what=report_text.evidence(finding) or translate_text(finding.cause),
    )


def _print_fleet(fleet: FleetDocument, plan: PlanDocument, output: Output) -> None:
    held = fleet.gpus_before
    print_prose(
        _(
            "fleet: {held} -> {after} (at least {least}), {usd} -> {then} {period}, "
            "{share} less{alone}",
            held=_("{n} GPUs", n=held) if held != 1 else _("1 GPU"),
            after=fleet.gpus_after,
            least=fleet.gpus_lower_bound,
            usd=report_text.dollars(fleet.cost_before),
            then=report_text.dollars(fleet.cost_after),
            period=report_text.period_words(plan),
            share=f"{fleet.saves.fraction or 0.0:.0%}",
            alone=_alone(fleet, plan),
        )
    )
    rows = tuple(
        (str(p.id), report_text.place(p.offer), p.mode or _("alone"), join(p.jobs))
        for p in fleet.recommended
    )
    columns = ("GPU", _("machine"), _("mode"), _("jobs"))
    print_table(Table(columns=columns, rows=rows), output)
    for placement in fleet.recommended:
        for risk in placement.risks or ():
            print_prose(
                _("GPU {id}: {risk}", id=placement.id, risk=translate_text(risk)), indent="  "
            )
    if fleet.roll_back:
        print_prose(translate_text(fleet.roll_back))
    for one in () if fleet.taken else fleet.unmoved:
        output.say(
            _(
                "note: {job} stays on its GPU: {reason}, {detail}",
                job=one.job,
                reason=word("reason", one.reason),
                detail=translate_text(one.detail),
            )
        )
    for other in fleet.alternatives:
        what = alternative(other, plan)
        taken = other is fleet.taken
        print_prose(_("recommended: {what}", what=what) if taken else _("or {what}", what=what))
    click.echo(_("Job by job, on its own:") + "\n")


def _alone(fleet: FleetDocument, plan: PlanDocument) -> str:
    """Return what the fleet's saving leaves out, where it is not the whole recommendation."""
    whole = plan.recommended is None or plan.recommended.cost.mid == fleet.cost_after
    return "" if whole else _(", by sharing GPUs alone")
