"""`gpucost bill` and `gpucost reconcile`: what an invoice says, alone and against a plan."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from typing import TypeVar

import click
from msgspec import structs

from gpucost.arguments.parameters import TYPES, options, today
from gpucost.files.plan_file import is_plan, load_plan
from gpucost.live.sources import read_sources
from gpucost.prices.cache import load_catalog
from gpucost.views.output import (
    Output,
    Table,
    language_option,
    output_options,
    print_if_json,
    print_table,
    terminal_width,
)
from planner.bills.bill import NO_RATES, Bill, Rates
from planner.bills.formats import read_bill
from planner.bills.leftovers import ReviewedLine, ReviewFinding, gpu_sizes
from planner.bills.reconcile import ComparedLine, MatchedTotal, Reconciliation, reconcile
from planner.bills.review import Measured, Review, ReviewedMachine, review
from planner.documents.selection import select
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import plain, show, sum_exactly, usd
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Stream
from templates.language.translate import ExchangeRate, _, join, showing, translate_text, word
from templates.report_text import other_currency

_DEAREST_USD = 4  # the Kuwaiti dinar, the dearest currency, is worth 3.2 to 3.3


def _rates(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Rates:
    """Return the dollars for one unit of each currency of `--bill-rate CUR=RATE`."""
    rates: dict[str, Decimal] = {}
    for text in texts:
        currency, _equals, rate = text.partition("=")
        try:
            rates[currency.upper()] = usd(rate)
        except InputError:
            rates[currency.upper()] = Decimal(0)
        if not re.fullmatch(r"[A-Za-z]{3}", currency) or rates[currency.upper()] <= 0:
            raise click.BadParameter(f"{text!r} is not CUR=RATE, such as EUR=1.08")
        if rates[currency.upper()] > _DEAREST_USD:
            raise click.BadParameter(
                f"{text!r}: no currency is worth over {_DEAREST_USD} US dollars. If {rate} "
                f"{currency} are one, say {currency}={1 / rates[currency.upper()]:.4f}"
            )
    return rates


def read_bills(paths: tuple[str, ...], rates: Rates = NO_RATES) -> tuple[Bill, ...]:
    """Return every file of a bill; `-` is standard input.

    Raises:
        InputError: a file is not a bill, has problems, or is given twice; of all files together.
    """
    bills, problems = [], []
    names: dict[str | None, str] = {}
    for path in paths:
        try:
            with Stream(path, sys.stdin.buffer if path == "-" else None) as stream:
                payload = stream.load()
            if payload.sha256 in names:
                problems.append(f"{path}: the same bill as {names[payload.sha256]}; give it once.")
                continue
            names[payload.sha256] = path
            bills.append(read_bill(payload.name, payload.text, rates))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return tuple(bills)


def _shown(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Rates, ExchangeRate | None]:
    """Return rates for the bill, and the one that totals are shown in; today's without a day."""
    dated = (text if "@" in text else f"{text}@{today()}" for text in texts)
    shown = [TYPES["rate"].convert(text, parameter, context) for text in dated]
    rates = {rate.currency: 1 / rate.per_usd for rate in shown}
    return rates, shown[-1] if shown else None


