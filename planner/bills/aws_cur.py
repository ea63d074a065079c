"""AWS Cost and Usage Reports, legacy (`lineItem/UsageType`) and 2.0 (`line_item_usage_type`)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from planner.bills import bill as bills
from pricing.listing import listed
from pricing.message import Message

PROVIDER = "aws"
_WORDS = bills.WORDS["cur"]
_UNBLENDED = "line_item_unblended_cost"
_USAGE: Mapping[str, str] = _WORDS["usage"]
_NET: Mapping[str, str] = _WORDS["net"]
_AGREED = frozenset(_WORDS["agreed"])
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_Row = Mapping[str, str]


def is_cur(header: str) -> bool:
    """Return whether the first line of a file names a report's columns."""
    return "lineItem/UsageType" in header or "line_item_usage_type" in header


def read(name: str, text: str, rates: bills.Rates = bills.NO_RATES) -> bills.Bill:
    """Return a report.

    Raises:
        InputError: columns are missing, its currency has no rate, or cells are not amounts or
            times; all are listed.
    """
    rows = list(bills.csv_rows(name, text, lambda c: _HUMP.sub("_", c).replace("/", "_").lower()))
    missing = [column for column in _WORDS["needed"] if rows and column not in rows[0][1]]
    bills.refuse(f"{name}:1: the report has no {column}; include it." for column in missing)
    spread: Counter[str] = Counter()
    untold: dict[str, None] = {}
    by_line = any(row["line_item_line_item_type"] in _AGREED for _, row in rows)
    columns = {} if by_line else _NET

    def net(row: _Row) -> _Row:
        named = {cost: bills.present(row.get(column)) for cost, column in columns.items()}
        return {**row, **{cost: cell for cost, cell in named.items() if cell}}

    def charges(row: _Row) -> Iterable[bills.BillLine]:
        kind = row["line_item_line_item_type"]
        if kind not in _WORDS["fees"]:
            return (_line(net(row), rates),)
        if not _tells_unused(row):
            untold[_WORDS["unused"][kind]] = None
        lines = _unused(row, rates)
        spread[kind] += not lines
        return lines

    bill = bills.read_charges(
        name,
        "AWS Cost and Usage Report",
        rows,
        charges,
        identified=lambda row: bills.present(row.get("identity_line_item_id")),
        invoiced=lambda row: _usd(net(row), _UNBLENDED, rates),
    )
    notes = [Message("invoice.untold", file=name, columns=columns) for columns in untold]
    if kinds := [f"{kind} {count}" for kind, count in sorted(spread.items()) if count]:
        notes.append(Message("invoice.spread", file=name, kinds=listed(kinds, len(kinds))))
    return replace(bill, notes=(*notes, *bill.notes))


def _tells_unused(row: _Row) -> bool:
    """Return whether a fee has what was unused of it, or has no such part."""
    more, less = _WORDS["fees"][row["line_item_line_item_type"]]
    columns = (*more, *less)
    return all(bills.present(row.get(column)) for column in columns) or (
        not less and all(column in row for column in columns)
    )


def _line(row: _Row, rates: bills.Rates) -> bills.BillLine:
    type_ = row["line_item_line_item_type"]
    amount = _usd(row, _USAGE.get(type_, _UNBLENDED), rates)
    usage_type = row["line_item_usage_type"]
    description = bills.present(row.get("line_item_line_item_description")) or usage_type
    line = bills.BillLine(
        kind=_WORDS["apart"].get(type_, "credit"),
        usd=amount,
        provider=PROVIDER,
        description=f"{type_}: {description}",
        start=bills.moment_of(row["line_item_usage_start_date"]),
        end=bills.moment_of(row["line_item_usage_end_date"]),
    )
    agreed = type_ in _AGREED
    if type_ not in _USAGE and not agreed:
        return line
    on_top = row.get("line_item_product_code") == "ElasticMapReduce"  # of EC2's own line
    usage = bills.usage_of_type("" if on_top else usage_type)
    hours = "0" if agreed else bills.present(row.get("line_item_usage_amount"))
    return replace(
        line,
        kind=usage.kind,
        description=description,
        instance_type=usage.instance_type,
        region=bills.present(row.get("product_region_code"))
        or bills.present(row.get("product_region")),
        purchase=(usage.purchase if agreed or type_ == "Usage" else bills.RESERVED)
        if usage.purchase
        else None,
        hours=bills.dollars(hours) if hours and usage.kind == bills.MACHINE else None,
        resource=bills.present(row.get("line_item_resource_id")),
        account=bills.present(row.get("line_item_usage_account_id")),
        zone=bills.present(row.get("line_item_availability_zone")),
        idle=True
        if bills.is_unused_capacity(usage_type)
        else bills.says_idle(usage.kind, usage_type, description),
    )


def _unused(row: _Row, rates: bills.Rates) -> tuple[bills.BillLine, ...]:
    """Return what a commitment cost while nothing used it; empty where its fee has no such part.

    The rest of a fee is in the lines of the use that it covers.
    """
    more, less = _WORDS["fees"][row["line_item_line_item_type"]]
    added, subtracted = (
        [bills.dollars(cell) for column in columns if (cell := bills.present(row.get(column)))]
        for columns in (more, less)
    )
    unused = sum(added, Decimal(0)) - sum(subtracted, Decimal(0))
    usd = bills.in_dollars(unused, bills.present(row["line_item_currency_code"]), rates)
    if usd <= 0 or len(subtracted) < len(less):
        return ()
    of = bills.first_of(row, _WORDS["commitments"])
    return (replace(_line(row, rates), kind="fee", usd=usd, idle=True, resource=of),)


def _usd(row: _Row, column: str, rates: bills.Rates) -> Decimal:
    text = bills.present(row.get(column))
    if text is None and column != _UNBLENDED:
        raise ValueError(f"{column} is empty, so what the commitment cost is not known")
    currency = bills.present(row["line_item_currency_code"])
    return bills.in_dollars(bills.dollars(text or "0"), currency, rates)
