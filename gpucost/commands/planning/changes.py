"""`gpucost diff` and `gpucost fleet`: what changed between two plans."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import click

from gpucost.arguments.parameters import language_option
from gpucost.files.plan_file import load_plan
from gpucost.views.output import Output, Table, output_options, print_json, print_prose, print_table
from gpucost.views.plan import print_plan
from planner.documents.plan_change import JobChange, PlanChange, plan_change
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.money import show
from templates.language.translate import ENGLISH, _, join, use_language, word
from templates.report_text import period_name

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan and the name of its file."""

    name: str
    plan: Plan


def two_to_compare(folder: str) -> tuple[KeptPlan, KeptPlan]:
    """Return the latest plan that is a week older than the newest, and the newest.

    Files that are not plans are passed over.

    Raises:
        InputError: there is no such folder, no plan in it, or none that is a week older; says so.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder}: no such folder; --weekly compares the plans in a folder.")
    plans = []
    for path in sorted(place.glob("*.json")):
        try:
            plans.append(KeptPlan(path.name, load_plan(path)))
        except InputError:
            continue
    if not plans:
        raise InputError(
            f"{folder}: holds no plan; `gpucost plan -o {folder}/DAY.json` writes one."
        )
    plans.sort(key=lambda saved: (saved.plan.as_of, saved.name))
    newest = plans[-1]
    before = [saved for saved in plans if newest.plan.as_of - saved.plan.as_of >= _WEEK]
    if not before:
        raise InputError(
            f"{folder}: no plan is a week older than {newest.name} ({newest.plan.as_of}); "
            "compare two by hand: gpucost diff OLD NEW."
        )
    return before[-1], newest


@click.command(name="diff", epilog="Example: gpucost diff base.json plan.json")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--style",
    type=click.Choice(("github-comment",)),
    help="Print a GitHub comment that later runs find and update.",
)
@language_option
@output_options
def diff(old: str, new: str, style: str | None, lang: str, output: Output) -> None:
    """Show what changed between two plans: prices, usage, new and removed waste.

    OLD and NEW are written by `gpucost plan -o`. Today's bills in them are compared.
    """
    change = plan_change(load_plan(old), load_plan(new))
    if style is None:
        with use_language(lang if output.format in ("table", "md") else ENGLISH):
            print_change(change, output)
        return
    from templates.render import render_change  # noqa: PLC0415 - jinja2 only here

    click.echo(render_change(change, lang=lang), nl=False)


@click.command(name="fleet", epilog="Example: gpucost fleet plans/ --weekly")
@click.argument("where", metavar="PLAN|FOLDER")
@click.option("--weekly", is_flag=True, help="Compare the newest plan in FOLDER with last week's.")
@click.option("--base", metavar="PLAN", help="Plan to compare with.")
@output_options
def fleet(where: str, base: str | None, output: Output, *, weekly: bool) -> None:
    """Show the plan of a fleet, or what changed since last week: new and removed waste, prices.

    FOLDER holds plans written by `gpucost plan -o`, at least one per week, under any name.
    """
    if weekly and base is not None:
        raise click.UsageError("give --weekly with a FOLDER, or --base with a PLAN, not both.")
    if weekly:
        old, new = two_to_compare(where)
        output.say(f"{new.name} against {old.name}")
        print_change(plan_change(old.plan, new.plan), output)
    elif base is not None:
        print_change(plan_change(load_plan(base), load_plan(where)), output)
    elif output.format == "json":
        print_json(load_plan(where))
    else:
        print_plan(load_plan(where), output)


_JOBS_SHOWN = 15


def print_change(change: PlanChange, output: Output) -> None:
    """Print what changed; the sum comes last."""
    if output.format == "json":
        print_json(change)
        return
    moved = [job for job in change.jobs if job.what != "stays" or job.before != job.after]
    moved.sort(key=lambda job: -abs((job.after or Decimal(0)) - (job.before or Decimal(0))))
    whole = output.format != "table" or output.verbose
    shown = moved if whole else moved[:_JOBS_SHOWN]
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
    if len(moved) > len(shown):
        print_prose(_("{n} more jobs changed: -v.", n=len(moved) - len(shown)))
    if new := _waste(change, "new"):
        print_prose(_("New waste: {names}.", names=new))
    if removed := _waste(change, "gone"):
        print_prose(_("Gone waste: {names}.", names=removed))
    if change.unknown:
        jobs = join(change.unknown)
        print_prose(_("Not in any total because the cost is unknown: {jobs}.", jobs=jobs))
    print_prose(change_text(change))


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
    moved = totals.after - totals.before
    causes = (
        (_("prices"), totals.price_usd),
        (_("use"), totals.usage_usd),
        (_("other machines"), totals.machine_usd),
        (_("new jobs"), totals.new_jobs_usd),
        (_("jobs that ended"), totals.gone_jobs_usd),
    )
    parts = join(f"{name} {_signed(usd)}" for name, usd in causes if usd)
    words = {
        "span": _("{low} to {high}", low=change.earlier, high=change.later),
        "after": f"${show(totals.after)}",
        "period": period_name(change.period),
    }
    if not parts:
        return _("{span}: {after} {period}, unchanged.", **words)
    return _(
        "{span}: {before} -> {after} {period} ({change}): {causes}.",
        **words,
        before=f"${show(totals.before)}",
        change=_signed(moved),
        causes=parts,
    )


def _row(job: JobChange) -> tuple[str, ...]:
    moved = None
    if None not in (job.before, job.after) or job.what != "stays":
        moved = (job.after or Decimal(0)) - (job.before or Decimal(0))
    return (
        job.job,
        word("change", job.what),
        _dollars(job.before),
        _dollars(job.after),
        _("unknown") if moved is None else _signed(moved),
        *(
            "" if usd is None else _signed(usd)
            for usd in (job.price_usd, job.usage_usd, job.machine_usd)
        ),
    )


def _dollars(usd: Decimal | None) -> str:
    return "" if usd is None else f"${show(usd)}"


def _signed(usd: Decimal) -> str:
    sign = "-" if usd < 0 else "+"
    return f"{sign}${show(abs(usd))}"
