"""A bill as lines of one shape, whatever file it came in, and what its cells and words mean."""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from pricing.errors import InputError
from pricing.hardware import find
from pricing.message import Message
from pricing.money import EXACT, show, sum_exactly, usd
from pricing.tables import read_toml

MACHINE = "compute"
USAGE = (
    MACHINE,
    "disk",
    "snapshot",
    "object-storage",
    "egress",
    "address",
    "control-plane",
    "other",
)
"""Kinds of lines that use of a service makes; "other" is what no plan predicts."""

APART = ("tax", "credit", "fee")
"""Kinds that follow from the account, not from the use: never held against a prediction."""

RESERVED = "reserved"
_SHOWN = 50
_MEND = " Correct it, or export the bill again."
_HOUR_S = 3600
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One charge.

    Attributes:
        kind: of USAGE or APART.
        usd: exact, as the bill has it; negative for a credit.
        provider: our name for it, else the bill's.
        description: the bill's words.
        instance_type: size of the machine; None where the line is of none, or does not say.
        region: None where the bill does not say.
        purchase: on_demand, spot or `reserved`; None where the bill does not say.
        hours: machine hours; None where the bill does not say.
        start: of the use, UTC; None where the bill does not say.
        end: of the use, exclusive, UTC.
        resource: the provider's id or name of what was used; None where the bill does not say.
        account: the account that used it, as `resource`.
        zone: a part of the region, as `resource`.
        gpu: the GPU model, in the bill's words; None where it does not say.
        gpus: GPUs of the machine; None where the bill does not say.
        gpu_hours: of all its GPUs; None where the bill does not count them itself.
        idle: whether the bill itself says that nobody used it, such as an unassigned address or the
            unused part of a commitment; None where it does not say.
        source: file and line.
    """

    kind: str
    usd: Decimal
    provider: str
    description: str
    instance_type: str | None = None
    region: str | None = None
    purchase: str | None = None
    hours: Decimal | None = None
    start: datetime | None = None
    end: datetime | None = None
    resource: str | None = None
    account: str | None = None
    zone: str | None = None
    gpu: str | None = None
    gpus: Decimal | None = None
    gpu_hours: Decimal | None = None
    idle: bool | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.kind not in (*USAGE, *APART) or not self.usd.is_finite():
            raise ValueError(f"no charge: {self.kind!r}, {self.usd!r} ({self.description})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The charges of one file.

    Attributes:
        name: of the file.
        format: what it was recognised as.
        lines: in the file's order.
        invoice_usd: what the invoice comes to; the lines may spread a fee over what it covers.
        notes: what was not counted, and why.
        whole: whether it is of everything that an account used; an export may be of a part.
    """

    name: str
    format: str
    lines: tuple[BillLine, ...]
    invoice_usd: Decimal | None = None
    notes: tuple[str, ...] = ()
    whole: bool = False


Rates = Mapping[str, Decimal]
"""Dollars for one unit of a currency, by its code."""
NO_RATES: Rates = MappingProxyType({})


class _CurrencyError(ValueError):
    """An amount is in a currency whose rate nobody gave."""


def in_dollars(amount: Decimal, currency: str | None, rates: Rates) -> Decimal:
    """Return an amount in US dollars, at the rate that was given for its currency.

    Raises:
        _CurrencyError: there is none.
    """
    if currency in (None, "USD"):
        return amount
    if currency not in rates:
        raise _CurrencyError(
            f"the currency is {currency}. Say what one {currency} is worth in US dollars: "
            f"--bill-rate {currency}=RATE"
        )
    return EXACT.multiply(amount, rates[currency])


def refuse(problems: Iterable[str]) -> None:
    """Raise all problems of a file together, where there are any.

    Raises:
        InputError: the first fifty, and how many more there are.
    """
    listed = list(problems)
    if not listed:
        return
    more = len(listed) - _SHOWN
    raise InputError([*listed[:_SHOWN], *([f"... and {more} problems more."] if more > 0 else [])])


