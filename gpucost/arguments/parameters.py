"""Values as people type them: durations, sizes, dollars, days; options that commands share."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from planner.choice import requirements as ranges
from planner.choice.requirements import NumberRange
from planner.profile.kinds import KINDS, PRECISIONS
from pricing.catalog.catalog import unknown_names
from pricing.catalog.regions import destination
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH, usd
from templates.language.translate import LANGUAGES, ExchangeRate

DEFAULT_PROFILE = "profile.json"  # that `profile` writes and `plan` reads
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_BYTES = {
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("", "K", "M", "G", "T", "P"))},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTP", start=1)},
}
_HOURS: dict[str, Decimal | int] = {
    "h": 1,
    "d": 24,
    "mo": HOURS_PER_MONTH,
    "y": 12 * HOURS_PER_MONTH,
}
_MOST_PERCENT = 10**6
MOST_MACHINES = 100_000
_RATE = re.compile(r"([A-Z]{3})=(\d{1,9}(?:\.\d{1,9})?)@(\d{4}-\d{2}-\d{2})")
_NUMBER_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


class ParsedType(click.ParamType[Any]):
    """A value that a function reads from text; its ValueError is what the user is told.

    Attributes:
        name: of the values, for the help.
        parse: returns the value of a text.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Return the value of a text, or of a number in a settings file."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except (ValueError, InputError) as error:
            self.fail(str(error), param, ctx)


def _duration(text: str) -> Decimal:
    """Return seconds: `90s 15m 8h 8.5h 2d`."""
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] not in _SECONDS:
        raise ValueError(f"{text!r} is not a duration; write 90s, 15m, 8h, 8.5h or 2d.")
    seconds = Decimal(match[1]) * _SECONDS[match[2]]
    if ranges.HOURS.refusal(seconds / 3600):
        raise ValueError(f"{text!r} is too long for a bill.")
    return seconds


def _horizon(text: str) -> Decimal:
    """Return months of 730 h, at most ten years: `6mo 1y 90d`."""
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] not in _HOURS:
        raise ValueError(f"{text!r} is not a horizon; write 6mo, 1y or 90d.")
    months = Decimal(match[1]) * _HOURS[match[2]] / HOURS_PER_MONTH
    if ranges.MONTHS.refusal(months):
        raise ValueError(f"{text!r}: a horizon must be above 0 and at most 10y.")
    return months


def _size(text: str) -> int:
    """Return bytes, at most 1000 PB: `500GB 500GiB 2TiB`; GB is 10^9 bytes, GiB 2^30."""
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] not in _BYTES:
        raise ValueError(f"{text!r} is not a size; write 500GB, 500GiB or 2TiB.")
    size = Decimal(match[1]) * _BYTES[match[2]]
    if ranges.BYTES.refusal(size):
        raise ValueError(f"{text!r} is more than 1000 PB.")
    return int(size)


def _boot_disk(text: str) -> int:
    """Return bytes; 0 of `none`."""
    return 0 if text == "none" else _size(text)


def _destination(text: str) -> str:
    """Return the country or continent: `china`, `au`, `europe-west4`; empty of `internet`."""
    return destination(text)


_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")


def _dollars(text: str) -> Decimal:
    """Return US dollars, at least 0: `12`, `12.50`, `$1,250.50`; a comma parts thousands alone."""
    number = text.removeprefix("$")
    if "," in number and not _THOUSANDS.fullmatch(number):
        raise ValueError(
            f"{text!r}: the decimal sign is a point; write 2.50 or 1,250 (US dollars)."
        )
    try:
        amount = usd(number.replace(",", ""))
    except (InputError, InvalidOperation) as error:
        raise ValueError(f"{text!r} is not an amount; write 12 or 12.50 (US dollars).") from error
    if ranges.DOLLARS.refusal(amount):
        raise ValueError(f"{text!r} is negative or too large; write 12 or 12.50 (US dollars).")
    return amount


