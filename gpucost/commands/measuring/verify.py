"""`gpucost verify`: whether a change made a job faster, what that is worth, how certain it is."""

from datetime import UTC, date, datetime
from decimal import Decimal

import click

from gpucost.arguments.parameters import options, today
from gpucost.commands.money.bills import read_bills
from gpucost.files.outcomes import NAME, record_outcome
from gpucost.files.plan_file import load_plan
from gpucost.files.writing import state_folder, write_file
from gpucost.prices.cache import load_catalog
from gpucost.profiling.run_files import read_run
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from planner.choice.requirements import Requirements
from planner.models.document import to_text
from planner.plan.plan import Plan
from planner.proof.comparability import CHANGEABLE
from planner.proof.outcome import outcome_of
from planner.proof.verify import Assumptions, Proof, Verification, verify
from pricing.errors import InputError
from pricing.money import plain, show
from providers.private_files import NotOursError
from templates.report_text import signed


@click.command(
    name="verify",
    epilog="Example: gpucost verify before.json after.json --plan plan.json --report proof.md",
)
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@options(
    "plan option.verify bill job changed price hours-per-month as-of "
    "no-record output.verify report.verify",
    changed={"type": click.Choice(CHANGEABLE)},
)
@output_options
def command(
    before: str,
    after: str,
    plan_path: str | None,
    chosen: str | None,
    bills: tuple[str, ...],
    job: str | None,
    changed: tuple[str, ...],
    price: Decimal | None,
    hours_per_month: float | None,
    as_of: date | None,
    target: str | None,
    report_path: str | None,
    output: Output,
    *,
    no_record: bool,
) -> None:
    """Prove whether a change made a job faster or cheaper.

    BEFORE and AFTER are what `plan` takes, of one job each. Two different jobs are refused.
    """
    if chosen is not None and plan_path is None:
        raise InputError("--option names an option of a plan: give --plan, too.")
    assumptions = Assumptions(
        plan=load_plan(plan_path) if plan_path else None,
        option=chosen,
        changed=changed,
        bills=read_bills(bills),
        requirements=Requirements(price_usd_per_hour=price, hours_per_month=hours_per_month),
    )
    runs = [read_run(path, job, output.say) for path in (before, after)]
    proof = verify(
        runs[0], runs[1], assumptions, lambda: load_catalog(as_of or today(), say=output.say)
    )
    document = proof.verification
    if assumptions.plan is not None and not no_record:
        _record(proof, assumptions.plan, output)
    _write(document, target, report_path, output)
    if target != "-":
        _print(document, output)


def _record(proof: Proof, plan: Plan, output: Output) -> None:
    """Store what became of the plan's prediction; only note what keeps it from being stored."""
    outcome = outcome_of(proof, plan, datetime.now(UTC))
    if outcome is None:
        return
    folder = state_folder()
    try:
        if record_outcome(folder, outcome):
            output.say(f"recorded in {folder / NAME}: `gpucost accuracy --mine` shows your record.")
    except (OSError, NotOursError) as error:
        output.say(f"warning: the outcome is not recorded: {error}")


def _write(
    document: Verification, target: str | None, report_path: str | None, output: Output
) -> None:
    if target is not None:
        write_file(target, to_text(document))
    if report_path is not None:
        from templates.render import render_proof  # noqa: PLC0415 - jinja2 only for reports

        write_file(report_path, render_proof(document))
    for path in (target, report_path):
        if path not in (None, "-"):
            output.say(f"wrote {path}")


def _print(document: Verification, output: Output) -> None:
    if output.format == "json":
        print_json(document)
    elif output.format == "md":
        from templates.render import render_proof  # noqa: PLC0415 - jinja2 only for reports

        click.echo(render_proof(document), nl=False)
    else:
        print_verification(document, output)


_COLUMNS = ("what", "low", "mid", "high", "how sure")


def print_verification(document: Verification, output: Output) -> None:
    """Print the verdict and the figures behind it; what a reader must know is said beside."""
    title = f"{document.job}: {document.verdict}: {document.why}"
    rows = (_speed(document), *_predicted(document), *_saves(document, output), *_bill(document))
    table = Table(
        title="" if output.format == "csv" else title,
        columns=_COLUMNS,
        rows=rows,
        right=frozenset(_COLUMNS[1:4]),
    )
    print_table(table, output)
    for difference in document.same_job.differs:
        output.say(
            f"differs: {difference.what}: {difference.before} before, {difference.after} after."
        )
    output.say(document.losses.why)
    for note in document.notes:
        output.say(f"note: {note}")


def _speed(document: Verification) -> tuple[str, ...]:
    speed = document.speedup
    if speed is None:
        return ("speed-up measured", "", "unknown", "", "too few steps")
    ends = (f"{x:.3g}x" for x in (speed.low, speed.mid, speed.high))
    return ("speed-up measured", *ends, f"{speed.confidence:.0%} interval")


def _predicted(document: Verification) -> list[tuple[str, ...]]:
    prediction = document.predicted
    if prediction is None:
        return []
    ends = (
        f"{x:.3g}x"
        for x in (prediction.speedup.low, prediction.speedup.mid, prediction.speedup.high)
    )
    verdict = {True: ": held", False: ": did not hold", None: ""}[prediction.held]
    return [(f"speed-up predicted ({prediction.option})", *ends, f"90% interval{verdict}")]


def _saves(document: Verification, output: Output) -> list[tuple[str, ...]]:
    saves = document.saves
    if saves is None:
        return []
    money = plain if output.format == "csv" else show
    share = "" if saves.fraction is None else f"{saves.fraction:+.0%} of the bill before"
    rows: list[tuple[str, ...]] = [
        (
            f"USD saved a {saves.period}",
            money(saves.low),
            money(saves.usd),
            money(saves.high),
            share,
        ),
        ("USD before", "", money(saves.usd_before), "", f"{saves.hours_before:.4g} h"),
        ("USD after", "", money(saves.usd_after), "", f"{saves.hours_after:.4g} h"),
    ]
    if document.predicted is not None and document.predicted.usd is not None:
        rows.append(("USD after, predicted", "", money(document.predicted.usd), "", ""))
    return rows


def _bill(document: Verification) -> list[tuple[str, ...]]:
    bill = document.bill
    if bill is None:
        return []
    off = f"{signed(bill.difference_usd)} against ${show(bill.measured_usd)} by measurement"
    return [("USD on the invoice", "", show(bill.billed_usd), "", off)]