def read_charges(  # noqa: PLR0913 - what the forms have in common, and what they differ in
    name: str,
    form: str,
    records: Iterable[tuple[str, _Record]],
    charges: Callable[[_Record], Iterable[BillLine]],
    *,
    identified: Callable[[_Record], object] = lambda _: False,
    invoiced: Callable[[_Record], Decimal] | None = None,
) -> Bill:
    """Return the bill that records are, each charge with its source, and notes on what repeats.

    A record that repeats another counts once where it names the thing and the time that it charges,
    or where the whole file is proved to stand twice; else it counts, and a note says its dollars.

    Args:
        name: of the file.
        form: what it was recognised as.
        records: where each is, and what it holds.
        charges: of one record; it raises where it cannot tell.
        identified: whether a record names the one thing and the time that it charges.
        invoiced: what a record is on the invoice [USD]; None: what its charges come to.

    Raises:
        InputError: records cannot be read, all listed.
    """
    charged: dict[str, list[BillLine]] = {}
    billed: dict[str, Decimal] = {}
    unique: set[str] = set()
    rows: list[tuple[str, str]] = []
    problems: list[str] = []
    for source, record in records:
        key = str(record)
        rows.append((source, key))
        try:
            if key not in charged:
                charged[key] = list(charges(record))
                usd_of_lines = sum_exactly(line.usd for line in charged[key])
                billed[key] = invoiced(record) if invoiced else usd_of_lines
                unique.update((key,) if identified(record) else ())
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            mend = "" if isinstance(error, _CurrencyError) else _MEND
            problems.append(f"{source}: {reason}.{mend}")
    refuse(problems)
    if _stands_twice(Counter(key for _, key in rows), charged, unique):
        unique = set(charged)
    counted, notes = _once(name, rows, billed, unique)
    lines = tuple(replace(line, source=at) for at, key in counted for line in charged[key])
    total = sum_exactly(billed[key] for _, key in counted)
    return Bill(name=name, format=form, lines=lines, invoice_usd=total, notes=notes)


def _once(
    name: str, rows: list[tuple[str, str]], billed: Mapping[str, Decimal], unique: set[str]
) -> tuple[list[tuple[str, str]], tuple[Message, ...]]:
    """Return the rows, copies left out where that is sure, and notes on what repeats."""
    counted: list[tuple[str, str]] = []
    repeats: defaultdict[str, list[Decimal]] = defaultdict(list)
    first: set[str] = set()
    for source, key in rows:
        if key in first:
            repeats["invoice.repeats" if key in unique else "invoice.alike"].append(billed[key])
        if key not in first or key not in unique:
            counted.append((source, key))
        first.add(key)
    notes = (
        Message(code, file=name, count=len(amounts), usd=show(sum_exactly(amounts)))
        for code, amounts in repeats.items()
        if any(amounts) or code == "invoice.repeats"
    )
    return counted, tuple(notes)


def _stands_twice(
    copies: Mapping[str, int], charged: Mapping[str, Iterable[BillLine]], unique: set[str]
) -> bool:
    """Return whether all records stand equally often, and some can stand only once.

    A machine by name alone is one of them where its copies ran for more hours than their time has.
    """
    if len(copies) == 1 or len(set(copies.values())) > 1 or 1 in copies.values():
        return False
    machines = (
        (line.hours, line.end - line.start)
        for lines in charged.values()
        for line in lines
        if line.kind == MACHINE and line.resource and line.hours and line.start and line.end
    )
    return bool(unique) or any(
        hours * 2 * _HOUR_S > Decimal(int(span.total_seconds())) for hours, span in machines
    )


_NULL = frozenset(("", "null", "none", "\\n"))
_DOLLARS = re.compile(r"(-?)\(?(-?)\$?\s*(-?)([\d,]*\.?\d*(?:[eE][+-]?\d+)?)\)?")
_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d{2}:?\d{2}$)")
_WORD_ZONE = re.compile(r"\s*(?:UTC|GMT)$")
_LONGEST_FIELD = 1 << 24


def present(text: object) -> str | None:
    """Return a cell's text; None where it is empty or one of the ways to write null."""
    value = "" if text is None else str(text).strip()
    return None if value.lower() in _NULL else value