@click.command(name="bill", epilog="Example: gpucost bill invoice.csv --tz Europe/Berlin")
@click.argument("paths", nargs=-1, required=True, metavar="INVOICE... [PLAN]")
@options(
    "option tz measured bill-rate fx.bill", bill_rate={"callback": _rates}, fx={"callback": _shown}
)
@output_options
@language_option
def bill(
    paths: tuple[str, ...],
    named: tuple[str, ...],
    tz: str | None,
    profiles: tuple[str, ...],
    rates: Rates,
    fx: tuple[Rates, ExchangeRate | None],
    output: Output,
) -> None:
    """Show the GPU spend on an invoice by machine, nights and weekends, and what was unused.

    Unused disks, addresses and commitments are listed with proof and invoice lines. With a PLAN,
    written by `gpucost plan -o`, the plan is compared with the invoice, line by line.

    INVOICE is a FOCUS CSV, an AWS Cost and Usage Report, Azure's cost details, Google Cloud's
    billing export, or DigitalOcean's invoice (CSV, JSON) or billing insights. The format is
    recognized by content; .gz is read directly.
    """
    rates, plans = {**fx[0], **rates}, [path for path in paths if is_plan(path)]
    if plans:
        invoices = tuple(path for path in paths if path not in plans)
        if len(plans) > 1 or not invoices:
            raise InputError(
                "compare one plan with at least one invoice: gpucost bill INVOICE PLAN."
            )
        with showing(fx[1]):
            _reconcile(plans[0], invoices, named, rates, output)
        return
    zone = Hints(tz=tz).zone or UTC
    bills = read_bills(paths, rates)
    sizes = gpu_sizes(load_catalog(say=output.say))
    document = review(bills, sizes, zone=zone, measured=_measured(profiles, output))
    options_set = (
        Message("invoice.given-rate", currency=currency, rate=f"{rate:.6g}")
        for currency, rate in rates.items()
    )
    document = structs.replace(document, notes=(*options_set, *document.notes))
    if not print_if_json(document, output):
        with showing(fx[1]):
            print_review(document, output)


def _measured(profiles: tuple[str, ...], output: Output) -> Measured:
    """Return the machines that were profiled."""
    if not profiles:
        return frozenset()
    machines = (profile.hardware for profile in read_sources(profiles, output.say))
    return frozenset(
        (machine.provider.lower(), machine.instance_type.lower())
        for machine in machines
        if machine.provider and machine.instance_type
    )


_MACHINES = ("machine", "gpu", "purchase", "machines", "hours", "GPU hours", "USD", "%")
_FINDINGS = ("unused", "what", "where", "USD", "lines", "proof")
_CUT_IN_MACHINES = frozenset(("machine",))
_CENT = Decimal("0.01")
_CODES = {"idle-address": "address", "idle-disk": "disk", "idle-commitment": "commitment"}


def print_review(document: Review, output: Output) -> None:
    """Print GPU dollars by machine, what nobody used, and say what to measure first.

    In csv only the machines: a CSV file is one table.
    """
    if output.format != "csv":
        _say_totals(document, output)
    total = document.totals.gpu_usd
    rows = tuple(_machine(item, total, output) for item in document.machines)
    right, spare = frozenset(_MACHINES[3:]), ("purchase", "machines", "GPU hours")
    print_table(
        Table(columns=_MACHINES, rows=rows, right=right, spare=spare, cut=_CUT_IN_MACHINES), output
    )
    if output.format == "csv":
        return
    smallest = Decimal(0) if output.verbose else _CENT
    listed = [item for item in document.findings if item.usd >= smallest]
    if listed:
        if output.format == "md":
            click.echo()
        findings = tuple(_finding(item) for item in listed)
        print_table(
            Table(
                columns=_FINDINGS,
                rows=findings,
                right=frozenset(("USD", "lines")),
                spare=("where",),
            ),
            output,
        )
    if more := len(document.findings) - len(listed):
        output.say(_("{n} more of less than a cent each: -v", n=more))
    _say_review(document, output)


def _say_totals(document: Review, output: Output) -> None:
    """Say what the invoice comes to, and what that is made of."""
    totals = document.totals
    sums = {
        _("GPU"): totals.gpu_usd,
        _("other use"): totals.usd - totals.gpu_usd,
        _("credits and refunds"): totals.credit_usd,
        _("taxes"): totals.tax_usd,
        _("fees"): totals.fee_usd,
    }
    parts = join(f"{name} {_amount(usd)}" for name, usd in sums.items() if usd)
    text = _("Invoice total USD {total}", total=_amount(totals.invoice_usd))
    if (by_use := sum_exactly(sums.values())) != totals.invoice_usd:
        text += _("; by use USD {total}", total=_amount(by_use))
    output.say(f"{text}: {parts}")
    if totals.leftover_usd:
        output.say(_("Unused: USD {usd} of it", usd=_amount(totals.leftover_usd)))
    named = any(getattr(note, "code", None) == "invoice.names-gpu" for note in document.notes)
    if not document.machines and not named:
        output.say(_("this bill has no machine with a GPU."))