def _increase(text: str) -> tuple[Decimal, bool]:
    """Return more dollars, or a share of what was, and whether it is a share: `500`, `10%`."""
    if not text.strip().endswith("%"):
        return _dollars(text), False
    try:
        share = Decimal(text.strip()[:-1].strip())
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not an increase; write 500 (US dollars) or 10%.") from error
    if not 0 <= share <= _MOST_PERCENT:
        raise ValueError(f"{text!r} is negative or too large; write 500 (US dollars) or 10%.")
    return share / 100, True


def _day(text: str) -> date:
    """Return the day: `2026-07-01`."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a day; write 2026-07-01.") from error


def _instant(text: str) -> datetime:
    """Return the instant in UTC: `2026-07-31T12:00` (UTC), `2026-07-31T12:00+02:00`."""
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=instant.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is not an instant; write 2026-07-31T12:00 (UTC) or 2026-07-31T12:00+02:00."
        ) from error


def _counts(text: str) -> tuple[int, int]:
    """Return least and most: `8` or `1..8`."""
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text.strip())
    least = int(match[1]) if match else 0
    most = int(match[2] or match[1]) if match else 0
    if not least <= most or ranges.GPUS.refusal(least) or ranges.GPUS.refusal(most):
        raise ValueError(f"{text!r} is not a count; write 8 or 1..8.")
    return least, most


def _number(allowed: NumberRange) -> ParsedType:
    """Return the type of numbers within a range."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a number.") from error
        refusal = allowed.refusal(value)
        if refusal is not None:
            raise ValueError(f"{text} {refusal}.")
        return value

    return ParsedType("number", parse)


def _work(text: str) -> tuple[str, float]:
    """Return the unit and the amount done: `image=2900000`."""
    unit, _, done = text.partition("=")
    try:
        amount = float(done)
    except ValueError:
        amount = -1.0
    if not unit or not 0 <= amount <= ranges.WORK.high:
        raise ValueError(f"{text!r} is not work; write UNIT=DONE, such as image=2900000.")
    return unit, amount


def _mapping(text: str) -> tuple[str, str]:
    """Return the column and the slot: `my_column=util.kernel_time`."""
    column, _, slot = text.rpartition("=")
    if not column or not slot:
        raise ValueError(f"{text!r} is not a mapping; write COLUMN=SLOT.")
    return column, slot


def _label(text: str) -> tuple[str, str]:
    """Return the name and the text: `team=search`."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise ValueError(f"{text!r} is not a label; write team=NAME.")
    return name, value


def _rate(text: str) -> ExchangeRate:
    """Return what a dollar is worth, and on which day: `CNY=7.1@2026-11-20`."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate; write CNY=7.1@2026-11-20.")
    per_usd = Decimal(match[2])
    if not per_usd or match[1] == "USD":
        raise ValueError(f"{text!r}: give units of another currency for one dollar, above 0.")
    return ExchangeRate(currency=match[1], per_usd=per_usd, day=_day(match[3]))


DURATION, HORIZON = ParsedType("duration", _duration), ParsedType("duration", _horizon)
SIZE, BOOT_DISK = ParsedType("size", _size), ParsedType("size", _boot_disk)
DOLLARS, INCREASE = ParsedType("usd", _dollars), ParsedType("usd|percent", _increase)


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text)
    fraction = (float(match[1]) if match else 0.0) / (100.0 if text.endswith("%") else 1.0)
    if not 0 < fraction <= 1:
        raise ValueError(f"{text!r} is not a share; write 96% or 0.96.")
    return fraction


DAY, INSTANT = ParsedType("date", _day), ParsedType("instant", _instant)
DESTINATION, COUNTS = ParsedType("place", _destination), ParsedType("count", _counts)
WORK, MAPPING = ParsedType("unit=done", _work), ParsedType("column=slot", _mapping)
LABEL, RATE = ParsedType("name=text", _label), ParsedType("currency=rate@day", _rate)
HOURS_A_MONTH, AMOUNT = _number(ranges.HOURS_A_MONTH), _number(ranges.WORK)
SLOWDOWN, GRID = _number(ranges.SLOWDOWN), _number(ranges.GRID_G_PER_KWH)
PUE, HOST_SHARE = _number(ranges.PUE), _number(ranges.HOST_FRACTION)

