"""Prints what `gpucost quote` found: one bill line by line, several side by side."""

import json
from collections.abc import Sequence
from decimal import Decimal

from gpucost.files.quote_values import OwnershipDocument, QuoteDocument, RivalSwing
from gpucost.views.output import Output, Table, print_json, print_table
from planner.plan_document.encode import encode
from pricing.billing.lines import KINDS
from pricing.catalog.dates import STALE_AFTER_DAYS
from pricing.catalog.price_age import is_too_old, sellers_of
from pricing.money import line_text, price_text, show

_COLUMNS = ("line", "USD", "how", "rule", "offer", "price")
_SWINGS_SHOWN = 3
_LEAST_NAME = 30

_ROUNDED = "rounded half up to cents"


def show_documents(documents: Sequence[QuoteDocument | OwnershipDocument], output: Output) -> None:
    """Print the documents: JSON is one object, or an array of several."""
    if output.format == "json":
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    quotes = [document for document in documents if isinstance(document, QuoteDocument)]
    if len(quotes) > 1 and output.format != "csv":
        print_table(_side_by_side(quotes), output)
    elif quotes:
        print_table(_bill(quotes, output), output)
    for document in documents:
        if isinstance(document, OwnershipDocument):
            _show_own(document, output)
    for text in dict.fromkeys(text for quote in quotes for text in quote.warnings):
        output.say(f"note: {text}")
    if quotes and output.format == "table":
        output.say(_answer(quotes))
    for quote in quotes if output.verbose else ():
        output.say(f"source: {quote.offer.source}")
        output.say(json.dumps(encode(quote.offer)))


def _bill(quotes: list[QuoteDocument], output: Output) -> Table:
    """Return every line of every bill, one below the other."""
    wide = {"csv": 6, "md": 4}.get(output.format, 4 if output.verbose else 3)
    rows: list[tuple[str, ...]] = []
    for quote in quotes:
        place, read = _place(quote), _read(quote)
        rows += [
            (line.what, _shown(line.usd, output), line.how, line.rule, place, read)
            for line in quote.lines
        ]
        how = "at least: a part has no known price" if quote.at_least else _ROUNDED
        rows.append(("total", _shown(quote.total, output), how, "", place, read))
        rows += [
            (
                f"month of {month.hours} h",
                _shown(month.total, output),
                "the whole bill",
                "",
                place,
                read,
            )
            for month in quote.months or ()
        ]
    first = quotes[0]
    return Table(
        columns=_COLUMNS[:wide],
        rows=tuple(row[:wide] for row in rows),
        right=frozenset(("USD",)),
        title=f"{_place(first)} x{first.count}, {first.offer.purchase}, price {_read(first)}",
    )


def _side_by_side(quotes: list[QuoteDocument]) -> Table:
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
            f"{_place(quote)} x{quote.count}",
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
    return Table(
        columns=columns, rows=tuple(rows), right=right, spare=spare, cut=cut, least_name=_LEAST_NAME
    )


def _answer(quotes: list[QuoteDocument]) -> str:
    """Return what it comes to; of several the cheapest, and by how much."""
    least, *others = sorted(quotes, key=lambda quote: quote.total)
    most = "at least " if least.at_least else ""
    told = f"{most}${show(least.total)} for {_place(least)} x{least.count}"
    if not others:
        return f"{told}."
    more = show(others[0].total - least.total)
    return f"cheapest: {told}; the next, {_place(others[0])}, is ${more} more."


def _sum(quote: QuoteDocument, kind: str) -> Decimal | None:
    amounts = [line.usd for line in quote.lines if line.what == kind]
    return sum(amounts, Decimal(0)) if amounts else None


def _show_own(document: OwnershipDocument, output: Output) -> None:
    """Print the yearly cost of one's own machine, and from which use it pays."""
    rows = [(cost.what, _shown(cost.usd, output), "a year") for cost in document.costs]
    rows.append(("total", _shown(document.annual_usd, output), "a year, used or not"))
    rows += [
        ("GPU-hour", str(rate.usd), f"used {100 * rate.used_fraction:g} % of the hours")
        for rate in document.usd_per_gpu_hour
    ]
    for rival in document.against:
        share = rival.break_even_fraction
        said = f"owning pays from {100 * share:.1f} % of the hours on"
        never = f"owning never pays: it would need {100 * share:.0f} % of the hours"
        where = f"against {rival.offer}, {rival.purchase}"
        rows.append((where, str(rival.usd_per_gpu_hour), never if share > 1 else said))
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


def _swing_row(swing: RivalSwing) -> tuple[str, str, str]:
    ends = sorted((swing.break_even_at_low, swing.break_even_at_high))
    return (
        f"  {swing.figure}",
        "",
        f"{swing.low} to {swing.high}: {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %",
    )


def _place(quote: QuoteDocument) -> str:
    offer = quote.offer
    parts = (offer.provider, offer.instance_type, offer.region)
    return "/".join(part for part in parts if part != "*")


def _read(quote: QuoteDocument) -> str:
    offer = quote.offer
    days = (quote.as_of - offer.as_of).days
    stale = is_too_old(sellers_of(offer.provider, offer.purchase), days)
    old = f", {days} days old" if days > STALE_AFTER_DAYS else ""
    return f"read {offer.as_of}" + (", stale" if stale else old)


def _shown(usd: Decimal, output: Output) -> str:
    """Return an exact amount as people write it; in CSV, which programs read, as it is."""
    return f"{usd:f}" if output.format == "csv" else line_text(usd)
