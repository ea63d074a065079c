"""The plan on one screen: the verdict, a few options, how to see more, and the verdict again."""

from decimal import Decimal

from gpucost.views.output import Output, Table, print_prose, print_table
from gpucost.views.plan_views.whole import print_whole_plan
from planner.plan_document.document import PlanDocument
from planner.plan_document.jobs import JobDocument
from planner.plan_document.options import OptionDocument
from templates import advice, report_text
from templates.totals import alternative, total

_OPTIONS_SHOWN = 5
_JOBS_SHOWN = 12
_SAVES = "saves"
_SPARE = ("range", "GPU")
_MARK = "*"


def print_plan(plan: PlanDocument, output: Output, *, all_options: bool = False) -> None:
    """Print a plan, made now or read back: one screen, or all of it."""
    if all_options or output.verbose or output.format == "csv":
        print_whole_plan(plan, output)
    elif len(plan.jobs) == 1:
        _print_job(plan.jobs[0], plan, output)
    else:
        _print_jobs(plan, output)
    if output.format == "table":
        print_prose(_ages(plan))
        print_prose(_answer(plan))


def _print_job(job: JobDocument, plan: PlanDocument, output: Output) -> None:
    """Print one job: what is paid and why, today and the options worth a look."""
    paid, _ = advice.headline(job, plan)
    print_prose(f"{job.name}: {paid}")
    shown = _worth_a_look(job)
    rows = [_today_row(job), *(_option_row(job, option) for option in shown)]
    ids = [report_text.STAY, *(option.id for option in shown)]
    dollars = report_text.period_words(plan)
    table = Table(
        columns=("option", "where", "GPU", dollars, "range", _SAVES),
        rows=tuple(rows),
        right=frozenset((dollars, "range", _SAVES)),
        spare=_SPARE,
        whole=frozenset(("GPU",)),
        cut=frozenset(("where",)),
        chosen=ids.index(job.recommended) if job.recommended in ids else None,
    )
    print_table(table, output)
    more = len(job.options) - len(shown)
    hidden = f"{more} more options: --all; causes" if more > 0 else "Causes"
    print_prose(f"{hidden}, confidence and notes: -v; the whole report: --report FILE.")


def _worth_a_look(job: JobDocument) -> list[OptionDocument]:
    """Return the recommended and the named options, then the cheapest; by cost, at most five."""
    by_cost = sorted(job.options, key=lambda option: option.cost.mid)
    first = (job.recommended, job.cheapest, job.smallest_change, job.first_launchable)
    wanted = [*filter(None, first), *(option.id for option in by_cost)]
    ids = {option.id for option in job.options}
    chosen = [one for one in dict.fromkeys(wanted) if one in ids][:_OPTIONS_SHOWN]
    return [option for option in by_cost if option.id in chosen]


def _today_row(job: JobDocument) -> tuple[str, ...]:
    today = job.baseline
    offer = today.offer
    star = _MARK if job.recommended == report_text.STAY else ""
    return (
        f"{report_text.STAY}{star}",
        f"{report_text.place(offer, today.count)}, {'assumed' if today.assumed else 'today'}",
        f"{offer.gpu_count}x {offer.gpu}" if offer else "unknown",
        report_text.today_cost(today.cost),
        "",
        "",
    )


def _option_row(job: JobDocument, option: OptionDocument) -> tuple[str, ...]:
    star = _MARK if option.id == job.recommended else ""
    cost = option.cost
    least = ">= " if cost.at_least else ""
    low, high = (report_text.whole_dollars(end) for end in (cost.low, cost.high))
    return (
        f"{option.id}{star}",
        report_text.place(option.offer, option.count),
        f"{option.offer.gpu_count}x {option.offer.gpu}",
        least + report_text.whole_dollars(cost.mid),
        "" if low == high else f"{low}-{high.removeprefix('$')}",
        report_text.share_saved(option) or "unknown",
    )


def _print_jobs(plan: PlanDocument, output: Output) -> None:
    """Print several jobs, a row each, those that save most first."""
    print_prose(total(plan))
    fleet = plan.fleet
    if fleet and fleet.taken:
        print_prose(f"Sharing: {alternative(fleet.taken, plan)}.")
    elif fleet and fleet.gpus_after < fleet.gpus_before:
        print_prose(
            f"Sharing: {fleet.gpus_before} GPUs -> {fleet.gpus_after} (at least "
            f"{fleet.gpus_lower_bound} are needed)."
        )
    jobs = sorted(plan.jobs, key=lambda job: -_saved(job))
    dollars = report_text.period_words(plan)
    table = Table(
        columns=("job", "do", "today", dollars, _SAVES),
        rows=tuple(_job_row(job, plan) for job in jobs[:_JOBS_SHOWN]),
        right=frozenset(("today", dollars, _SAVES)),
        cut=frozenset(("do",)),
    )
    print_table(table, output)
    more = len(jobs) - _JOBS_SHOWN
    hidden = f"{more} more jobs and every option" if more > 0 else "Every option"
    if fleet and fleet.roll_back:
        hidden += ", risks of sharing"
    print_prose(f"{hidden}: --all; causes, confidence and notes: -v; the report: --report FILE.")


def _saved(job: JobDocument) -> Decimal:
    choice = job.choice
    return (choice.saves.usd if choice else None) or Decimal(0)


def _job_row(job: JobDocument, plan: PlanDocument) -> tuple[str, ...]:
    today, option, shared = job.baseline.cost, job.choice, plan.placement_of(job)
    if shared is not None and len(shared.jobs) > 1:
        others = ", ".join(name for name in shared.jobs if name != job.name)
        what = f"share GPU {shared.id} with {others}"
    elif shared is not None:
        what = f"run alone on GPU {shared.id} ({report_text.place(shared.offer)})"
    elif option is None:
        what = "leave it"
    else:
        what = f"{option.id}: {report_text.place(option.offer, option.count)}"
    return (job.name, what, report_text.today_cost(today), *_job_cost(job, plan))


def _job_cost(job: JobDocument, plan: PlanDocument) -> tuple[str, str]:
    """Return what a job will cost and save; what shares a GPU has no bill of its own."""
    option, shared = job.choice, plan.placement_of(job)
    if shared is not None:
        alone = len(shared.jobs) == 1
        return report_text.whole_dollars(shared.cost) if alone else "shared", ""
    if option is None:
        return report_text.today_cost(job.baseline.cost), ""
    cost = report_text.whole_dollars(option.cost.mid)
    least = ">= " if option.cost.at_least else ""
    return least + cost, report_text.share_saved(option) or "unknown"


def _ages(plan: PlanDocument) -> str:
    """Return one line on how old the prices are that are shown."""
    offers = [option.offer for job in plan.jobs for option in job.options]
    offers += [offer for job in plan.jobs for offer in job.offers_left_out]
    offers += [job.baseline.offer for job in plan.jobs if job.baseline.offer is not None]
    ages = [offer.age_days for offer in offers if offer.age_days is not None]
    if not ages:
        return "No price here has a date."
    span = f"{min(ages)} to {max(ages)}" if min(ages) != max(ages) else f"{ages[0]}"
    stale = len({(o.provider, o.instance_type, o.region) for o in offers if o.stale})
    risen = f"; {stale} may have risen by over a fifth (stale)" if stale else ""
    return f"Prices are {span} days old{risen}: gpucost prices update."


def _answer(plan: PlanDocument) -> str:
    if len(plan.jobs) == 1:
        return advice.headline(plan.jobs[0], plan)[1]
    return total(plan)