def _say_review(document: Review, output: Output) -> None:
    week = document.by_part
    parts = (
        (_("Monday to Friday, 8 to 20 h"), week.workday_usd),
        (_("nights"), week.night_usd),
        (_("weekends"), week.weekend_usd),
        (_("hours that the bill does not tell"), week.unknown_usd),
    )
    if parts_text := join(f"{name} USD {show(usd)}" for name, usd in parts if usd):
        output.say(_("when ({zone}): {parts}.", zone=document.zone, parts=parts_text))
    for item in document.undecided:
        ask = _(" Ask: {command}", command=item.look_up) if item.look_up else ""
        output.say(
            _(
                "{provider}: the bill does not show whether its {what} (USD {usd}) is in use.",
                what=word("leftover", item.what),
                provider=item.provider,
                usd=show(item.usd),
            )
            + ask
        )
    first = document.measure_first
    if first is not None:
        machine, usd = first.machine, show(first.usd)
        output.say(_("measure first: {machine} (USD {usd}), there:", machine=machine, usd=usd))
        for line in first.commands:
            output.say(f"  {line}")
    for note in document.notes:
        output.say(_("note: {note}", note=translate_text(note)))


def _amount(usd: Decimal) -> str:
    return show(usd) + other_currency(usd)


def _machine(machine: ReviewedMachine, total: Decimal, output: Output) -> tuple[str, ...]:
    return (
        "/".join(
            part for part in (machine.provider, machine.instance_type, machine.region) if part
        ),
        machine.gpu or "",
        machine.purchase or "",
        "" if machine.machines is None else str(machine.machines),
        *("" if hours is None else f"{hours:g}" for hours in (machine.hours, machine.gpu_hours)),
        plain(machine.usd) if output.format == "csv" else show(machine.usd),
        f"{min(machine.usd / total, Decimal(1)):.1%}" if total else "",
    )


def _finding(finding: ReviewFinding) -> tuple[str, ...]:
    return (
        word("leftover", _CODES[finding.code]),
        finding.what,
        "/".join(part for part in (finding.provider, finding.region) if part),
        show(finding.usd),
        _lines(finding.lines),
        translate_text(finding.proof),
    )


def _lines(lines: tuple[ReviewedLine, ...]) -> str:
    """Return the first line and how many follow."""
    more = len(lines) - 1
    return _("{one} and {n} more", one=lines[0].source, n=more) if more else lines[0].source


def _reconcile(
    plan_path: str, paths: tuple[str, ...], named: tuple[str, ...], rates: Rates, output: Output
) -> None:
    plan = load_plan(plan_path)
    bills = read_bills(paths, rates)
    chosen, missing = select(plan, named)
    document = reconcile(plan, chosen, bills, missing)
    if not named and (unchanged := _on_todays(plan, document, bills)):
        chosen, missing = select(plan, (f"{job}/o0" for job in unchanged))
        document = reconcile(plan, chosen, bills, missing)
        output.say(
            _(
                "{jobs}: the bill has today's machine and not the recommended one, so today's is "
                "compared; --option chooses.",
                jobs=join(unchanged),
            )
        )
    if not print_if_json(document, output):
        print_reconciliation(document, output)


def _on_todays(plan: Plan, advised: Reconciliation, bills: Sequence[Bill]) -> list[str]:
    """Return the jobs whose machine of today is on the bill, while the recommended one is not."""

    def billed(document: Reconciliation) -> set[str]:
        lines = (line for line in document.lines if line.match == "both" and line.what == "compute")
        return {job for line in lines for job in line.jobs}

    moved = billed(advised)
    unmoved = [job.name for job in plan.jobs if job.name not in moved and job.baseline.offer]
    if not unmoved:
        return []
    today, _ = select(plan, (f"{name}/o0" for name in unmoved))
    charged_today = billed(reconcile(plan, today, bills))
    return [name for name in unmoved if name in charged_today]