PERCENT = ParsedType("percent", _percent)

jobs_by_option = click.option(
    "--jobs-by",
    type=click.Choice(("file", "folder")),
    help="Whether each file in a folder is a job, or each subfolder.",
)
_HINTS = (
    click.option("--kind", type=click.Choice(KINDS), help="Kind of job."),
    click.option(
        "--precision", type=click.Choice(PRECISIONS), help="Numeric precision of the job."
    ),
    click.option("--cores", type=AMOUNT, help="CPU cores that the job may use."),
    click.option(
        "--cpu", "cpu_fraction", type=PERCENT, help="Share of these cores in use, e.g. 96%."
    ),
)


HINTS = ("kind", "precision", "cores", "cpu_fraction")


def hint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a source may not say itself; where it does, the source wins."""
    for option in reversed(_HINTS):
        command = option(command)
    return command


language_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    default="en",
    show_default=True,
    help="Language of reports and screens; codes, names and figures stay as they are.",
)
rate_option = click.option(
    "--fx",
    "rate",
    type=RATE,
    metavar="CUR=RATE@DAY",
    help="Show totals in this currency, too, at this exchange rate: CNY=7.1@2026-11-20.",
)
chosen_options = click.option(
    "--option",
    "named",
    multiple=True,
    metavar="JOB/ID",
    help="Option to use instead of the recommended one of its job (repeatable).",
)


def check_known(flag: str, names: Iterable[str], valid: Iterable[str]) -> None:
    """Check names against the catalog's.

    Raises:
        InputError: names every unknown one with the nearest known ones, or all where none is near.
    """
    problems = unknown_names(flag, names, valid)
    if problems:
        raise InputError(problems)


def today() -> date:
    """Return today in UTC: the one place that asks the clock."""
    return datetime.now(UTC).date()


EGRESS_TO = (
    "Destination of outgoing data, e.g. china, australia or a region; some providers price by it."
)

# Fields of `pricing.billing.usage.Usage` by the option that fills them: --snapshots 100GB.
_EXTRAS: dict[str, tuple[str, click.ParamType[Any], str]] = {
    "egress-to": ("egress_to", DESTINATION, EGRESS_TO),
    "boot-disk": (
        "boot_disk_bytes",
        BOOT_DISK,
        "Boot disk of each machine, if its price includes none, e.g. 100GiB.",
    ),
    "snapshots": ("snapshot_bytes", SIZE, "Snapshots stored for the duration, e.g. 100GB."),
    "object-storage": ("object_storage_bytes", SIZE, "Object storage for the duration, e.g. 1TiB."),
    "object-egress": ("object_egress_bytes", SIZE, "Data sent out of object storage."),
    "ingress": ("ingress_bytes", SIZE, "Data received from the internet."),
    "inter-zone": ("inter_zone_bytes", SIZE, "Data sent between zones of the region."),
    "inter-region": ("inter_region_bytes", SIZE, "Data sent to other regions."),
    "addresses": ("addresses", click.IntRange(0, MOST_MACHINES), "Public IPv4 addresses."),
    "nat-gateways": ("nat_gateways", click.IntRange(0, MOST_MACHINES), "NAT gateways."),
    "nat-traffic": ("nat_bytes", SIZE, "Data sent through NAT gateways."),
    "control-plane": (
        "control_plane",
        click.STRING,
        "Kubernetes control plane: standard, ha, extended, free.",
    ),
    "boot": ("boot_s", DURATION, "Additional machine time before work starts, e.g. 5m."),
    "idle-tail": ("idle_tail_s", DURATION, "Additional machine time after work ends, e.g. 30m."),
}


def usage_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each of _EXTRAS, named after the field it fills."""
    for flag, (field, kind, text) in reversed(_EXTRAS.items()):
        command = click.option(f"--{flag}", field, type=kind, help=text)(command)
    return command
