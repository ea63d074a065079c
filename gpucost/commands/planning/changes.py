"""`gpucost diff`: what changed between two plans, or since last week."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import click

from gpucost.arguments.parameters import options
from gpucost.files.plan_file import load_plan
from gpucost.views.output import (
    Output,
    Table,
    language_option,
    output_options,
    print_if_json,
    print_prose,
    print_table,
)
from gpucost.views.plan import print_plan
from planner.documents.plan_change import JobChange, PlanChange, plan_change
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import show
from templates.language.translate import _, current_language, join, word
from templates.report_text import causes, moved_text, period_words, signed

_WEEK = timedelta(days=7)


def two_to_compare(folder: str) -> tuple[tuple[str, Plan], tuple[str, Plan]]:
    """Return the latest plan that is a week older than the newest, and the newest, by file name.

    Files that are not plans are passed over.

    Raises:
        InputError: there is no such folder, no plan in it, or none that is a week older; says so.
    """
    source = Path(folder)
    if not source.is_dir():
        raise InputError(Message("input.no-folder", folder=folder))
    plans = []
    for path in sorted(source.glob("*.json")):
        try:
            plans.append((path.name, load_plan(path)))
        except InputError:
            continue
    if not plans:
        raise InputError(Message("input.no-plan-in", folder=folder))
    plans.sort(key=lambda saved: (saved[1].as_of, saved[0]))
    name, newest = plans[-1]
    before = [saved for saved in plans if newest.as_of - saved[1].as_of >= _WEEK]
    if not before:
        last = {"name": name, "day": str(newest.as_of)}
        raise InputError(Message("input.no-week-between", folder=folder, **last))
    return before[-1], plans[-1]


@click.command(name="diff", epilog="Example: gpucost diff base.json plan.json")
@click.argument("old", metavar="OLD|FOLDER")
@click.argument("new", required=False, metavar="[NEW]")
@options("weekly base.diff style.diff")
@output_options
@language_option
def diff(old: str, new: str | None, base: str | None, style: str | None, output: Output) -> None:
    """Show what changed between two plans: prices, usage, new and removed waste.

    OLD and NEW are written by `gpucost plan -o`. Today's bills in them are compared. Of a FOLDER of
    plans, at least one per week under any name, the newest is compared with last week's.
    """
    if base is not None:
        old, new = base, old
    if new is None and Path(old).is_file():
        plan = load_plan(old)
        if not print_if_json(plan, output):
            print_plan(plan, output)
        return
    change = _this_week(old, output) if new is None else plan_change(load_plan(old), load_plan(new))
    if style is None:
        print_change(change, output)
        return
    from templates.render import render_change  # noqa: PLC0415 - jinja2 only here

    click.echo(render_change(change, lang=current_language()), nl=False)


def _this_week(folder: str, output: Output) -> PlanChange:
    (earlier, old), (later, new) = two_to_compare(folder)
    output.say(f"{later} against {earlier}")
    return plan_change(old, new)


_JOBS_SHOWN = 15


def print_change(change: PlanChange, output: Output) -> None:
    """Print what changed; the sum comes last."""
    if print_if_json(change, output):
        return
    is_full = output.format != "table" or output.verbose
    shown = change.moved if is_full else change.moved[:_JOBS_SHOWN]
    columns = _columns()
    table = Table(
        columns=columns,
        rows=tuple(_row(job) for job in shown),
        right=frozenset(columns[2:]),
        spare=columns[:-4:-1],
    )
    print_table(table, output)
    if output.format != "table":
        return
    if more := len(change.moved) - len(shown):
        print_prose(_("{n} more jobs changed: -v.", n=more))
    if new := _waste(change, "new"):
        print_prose(_("New waste: {names}.", names=new))
    if removed := _waste(change, "gone"):
        print_prose(_("Gone waste: {names}.", names=removed))
    if change.unknown:
        jobs = join(change.unknown)
        print_prose(_("Not in any total because the cost is unknown: {jobs}.", jobs=jobs))
    for job in change.jobs:
        if job.busy_hour_ratio is not None:
            print_prose(_busier(job, job.busy_hour_ratio))
    print_prose(change_text(change))


def _busier(job: JobChange, ratio: float) -> str:
    """Return what the same bill buys now: an hour in which kernels run is cheaper or dearer."""
    words = {"job": job.job, "before": f"{job.busy_before:.0%}", "after": f"{job.busy_after:.0%}"}
    moved = {"change": f"{ratio - 1.0:+.0%}", "usd": _dollars(job.after)}
    return _(
        "{job}: the bill stays {usd}, but its GPUs are busy {after} of the time "
        "(before: {before}): an hour of their work costs {change}.",
        **words,
        **moved,
    )


def _columns() -> tuple[str, ...]:
    return (
        _("job"),
        _("what"),
        _("before"),
        _("after"),
        _("change"),
        _("by price"),
        _("by use"),
        _("by machine"),
    )


def _waste(change: PlanChange, kind: str) -> str:
    """Return what came or went, by job; empty where nothing did."""
    entries = [_("{job}: {paid}", job=o.job, paid=o.code) for o in change.waste if o.what == kind]
    more = len(entries) - _JOBS_SHOWN
    return join(entries[:_JOBS_SHOWN]) + (_(", and {n} more", n=more) if more > 0 else "")


def change_text(change: PlanChange) -> str:
    """Return the sum of a change with its causes in a sentence."""
    totals = change.totals
    parts = join(f"{name} {signed(usd)}" for name, usd in causes(totals) if usd)
    labels = {
        "span": _("{low} to {high}", low=change.earlier, high=change.later),
        "after": f"${show(totals.after)}",
        "period": period_words(change),
    }
    if not parts:
        return _("{span}: {after} {period}, unchanged.", **labels)
    return _(
        "{span}: {before} -> {after} {period} ({change}): {causes}.",
        **labels,
        before=f"${show(totals.before)}",
        change=moved_text(change),
        causes=parts,
    )


def _row(job: JobChange) -> tuple[str, ...]:
    return (
        job.job,
        word("change", job.what),
        _dollars(job.before),
        _dollars(job.after),
        _("unknown") if job.moved_usd is None else signed(job.moved_usd),
        *(
            "" if usd is None else signed(usd)
            for usd in (job.price_usd, job.usage_usd, job.machine_usd)
        ),
    )


def _dollars(usd: Decimal | None) -> str:
    return "" if usd is None else f"${show(usd)}"
