"""Values as people type them: durations, sizes, dollars, days; options that commands share."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from planner.choice import requirements as ranges
from planner.choice.requirements import NumberRange
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


class _Type(click.ParamType[Any]):
    """A type whose parser raises ValueError with a sentence."""

    def parse(self, text: str) -> Any:  # noqa: ANN401 - each type has its own value
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)  # from a settings file
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except (ValueError, InputError) as error:
            self.fail(str(error), param, ctx)


class DurationType(_Type):
    """`90s 15m 8h 8.5h 2d` -> seconds as Decimal."""

    name = "duration"

    def parse(self, text: str) -> Decimal:
        """Return seconds."""
        match = _NUMBER_UNIT.fullmatch(text)
        if match is None or match[2] not in _SECONDS:
            raise ValueError(f"{text!r} is not a duration; write 90s, 15m, 8h, 8.5h or 2d.")
        seconds = Decimal(match[1]) * _SECONDS[match[2]]
        if ranges.HOURS.refusal(seconds / 3600):
            raise ValueError(f"{text!r} is too long for a bill.")
        return seconds


class HorizonType(_Type):
    """`6mo 1y 90d` -> months as Decimal: 730 h each, at most ten years."""

    name = "duration"

    def parse(self, text: str) -> Decimal:
        """Return months."""
        match = _NUMBER_UNIT.fullmatch(text)
        if match is None or match[2] not in _HOURS:
            raise ValueError(f"{text!r} is not a horizon; write 6mo, 1y or 90d.")
        months = Decimal(match[1]) * _HOURS[match[2]] / HOURS_PER_MONTH
        if ranges.MONTHS.refusal(months):
            raise ValueError(f"{text!r}: a horizon must be above 0 and at most 10y.")
        return months


class SizeType(_Type):
    """`500GB 500GiB 2TiB` -> bytes, at most 1000 PB; GB is 10^9 bytes, GiB 2^30."""

    name = "size"

    def parse(self, text: str) -> int:
        """Return bytes."""
        match = _NUMBER_UNIT.fullmatch(text)
        if match is None or match[2] not in _BYTES:
            raise ValueError(f"{text!r} is not a size; write 500GB, 500GiB or 2TiB.")
        size = Decimal(match[1]) * _BYTES[match[2]]
        if ranges.BYTES.refusal(size):
            raise ValueError(f"{text!r} is more than 1000 PB.")
        return int(size)


class BootDiskType(SizeType):
    """`100GiB` -> bytes; `none` -> 0."""

    def parse(self, text: str) -> int:
        """Return bytes."""
        return 0 if text == "none" else super().parse(text)


class DestinationType(_Type):
    """`china`, `au`, `europe-west4` -> the country or continent in words; `internet` -> empty."""

    name = "place"

    def parse(self, text: str) -> str:
        """Return the country or continent."""
        return destination(text)


class DollarType(_Type):
    """`12`, `12.50`, `$12.50` -> Decimal dollars, at least 0."""

    name = "usd"

    def parse(self, text: str) -> Decimal:
        """Return dollars."""
        try:
            amount = usd(text.removeprefix("$").replace(",", ""))
        except (InputError, InvalidOperation) as error:
            raise ValueError(
                f"{text!r} is not an amount; write 12 or 12.50 (US dollars)."
            ) from error
        if ranges.DOLLARS.refusal(amount):
            raise ValueError(f"{text!r} is negative or too large; write 12 or 12.50 (US dollars).")
        return amount


class IncreaseType(_Type):
    """`500` -> more dollars, `10%` -> more than a share of what was."""

    name = "usd|percent"

    def parse(self, text: str) -> tuple[Decimal, bool]:
        """Return the amount, and whether it is a fraction of what was."""
        if not text.strip().endswith("%"):
            return DollarType().parse(text), False
        try:
            share = Decimal(text.strip()[:-1].strip())
        except InvalidOperation as error:
            raise ValueError(
                f"{text!r} is not an increase; write 500 (US dollars) or 10%."
            ) from error
        if not 0 <= share <= _MOST_PERCENT:
            raise ValueError(f"{text!r} is negative or too large; write 500 (US dollars) or 10%.")
        return share / 100, True


class DayType(_Type):
    """`2026-07-01` -> date."""

    name = "date"

    def parse(self, text: str) -> date:
        """Return the day."""
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a day; write 2026-07-01.") from error


class InstantType(_Type):
    """`2026-07-31T12:00` (UTC), `2026-07-31T12:00+02:00` -> aware instant in UTC."""

    name = "instant"

    def parse(self, text: str) -> datetime:
        """Return the instant."""
        try:
            instant = datetime.fromisoformat(text)
            return instant.replace(tzinfo=instant.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"{text!r} is not an instant; write 2026-07-31T12:00 (UTC) "
                "or 2026-07-31T12:00+02:00."
            ) from error


class CountsType(_Type):
    """`8` or `1..8` -> (least, most)."""

    name = "count"

    def parse(self, text: str) -> tuple[int, int]:
        """Return the range."""
        match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text.strip())
        least = int(match[1]) if match else 0
        most = int(match[2] or match[1]) if match else 0
        if not least <= most or ranges.GPUS.refusal(least) or ranges.GPUS.refusal(most):
            raise ValueError(f"{text!r} is not a count; write 8 or 1..8.")
        return least, most


class NumberType(_Type):
    """A number within a range."""

    name = "number"

    def __init__(self, allowed: NumberRange) -> None:
        self.allowed = allowed

    def parse(self, text: str) -> float:
        """Return the number."""
        try:
            value = float(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a number.") from error
        refusal = self.allowed.refusal(value)
        if refusal is not None:
            raise ValueError(f"{text} {refusal}.")
        return value


class WorkType(_Type):
    """`image=2900000` -> (unit, done)."""

    name = "unit=done"

    def parse(self, text: str) -> tuple[str, float]:
        """Return the unit and the amount done."""
        unit, _, done = text.partition("=")
        try:
            amount = float(done)
        except ValueError:
            amount = -1.0
        if not unit or not 0 <= amount <= ranges.WORK.high:
            raise ValueError(f"{text!r} is not work; write UNIT=DONE, such as image=2900000.")
        return unit, amount


class MappingType(_Type):
    """`my_column=util.kernel_time` -> (column, slot)."""

    name = "column=slot"

    def parse(self, text: str) -> tuple[str, str]:
        """Return the column and the slot."""
        column, _, slot = text.rpartition("=")
        if not column or not slot:
            raise ValueError(f"{text!r} is not a mapping; write COLUMN=SLOT.")
        return column, slot


class LabelType(_Type):
    """`team=search` -> (name, text)."""

    name = "name=text"

    def parse(self, text: str) -> tuple[str, str]:
        """Return the name and the text."""
        name, _, value = text.partition("=")
        if not name or not value:
            raise ValueError(f"{text!r} is not a label; write team=NAME.")
        return name, value


class RateType(_Type):
    """`CNY=7.1@2026-11-20` -> what a dollar is worth, and on which day."""

    name = "currency=rate@day"

    def parse(self, text: str) -> ExchangeRate:
        """Return the rate."""
        match = _RATE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a rate; write CNY=7.1@2026-11-20.")
        per_usd = Decimal(match[2])
        if not per_usd or match[1] == "USD":
            raise ValueError(f"{text!r}: give units of another currency for one dollar, above 0.")
        return ExchangeRate(currency=match[1], per_usd=per_usd, day=DAY.parse(match[3]))


DURATION, SIZE, DOLLARS, DAY = DurationType(), SizeType(), DollarType(), DayType()
BOOT_DISK = BootDiskType()
DESTINATION = DestinationType()
INSTANT, HORIZON, INCREASE = InstantType(), HorizonType(), IncreaseType()
COUNTS, WORK, MAPPING = CountsType(), WorkType(), MappingType()
LABEL, RATE = LabelType(), RateType()
HOURS_A_MONTH, AMOUNT = NumberType(ranges.HOURS_A_MONTH), NumberType(ranges.WORK)
SLOWDOWN, GRID = NumberType(ranges.SLOWDOWN), NumberType(ranges.GRID_G_PER_KWH)
PUE, HOST_SHARE = NumberType(ranges.PUE), NumberType(ranges.HOST_FRACTION)

jobs_by_option = click.option(
    "--jobs-by",
    type=click.Choice(("file", "folder")),
    help="Whether each file in a folder is a job, or each subfolder.",
)
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


def check_known(flag: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Check names against the catalog's.

    Raises:
        InputError: names every unknown one with the nearest known ones, or all where none is near.
    """
    problems = unknown_names(flag, given, known)
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
