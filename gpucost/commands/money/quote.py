"""`gpucost quote`: price one use of one or several machines, or one option of a plan."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import click

from gpucost.arguments.command_group import DefaultGroup
from gpucost.arguments.parameters import MOST_MACHINES, USAGE_OPTIONS, options, today
from gpucost.files.plan_file import DEFAULT_PLAN
from gpucost.files.quote_documents import (
    OWN,
    OwnershipCosts,
    PrintedQuote,
    QuoteRequest,
    find_offer,
    offer_document,
    own_document,
    plan_document,
)
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import Output, Table, output_options, print_if_json, print_table
from planner.models.document import encode
from pricing.alternatives import Swing
from pricing.billing.lines import KINDS
from pricing.catalog.catalog import Catalog
from pricing.catalog.price_age import age_text
from pricing.errors import InputError
from pricing.money import line_text, price_text, show


def _request(typed: dict[str, Any], *, of_offers: bool) -> QuoteRequest:
    """Return the use to be priced, of the options as they were typed.

    Raises:
        UsageError: the options contradict each other, or a duration is missing.
    """
    duration, monthly = typed.pop("duration"), typed.pop("monthly")
    start, as_of, purchase = typed.pop("start"), typed.pop("as_of"), typed.pop("purchase")
    if monthly and (duration is not None or start is not None):
        raise click.UsageError("--monthly excludes --duration and --start; leave them out.")
    if start is not None and as_of is not None:
        raise click.UsageError("--start already gives the day; leave out --as-of.")
    if typed["interrupted"] and purchase != "spot":
        raise click.UsageError("--interrupted is for spot machines; add --purchase spot.")
    if of_offers and duration is None and not monthly:
        raise click.UsageError("--duration is required, such as --duration 90m, or --monthly.")
    return QuoteRequest(
        day=start.date() if start is not None else as_of or today(),
        duration_s=None if monthly else duration,
        purchase=purchase,
        price=typed.pop("price"),
        start=start,
        use={name: value for name, value in typed.items() if value is not None},
    )


def quote_offers(
    names: tuple[str, ...], typed: dict[str, Any], say: Callable[[str], None]
) -> list[PrintedQuote | OwnershipCosts]:
    """Return the quote of each offer, and of one's own machine where `own` is named.

    Args:
        names: the offers, or `own`.
        typed: the options of `gpucost quote offer` by name; it is used up.
        say: told where the catalog is from.

    Raises:
        UsageError: the options contradict each other.
        InputError: offers are not known; all of them are named.
    """
    places = [name for name in names if name != OWN]
    request = _request(typed, of_offers=bool(places))
    catalog = load_catalog(request.day, say=say)
    _check_places(places, request, catalog)
    return [
        own_document(tuple(find_offer(offer_name, request, catalog) for offer_name in places))
        if name == OWN
        else offer_document(name, request, catalog)
        for name in names
    ]


def _check_places(places: list[str], request: QuoteRequest, catalog: Catalog) -> None:
    """Name every offer that is not known, not only the first."""
    problems: list[str] = []
    for offer_name in places:
        try:
            find_offer(offer_name, request, catalog)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def _default_command(arguments: list[str]) -> str:
    named = any(word == "--option" or word.startswith("--option=") for word in arguments)
    return "plan" if named or any(word.endswith(".json") for word in arguments) else "offer"


@click.group(
    name="quote",
    cls=DefaultGroup,
    default_for=_default_command,
    epilog="Example: gpucost quote digitalocean/gpu-h100x8-640gb --duration 90m --egress 100GiB",
)
def command() -> None:
    """Price the use of machines to the cent, with the formula of every line.

    Several offers are shown side by side. `own` is the machine in [own_hardware] of gpucost.toml.
    """


@command.command(
    name="offer",
    listed="quote offer",
    epilog="Example: gpucost quote offer digitalocean/gpu-h100x1-80gb --monthly",
)
@click.argument("what", nargs=-1, metavar="PROVIDER/TYPE[/REGION]...|own")
@options(
    "duration monthly count purchase price.quote interrupted egress.quote storage.quote "
    f"storage-kind {USAGE_OPTIONS} start as-of",
    count={"type": click.IntRange(1, MOST_MACHINES)},
    interrupted={"default": None},
)
@output_options
@refreshing_prices
def offer(what: tuple[str, ...], output: Output, **typed: Any) -> None:
    """Price one use of one or several offers side by side; `own` is your own machine."""
    if not what:
        raise click.UsageError("no offer given: name PROVIDER/TYPE, or --option JOB/ID of a plan.")
    show_documents(quote_offers(what, typed, output.say), output)


@command.command(
    name="plan",
    listed="quote plan",
    epilog="Example: gpucost quote plan plan.json --option train/o1",
)
@click.argument("what", nargs=-1, metavar="[PLAN]")
@options("option.quote")
@output_options
def plan(what: tuple[str, ...], option_id: str | None, output: Output) -> None:
    """Price an option of a plan, with its own hours, machines, data and day."""
    if len(what) > 1:
        raise click.UsageError("one plan at a time: give PLAN and --option JOB/ID.")
    if option_id is None:
        raise click.UsageError("--option JOB/ID is required, such as --option train/o1.")
    show_documents([plan_document(what[0] if what else DEFAULT_PLAN, option_id)], output)


_COLUMNS = ("line", "USD", "how", "rule", "offer", "price")
_SWINGS_SHOWN = 3

_ROUNDED = "rounded half up to cents"


def show_documents(documents: Sequence[PrintedQuote | OwnershipCosts], output: Output) -> None:
    """Print the documents: JSON is one object, or an array of several."""
    if print_if_json(documents[0] if len(documents) == 1 else documents, output):
        return
    quotes = [document for document in documents if isinstance(document, PrintedQuote)]
    if len(quotes) > 1 and output.format != "csv":
        print_table(_side_by_side(quotes), output)
    elif quotes:
        print_table(_bill(quotes, output), output)
    for document in documents:
        if isinstance(document, OwnershipCosts):
            _show_own(document, output)
    for text in dict.fromkeys(text for quote in quotes for text in quote.warnings):
        output.say(f"note: {text}")
    if quotes and output.format == "table":
        output.say(_answer(quotes))
    for quote in quotes if output.verbose else ():
        output.say(f"source: {quote.offer.source}")
        output.say(json.dumps(encode(quote.offer)))


def _bill(quotes: list[PrintedQuote], output: Output) -> Table:
    """Return every line of every bill, one below the other."""
    wide = {"csv": 6, "md": 4}.get(output.format, 4 if output.verbose else 3)
    rows: list[tuple[str, ...]] = []
    for quote in quotes:
        label, read = _offer_name(quote), _read(quote)
        rows += [
            (line.what, _shown(line.usd, output), line.how, line.rule, label, read)
            for line in quote.lines
        ]
        how = "at least: a part has no known price" if quote.at_least else _ROUNDED
        rows.append(("total", _shown(quote.total, output), how, "", label, read))
        rows += [
            (
                f"month of {month.hours} h",
                _shown(month.total, output),
                "the whole bill",
                "",
                label,
                read,
            )
            for month in quote.months or ()
        ]
    first = quotes[0]
    return Table(
        columns=_COLUMNS[:wide],
        rows=tuple(row[:wide] for row in rows),
        right=frozenset(("USD",)),
        title=f"{_offer_name(first)} x{first.count}, {first.offer.purchase}, price {_read(first)}",
    )


def _side_by_side(quotes: list[PrintedQuote]) -> Table:
    """Return a table with one row a bill, one column a kind of line."""
    kinds = [kind for kind in KINDS if any(_sum(quote, kind) is not None for quote in quotes)]
    hours = [month.hours for month in quotes[0].months or ()]
    columns = ("offer", "GPUs", "GPU", "purchase", "USD/h", *kinds, "total")
    columns += (*(f"{h} h" for h in hours), "price")
    rows = []
    for quote in quotes:
        offer = quote.offer
        sums = (_sum(quote, kind) for kind in kinds)
        row = [
            f"{_offer_name(quote)} x{quote.count}",
            f"{offer.gpu_count * quote.count:g}",
            offer.gpu,
            offer.purchase,
            price_text(offer.usd_per_hour),
            *("" if usd is None else line_text(usd) for usd in sums),
            show(quote.total),
            *(show(month.total) for month in quote.months or ()),
            _read(quote),
        ]
        rows.append(tuple(row))
    right = frozenset(columns) - {"offer", "GPU", "purchase", "price"}
    spare = ("price", "GPUs", "purchase", "GPU", *kinds)
    cut = frozenset(("offer", "GPU"))
    return Table(columns=columns, rows=tuple(rows), right=right, spare=spare, cut=cut)


def _answer(quotes: list[PrintedQuote]) -> str:
    """Return what it comes to; of several the cheapest, and by how much."""
    lowest, *dearer = sorted(quotes, key=lambda quote: quote.total)
    prefix = "at least " if lowest.at_least else ""
    cheapest = f"{prefix}${show(lowest.total)} for {_offer_name(lowest)} x{lowest.count}"
    if not dearer:
        return f"{cheapest}."
    more = show(dearer[0].total - lowest.total)
    return f"cheapest: {cheapest}; the next, {_offer_name(dearer[0])}, is ${more} more."


def _sum(quote: PrintedQuote, kind: str) -> Decimal | None:
    amounts = [line.usd for line in quote.lines if line.what == kind]
    return sum(amounts, Decimal(0)) if amounts else None


def _show_own(document: OwnershipCosts, output: Output) -> None:
    """Print the yearly cost of one's own machine, and from which use it pays."""
    rows = [(cost.what, _shown(cost.usd, output), "a year") for cost in document.costs]
    rows.append(("total", _shown(document.annual_usd, output), "a year, used or not"))
    rows += [
        ("GPU-hour", str(rate.usd), f"at {100 * rate.used_fraction:g} % utilization")
        for rate in document.usd_per_gpu_hour
    ]
    for rival in document.against:
        share = rival.break_even_fraction
        pays_off = f"owning pays off from {100 * share:.1f} % utilization"
        never = f"owning never pays off: it would need {100 * share:.0f} % utilization"
        where = f"against {rival.offer}, {rival.purchase}"
        rows.append((where, str(rival.usd_per_gpu_hour), never if share > 1 else pays_off))
        swings = rival.sensitivity if output.verbose else rival.sensitivity[:_SWINGS_SHOWN]
        rows += [_swing_row(swing) for swing in swings]
    print_table(
        Table(
            columns=("own hardware", "USD", "how"),
            rows=tuple(rows),
            right=frozenset(("USD",)),
            title=f"{document.name}, {document.gpu_count} x {document.gpu}",
        ),
        output,
    )
    for text in document.assumptions:
        output.say(f"note: {text}")


def _swing_row(swing: Swing) -> tuple[str, str, str]:
    ends = sorted((swing.break_even_at_low, swing.break_even_at_high))
    return (
        f"  {swing.figure}",
        "",
        f"{swing.low} to {swing.high}: {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %",
    )


def _offer_name(quote: PrintedQuote) -> str:
    offer = quote.offer
    parts = (offer.provider, offer.instance_type, offer.region)
    return "/".join(part for part in parts if part != "*")


def _read(quote: PrintedQuote) -> str:
    offer = quote.offer
    if any(getattr(warning, "code", "") == "price.undated" for warning in quote.warnings):
        return f"of {offer.as_of.year}, without a day"
    old = age_text((quote.as_of - offer.as_of).days)
    return ", ".join(filter(None, (f"read {offer.as_of}", old)))


def _shown(usd: Decimal, output: Output) -> str:
    """Return an exact amount as people write it; in CSV, which programs read, as it is."""
    return f"{usd:f}" if output.format == "csv" else line_text(usd)