_LINE_COLUMNS = (
    "match",
    "what",
    "where",
    "purchase",
    "jobs",
    "hours predicted",
    "hours billed",
    "USD predicted",
    "USD billed",
    "difference",
    "%",
)
_RIGHT = frozenset(_LINE_COLUMNS[5:])
_CUT_IN_LINES, _WHOLE = frozenset(("where", "jobs")), frozenset(("what",))
_SPARE = ("hours predicted", "hours billed", "purchase", "jobs", "%")
_MATCHES = {"both": "both", "plan": "plan only", "bill": "bill only", "apart": "apart"}
_SHOWN = 20


def print_reconciliation(document: Reconciliation, output: Output) -> None:
    """Print the lines of a comparison, then its totals."""
    short = output.format == "table" and not output.verbose
    hidden = [line for line in document.lines if line.match == "bill"][_SHOWN:] if short else []
    rows = [_line_row(line, output) for line in document.lines if line not in hidden]
    totals = document.totals
    if output.format != "csv" and totals.matched.difference_usd is not None:
        rows.append(_total_row(totals.matched))
    print_table(_lines_table(tuple(rows)), output)
    for text in _hours_apart(document) if output.format == "table" else ():
        output.say(text)
    if hidden:
        output.say(_("{n} more lines that only the bill has, with -v.", n=len(hidden)))
    for note in document.notes:
        output.say(_("note: {note}", note=translate_text(note)))
    output.say(
        _(
            "planned USD {planned}, billed USD {billed} for use, and USD {apart} of taxes, "
            "credits and fees.",
            planned=_cell(totals.predicted_usd, show),
            billed=_cell(totals.actual_usd, show),
            apart=_cell(totals.apart_usd, show),
        )
    )


_Value = TypeVar("_Value")
_WIDE = 120  # columns of a terminal in which the table shows the hours
_LIKE_HOURS = 0.05


def _hours_apart(document: Reconciliation) -> Iterator[str]:
    """Yield the hours of lines that differ in them, where the table has no room for them."""
    for line in document.lines if terminal_width() < _WIDE else ():
        planned, billed = line.hours.predicted, line.hours.actual
        if planned and billed and abs(billed / planned - 1.0) > _LIKE_HOURS:
            yield _(
                "{where}: {planned} machine hours planned, {billed} billed.",
                where="/".join(filter(None, (line.provider, line.instance_type))),
                planned=f"{planned:,.6g}",
                billed=f"{billed:,.6g}",
            )


def _lines_table(rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table(
        columns=_LINE_COLUMNS,
        rows=rows,
        right=_RIGHT,
        spare=_SPARE,
        uncut=_WHOLE,
        cut=_CUT_IN_LINES,
    )


def _line_row(line: ComparedLine, output: Output) -> tuple[str, ...]:
    money = show if output.format != "csv" else plain
    parts = (line.provider, line.instance_type, line.region)
    return (
        word("match", _MATCHES[line.match]),
        line.what,
        "/".join(part for part in parts if part),
        line.purchase or "",
        ", ".join(line.jobs),
        _cell(line.hours.predicted, "{:g}".format),
        _cell(line.hours.actual, "{:g}".format),
        _cell(line.predicted_usd, money),
        _cell(line.actual_usd, money),
        _cell(line.difference_usd, money),
        _cell(line.difference_fraction, "{:+.2%}".format),
    )


def _total_row(matched: MatchedTotal) -> tuple[str, ...]:
    return (
        word("match", "both"),
        _("total"),
        *("",) * 5,
        _cell(matched.predicted_usd, show),
        _cell(matched.actual_usd, show),
        _cell(matched.difference_usd, show),
        _cell(matched.difference_fraction, "{:+.2%}".format),
    )


def _cell(value: _Value | None, in_words: Callable[[_Value], str]) -> str:
    return "" if value is None else in_words(value)
