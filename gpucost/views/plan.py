"""The plan in the terminal: on one screen, or every option of every job."""

from collections.abc import Iterable
from decimal import Decimal

import click

from gpucost.views.output import Output, Table, print_prose, print_table
from planner.plan.bill import RentedOffer
from planner.plan.job import JobPlan
from planner.plan.option import Option
from planner.plan.plan import Fleet, Plan
from planner.plan.read import FoundOption, every_option
from planner.signals.finding import Finding
from pricing.catalog.price_age import OLD_DAYS
from templates import advice, report_text
from templates.language.translate import _, join, translate_text, word
from templates.reports.fleet_rows import alternative, total

_OPTIONS_SHOWN = 5
_JOBS_SHOWN = 12
_MARK = "*"


def print_plan(
    plan: Plan, output: Output, *, all_options: bool = False, left_out: Iterable[RentedOffer] = ()
) -> None:
    """Print a plan, made now or read back: one screen, or all of it.

    Args:
        plan: the plan.
        output: how to print.
        all_options: whether to print all of it.
        left_out: offers of options that the plan does not hold, whose prices count, too.
    """
    if all_options or output.verbose or output.format == "csv":
        print_whole_plan(plan, output)
    elif len(plan.jobs) == 1:
        _print_job(plan.jobs[0], plan, output)
    else:
        _print_jobs(plan, output)
    if output.format == "table":
        print_prose(_ages(plan, left_out))
        print_prose(_answer(plan))


def _print_job(job: JobPlan, plan: Plan, output: Output) -> None:
    """Print one job: what is paid and why, today and the options worth a look."""
    paid = advice.headline(job, plan)[0]
    print_prose(_("{job}: {paid}", job=job.name, paid=paid))
    shown = _worth_a_look(job)
    rows = [_today_row(job), *(_option_row(job, option) for option in shown)]
    ids = [report_text.STAY, *(option.id for option in shown)]
    dollars = report_text.period_words(plan)
    where, span, saves = _("where"), _("range"), _("saves")
    table = Table(
        columns=(_("option"), where, "GPU", dollars, span, saves),
        rows=tuple(rows),
        right=frozenset((dollars, span, saves)),
        spare=(span, "GPU"),
        whole=frozenset(("GPU",)),
        cut=frozenset((where,)),
        chosen=ids.index(job.recommended) if job.recommended in ids else None,
    )
    print_table(table, output)
    more = len(job.options) - len(shown)
    hidden = _("--all ({n} more options), ", n=more) if more > 0 else ""
    print_prose(_("More: {hidden}-v (why), --report FILE", hidden=hidden))


def _worth_a_look(job: JobPlan) -> list[Option]:
    """Return the recommended and the named options, then the cheapest; by cost, at most five."""
    by_cost = sorted(job.options, key=lambda option: option.cost.mid)
    first = (job.recommended, job.cheapest, job.smallest_change, job.first_launchable)
    ids_by_rank = [*filter(None, first), *(option.id for option in by_cost)]
    ids = {option.id for option in job.options}
    chosen = [option_id for option_id in dict.fromkeys(ids_by_rank) if option_id in ids][
        :_OPTIONS_SHOWN
    ]
    return [option for option in by_cost if option.id in chosen]


def _today_row(job: JobPlan) -> tuple[str, ...]:
    today = job.baseline
    offer = today.offer
    star = _MARK if job.recommended == report_text.STAY else ""
    return (
        f"{report_text.STAY}{star}",
        _(
            "{where}, {how}",
            where=report_text.place(offer, today.count),
            how=_("assumed") if today.assumed else _("today"),
        ),
        f"{offer.gpu_count}x {offer.gpu}" if offer else _("unknown"),
        report_text.today_cost(today.cost),
        "",
        "",
    )


def _option_row(job: JobPlan, option: Option) -> tuple[str, ...]:
    star = _MARK if option.id == job.recommended else ""
    cost = option.cost
    least = ">= " if cost.at_least else ""
    low, high = (report_text.whole_dollars(end) for end in (cost.low, cost.high))
    return (
        f"{option.id}{star}",
        report_text.place(option.offer, option.count),
        f"{option.offer.gpu_count}x {option.offer.gpu}",
        least + report_text.beside(cost.mid),
        "" if low == high else f"{low}-{high.removeprefix('$')}",
        report_text.share_saved(option) or _("unknown"),
    )