def dollars(text: str) -> Decimal:
    """Return the amount of `$3.11`, `-$3.11`, `($3.11)`, `1,234.56` or `8E-7`, exactly.

    Raises:
        ValueError: it is none of these.
    """
    match = _DOLLARS.fullmatch(text.strip())
    if match is None or not any(c.isdigit() for c in match[4]):
        raise ValueError(f"{text!r} is not an amount")
    try:
        amount = usd(match[4].replace(",", ""))
    except InputError as error:
        raise ValueError(f"{text!r} is not an amount") from error
    minus = "-" in (match[1], match[2], match[3]) or text.strip().startswith("(")
    return -amount if minus else amount


def moment(text: str) -> datetime:
    """Return a time as UTC; one without a zone is UTC already, as every bill says.

    Raises:
        ValueError: it is not a time.
    """
    plain = _BEFORE_OFFSET.sub("", _WORD_ZONE.sub("", text.strip()))
    try:
        when = datetime.fromisoformat(plain)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time") from None


def moment_of(cell: object) -> datetime | None:
    """Return the time in a cell as UTC; None where it is empty.

    Raises:
        ValueError: it is not a time.
    """
    text = present(cell)
    return None if text is None else moment(text)


def first_of(row: Mapping[str, str | None], columns: Iterable[str]) -> str | None:
    """Return the first cell of some columns that is not empty; None where all are."""
    return next((cell for column in columns if (cell := present(row.get(column)))), None)