def _print_jobs(plan: Plan, output: Output) -> None:
    """Print several jobs, a row each, those that save most first."""
    print_prose(total(plan))
    fleet = plan.fleet
    if fleet and fleet.taken:
        print_prose(_("Sharing: {what}.", what=alternative(fleet.taken, plan)))
    elif fleet and fleet.gpus_after < fleet.gpus_before:
        many = {"before": fleet.gpus_before, "after": fleet.gpus_after}
        if fleet.gpus_after == fleet.gpus_lower_bound:
            print_prose(_("Sharing: {before} GPUs -> {after} (proven minimum).", **many))
        else:
            least = fleet.gpus_lower_bound
            print_prose(
                _("Sharing: {before} GPUs -> {after} (minimum {least}).", least=least, **many)
            )
    jobs = sorted(plan.jobs, key=lambda job: -_saved(job))
    dollars = report_text.period_words(plan)
    do, today, saves = _("do"), _("today"), _("saves")
    table = Table(
        columns=(_("job"), do, today, dollars, saves),
        rows=tuple(_job_row(job, plan) for job in jobs[:_JOBS_SHOWN]),
        right=frozenset((today, dollars, saves)),
        cut=frozenset((do,)),
    )
    print_table(table, output)
    more = len(jobs) - _JOBS_SHOWN
    hidden = (
        _("--all ({n} more jobs, every option, risks of sharing)", n=more)
        if more > 0
        else _("--all (every option, risks of sharing)")
    )
    print_prose(_("More: {hidden}, -v (why), --report FILE", hidden=hidden))


def _saved(job: JobPlan) -> Decimal:
    choice = job.choice
    return (choice.saves.usd if choice else None) or Decimal(0)


def _job_row(job: JobPlan, plan: Plan) -> tuple[str, ...]:
    today, option, shared = job.baseline.cost, job.choice, plan.placement_of(job)
    if shared is not None and len(shared.jobs) > 1:
        neighbors = join(name for name in shared.jobs if name != job.name)
        todo = _("share GPU {id} with {others}", id=shared.id, others=neighbors)
    elif shared is not None:
        where = report_text.place(shared.offer)
        todo = _("move to GPU {id}, alone ({where})", id=shared.id, where=where)
    elif option is None:
        todo = _("keep as is")
    else:
        where = report_text.place(option.offer, option.count)
        todo = _("{what}: {command}", what=option.id, command=where)
    return (job.name, todo, report_text.today_cost(today), *_job_cost(job, plan))


def _job_cost(job: JobPlan, plan: Plan) -> tuple[str, str]:
    """Return what a job will cost and save; what shares a GPU has no bill of its own."""
    option, shared = job.choice, plan.placement_of(job)
    if shared is not None:
        alone = len(shared.jobs) == 1
        return report_text.whole_dollars(shared.cost) if alone else _("shared"), ""
    if option is None:
        return report_text.today_cost(job.baseline.cost), ""
    cost = report_text.whole_dollars(option.cost.mid)
    least = ">= " if option.cost.at_least else ""
    return least + cost, report_text.share_saved(option) or _("unknown")


def _ages(plan: Plan, more: Iterable[RentedOffer]) -> str:
    """Return one line on how old the prices are that are shown."""
    offers = [option.offer for job in plan.jobs for option in job.options]
    offers += more
    offers += [job.baseline.offer for job in plan.jobs if job.baseline.offer is not None]
    ages = [offer.age_days for offer in offers if isinstance(offer.age_days, int)]
    if not ages:
        return _("None of these prices has a date.")
    least, most = min(ages), max(ages)
    span = _("{low} to {high}", low=least, high=most) if least != most else f"{least}"
    stale = len({(o.provider, o.instance_type, o.region) for o in offers if o.stale})
    risen = _("; {n} are old (over {days} days)", n=stale, days=OLD_DAYS) if stale else ""
    return _(
        "Prices are {span} days old{risen}. Refresh: gpucost prices update", span=span, risen=risen
    )


def _answer(plan: Plan) -> str:
    if len(plan.jobs) == 1:
        return advice.headline(plan.jobs[0], plan)[1]
    return total(plan)


_SPARE = (8, 7, 4, 2, 3)  # columns that a narrow terminal leaves out, the first one first
_CSV = (
    "job option recommended provider instance_type region gpus gpu count purchase actions "
    "hours_low hours_mid hours_high usd_low usd_mid usd_high saves_usd saves_fraction "
    "price_as_of stale net_benefit_usd launchable"
)
_OF_OFFER = ("provider", "instance_type", "region", "gpu_count", "gpu")


def print_whole_plan(plan: Plan, output: Output) -> None:
    """Print every option of every job; with -v also causes, confidence and notes."""
    if output.format == "csv":
        rows = tuple(_record(choice) for job in plan.jobs for choice in every_option(job))
        print_table(Table(columns=tuple(_CSV.split()), rows=rows), output)
        return
    if len(plan.jobs) > 1:
        print_prose(total(plan))
    if plan.fleet:
        _print_fleet(plan.fleet, plan, output)
    for job in plan.jobs:
        _print_whole_job(job, plan, output)
    for note in (*plan.assumptions, *plan.warnings) if output.verbose else ():
        output.say(_("note: {note}", note=translate_text(note)))


def _print_whole_job(job: JobPlan, plan: Plan, output: Output) -> None:
    paid, todo = advice.headline(job, plan)
    print_prose(_("{job}: {paid}", job=job.name, paid=paid))
    print_prose(todo)
    if output.verbose:
        print_prose(_("Confidence {sure}.", sure=report_text.confidence(job)))
        for finding in job.findings:
            print_prose(_finding_line(finding), indent="  ")
    columns = _columns(plan)
    ids = [report_text.STAY, *(option.id for option in job.options)]
    table = Table(
        columns=columns,
        rows=tuple(_option_rows(job)),
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


def _columns(plan: Plan) -> tuple[str, ...]:
    return (
        _("option"),
        _("where"),
        "GPU",
        _("how"),
        _("hours"),
        _("USD {period}", period=report_text.period_words(plan)),
        _("saves"),
        _("per unit of work"),
        _("price read"),
    )


def _option_rows(job: JobPlan) -> list[tuple[str, ...]]:
    today = job.baseline
    offer = today.offer
    rows: list[tuple[str, ...]] = [
        (
            f"{report_text.STAY}" + ("*" if job.recommended == report_text.STAY else ""),
            report_text.place(offer, today.count) + (_(" (assumed)") if today.assumed else ""),
            f"{offer.gpu_count}x {offer.gpu}" if offer else _("unknown"),
            _("unchanged"),
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


def _record(choice: FoundOption) -> tuple[str, ...]:
    """Return plain values for programs."""
    offer, option, cost = choice.offer, choice.option, choice.cost
    values = (
        choice.job.name,
        choice.id,
        "yes" if choice.is_recommended else "no",
        *(getattr(offer, name, None) for name in _OF_OFFER),
        choice.count,
        offer.purchase if offer else None,
        " ".join(choice.actions),
        choice.hours.low,
        choice.hours.mid,
        choice.hours.high,
        *(getattr(cost, end, None) for end in ("low", "mid", "high")),
        option.saves.usd if option else None,
        option.saves.fraction if option else None,
        offer.as_of if offer else None,
        "yes" if offer and offer.stale else "no",
        option.benefit.net_usd if option and option.benefit else None,
        "yes" if option and option.provisionable else "no",
    )
    return tuple("" if value is None else str(value) for value in values)


def _finding_line(finding: Finding) -> str:
    waste = finding.waste_usd
    cost = "" if waste is None else _(", costs {usd}", usd=report_text.whole_dollars(waste))
    return _(
        "{code} ({sure}{cost}): {what}",
        code=finding.code,
        sure=word("confidence", finding.confidence),
        cost=cost,
        what=report_text.evidence(finding) or translate_text(finding.cause),
    )


def _print_fleet(fleet: Fleet, plan: Plan, output: Output) -> None:
    before = fleet.gpus_before
    print_prose(
        _(
            "fleet: {held} -> {after} (at least {least}), {usd} -> {then} {period}, "
            "{share} less{alone}",
            held=_("{n} GPUs", n=before) if before != 1 else _("1 GPU"),
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
    for job_left in () if fleet.taken else fleet.unmoved:
        output.say(
            _(
                "note: {job} stays on its GPU: {reason}, {detail}",
                job=job_left.job,
                reason=word("reason", job_left.reason),
                detail=translate_text(job_left.detail),
            )
        )
    for packing in fleet.alternatives:
        summary = alternative(packing, plan)
        is_taken = packing is fleet.taken
        print_prose(
            _("recommended: {what}", what=summary) if is_taken else _("or {what}", what=summary)
        )
    click.echo(_("Job by job, on its own:") + "\n")


def _alone(fleet: Fleet, plan: Plan) -> str:
    """Return what the fleet's saving leaves out, where it is not the whole recommendation."""
    whole = plan.recommended is None or plan.recommended.cost.mid == fleet.cost_after
    return "" if whole else _(", by sharing GPUs alone")