def csv_rows(
    name: str, text: str, column: Callable[[str], str] = str
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row with its place, FILE:LINE.

    Args:
        name: of the file, for messages.
        text: all of it.
        column: our name of a column, from the file's.

    Raises:
        InputError: rows have another number of cells than the header, or the text is not CSV; all
            such rows are listed.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    first = text.partition("\n")[0]
    european = first.count(";") > first.count(",")
    delimiter = ";" if european else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    problems, rows = [], []
    try:
        header = [column(cell.strip()) for cell in next(reader, [])]
        for row in reader:
            if not any(row):
                continue
            if len(row) == len(header):
                cells = map(_plain, row) if european else row
                rows.append((f"{name}:{reader.line_num}", dict(zip(header, cells, strict=True))))
            else:
                problems.append(
                    f"{name}:{reader.line_num}: {len(row)} cells where the header has "
                    f"{len(header)}; the file is cut or was edited. Download it again."
                )
    except csv.Error as error:
        problems.append(f"{name}:{reader.line_num}: no CSV ({error}). Download it again.")
    refuse(problems)
    yield from rows


_EUROPEAN_NUMBER = re.compile(r"-?(\d+|\d{1,3}(\.\d{3})+),\d+")
_EUROPEAN_DATE = re.compile(r"(\d\d)\.(\d\d)\.(\d{4})(?: (\d\d:\d\d(?::\d\d)?))?")


def _plain(cell: str) -> str:
    """Return a number with a decimal comma or a date with dots as other bills write it."""
    if _EUROPEAN_NUMBER.fullmatch(cell):
        return cell.replace(".", "").replace(",", ".")
    if date := _EUROPEAN_DATE.fullmatch(cell):
        return f"{date[3]}-{date[2]}-{date[1]}T{date[4] or '00:00'}Z"
    return cell


class UsageType(NamedTuple):
    """What an AWS usage type says."""

    kind: str
    instance_type: str | None
    purchase: str | None


# Machines of SageMaker: "Train:ml.p4d.24xlarge", "USE2-Host:ml.g5.xlarge" (its usage reports), and
# "USE1-Studio:JupyterLab-ml.g5.xlarge" (AWS price list).
_SAGEMAKER = re.compile(r"(?:^|-)[A-Z]\w+:(?:[A-Za-z]+-)?(ml\.[\w-]+\.[\w-]+)$")
WORDS = read_toml(str(Path(__file__).with_name("words.toml"))) or {}
"""The tables of `words.toml`."""

_MACHINES: Mapping[str, str] = WORDS["cur"]["machines"]
_MACHINE_TYPE = re.compile(rf"(?:^|-)({'|'.join(_MACHINES)})(?::([\w.-]+))?$")
# "$0.34 per On Demand Linux c5.2xlarge Instance Hour", of AWS price lists and FOCUS exports, and
# "$37.688 per Train:ml.p4d.24xlarge hour" of SageMaker.
_DESCRIBED = re.compile(
    r"\b([a-z][a-z0-9-]*\d[a-z0-9-]*\.[a-z0-9-]+)\b.*instance[ -]hour"
    r"|[:-](ml\.[a-z0-9-]+\.[a-z0-9-]+)\b.*\bhour",
    re.IGNORECASE,
)
# "droplet name (c-2-4GiB)" of DigitalOcean; its name may have parentheses, too.
_SLUG = re.compile(r"\(([a-z][a-z0-9]*(?:-[a-z0-9.]+)+)\)\s*$", re.IGNORECASE)

# What the providers call an address that nothing uses: "PublicIPv4:IdleAddress" (AWS), "Unused
# Floating IP" (DigitalOcean). "Static Ip Charge" of Google Cloud is billed in use, too: not here.
_IDLE = re.compile(r"idle ?address|idle public ip|\b(?:unused|unassigned) (?:floating|reserved) ip")
# Capacity that is reserved and that no machine runs on (AWS CUR user guide).
_UNUSED_BOX = re.compile(r"(?:^|-)Unused(?:Box|Ded)(?::|$)")
_IN_USE = re.compile(r"in-?use ?(?:address|public ip)|in use\b|on a (?:standard|spot)")


def kind_in(table: str, text: str) -> str:
    """Return the kind of the first pattern of a table that is in a text; "other" of none."""
    return next(
        (kind for pattern, kind in WORDS["kinds"][table] if re.search(pattern, text)), "other"
    )


def usage_of_type(text: str) -> UsageType:
    """Return what an AWS usage type is for; a BoxUsage without a size is m1.small, as AWS says."""
    machine = _MACHINE_TYPE.search(text)
    if machine is not None:
        return UsageType(MACHINE, machine[2] or "m1.small", _MACHINES[machine[1]])
    managed = _SAGEMAKER.search(text)
    if managed is not None:
        return UsageType(MACHINE, managed[1], "on_demand")
    return UsageType(kind_in("aws", text), None, None)


def kind_of_words(*texts: str | None) -> str:
    """Return the kind that the words of a line name; "other" where none does."""
    return kind_in("words", " ".join(text for text in texts if text).lower())


def described_size(description: str) -> str | None:
    """Return the instance type in an AWS description of machine hours."""
    match = _DESCRIBED.search(description)
    return (match[1] or match[2]) if match else None


_GPU_WORD = re.compile(
    r"(?<![a-z\d])(?:(\d{1,2})x ?)?([a-z]{1,3}\d{1,4}[a-wyz]*)"
    r"(?:x(\d{1,2}))?(?:[ -](\d{2,3} ?gb))?\b"
)
_SIZE_WORD = re.compile(r"\b([a-z]{1,3}\d[a-z0-9-]*\.(?:\d{0,3}x?large|metal[a-z0-9-]*))\b")


def gpu_in_words(text: str) -> tuple[str | None, Decimal | None]:
    """Return the GPU that words name, and how many where they say so ("h100x8", "8x H100")."""
    for match in _GPU_WORD.finditer(text.lower().replace("_", " ")):
        name, count = match[2].upper(), match[1] or match[3]
        if find(name) is not None:
            sized = f"{name} {match[4]}" if match[4] else name
            return sized if find(sized) else name, Decimal(count) if count else None
    return None, None


def size_in_words(text: str) -> str | None:
    """Return the AWS instance type that words name; None where none does."""
    match = _SIZE_WORD.search(text.lower())
    return match[1] if match else None


def size_in_parentheses(description: str) -> str | None:
    """Return the size at the end of a DigitalOcean description."""
    match = _SLUG.search(description)
    return match[1] if match else None


def says_idle(kind: str, *texts: str | None) -> bool | None:
    """Return whether the provider's words say that nobody used it; None where they do not say.

    Only of addresses: what else has such a word in its line may be named so by its owner.
    """
    if kind != "address":
        return None
    joined = " ".join(text for text in texts if text).lower()
    if _IDLE.search(joined):
        return True
    return False if _IN_USE.search(joined) else None


def is_unused_capacity(usage_type: str) -> bool:
    """Return whether an AWS usage type is of reserved capacity that no machine runs on."""
    return _UNUSED_BOX.search(usage_type) is not None


def may_host(kind: str, text: str) -> bool:
    """Return whether words may be of something that has disks or addresses attached."""
    return any(re.search(pattern, text.lower()) for pattern in WORDS["hosts"][kind])
