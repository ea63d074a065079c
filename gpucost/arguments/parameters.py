"""Values as people type them: durations, sizes, dollars, days; options that commands share."""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import msgspec

from planner.profile import fields as ranges
from planner.profile.kinds import KINDS, PRECISIONS
from pricing.catalog.catalog import unknown_names
from pricing.catalog.offer import PURCHASES
from pricing.catalog.regions import destination
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH, usd
from templates.language.translate import ENGLISH, LANGUAGES, ExchangeRate
from templates.strangers import printable

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


class _ParsedType(click.ParamType[Any]):
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
            self.fail(printable(str(error)), param, ctx)


def _in_units(text: str, units: Mapping[str, Decimal | int], expected: str) -> Decimal:
    """Return a number with a unit in the smallest of the units; refuse what is not that."""
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] not in units:
        raise ValueError(f"{text!r} is not {expected}.")
    return Decimal(match[1]) * units[match[2]]


def _duration(text: str) -> Decimal:
    """Return seconds: `90s 15m 8h 8.5h 2d`."""
    seconds = _in_units(text, _SECONDS, "a duration; write 90s, 15m, 8h, 8.5h or 2d")
    if ranges.HOURS.refusal(seconds / 3600):
        raise ValueError(f"{text!r} is too long for a bill.")
    return seconds


def _horizon(text: str) -> Decimal:
    """Return months of 730 h, at most ten years: `6mo 1y 90d`."""
    months = _in_units(text, _HOURS, "a horizon; write 6mo, 1y or 90d") / HOURS_PER_MONTH
    if ranges.MONTHS.refusal(months):
        raise ValueError(f"{text!r}: a horizon must be above 0 and at most 10y.")
    return months


def _size(text: str) -> int:
    """Return bytes, at most 1000 PB: `500GB 500GiB 2TiB`; GB is 10^9 bytes, GiB 2^30."""
    size = _in_units(text, _BYTES, "a size; write 500GB, 500GiB or 2TiB")
    if ranges.BYTES.refusal(size):
        raise ValueError(f"{text!r} is more than 1000 PB.")
    return int(size)


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
    low = int(match[1]) if match else 0
    high = int(match[2] or match[1]) if match else 0
    if not low <= high or ranges.GPUS.refusal(low) or ranges.GPUS.refusal(high):
        raise ValueError(f"{text!r} is not a count; write 8 or 1..8.")
    return low, high


_CLUSTER_MARKS = {
    "doks": ("digitalocean:", "doks.digitalocean.com/"),
    "eks": ("aws:", "eks.amazonaws.com/"),
}
"""What the id or a label of a node begins with."""
_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
_NODE_TYPE, _NODE_REGION = "node.kubernetes.io/instance-type", "topology.kubernetes.io/region"
_CLUSTER_FORMS = (
    "write doks, eks, a file that `kubectl get nodes -o json` printed, or a TOML file with kind, "
    "region, control_plane, [[cpu_nodes]] and [[gpu_nodes]] (type; count, or min and max; "
    "usd_per_hour)"
)


class _Metadata(msgspec.Struct):
    labels: dict[str, str]


class _Spec(msgspec.Struct):
    id: str = msgspec.field(default="", name="providerID")


class _Status(msgspec.Struct):
    capacity: dict[str, str]


class _Node(msgspec.Struct):
    """What is read of a node, as the API of Kubernetes writes it."""

    metadata: _Metadata
    status: _Status
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Nodes(msgspec.Struct):
    items: list[_Node]


def _cluster(text: str) -> object:
    """Return the cluster that a word, or a file of that name, describes.

    Raises:
        ValueError: it is neither, and what may be written.
    """
    from planner.choice.requirements import CLUSTER_PROVIDERS, Cluster  # noqa: PLC0415 - of plans

    try:
        words = {"kind": text} if text in CLUSTER_PROVIDERS else _words_of(Path(text))
        return msgspec.convert(words, Cluster, strict=False)
    except OSError as error:
        raise ValueError(f"{text}: {error.strerror}; {_CLUSTER_FORMS}.") from error
    except ValueError as error:  # of TOML, of JSON, or of a value in them
        raise ValueError(f"{text}: {str(error).rstrip('.')}; {_CLUSTER_FORMS}.") from error


def _words_of(path: Path) -> Mapping[str, object]:
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        return _of_nodes(msgspec.json.decode(text, type=_Nodes).items)
    return tomllib.loads(text, parse_float=Decimal)


def _of_nodes(nodes: Sequence[_Node]) -> Mapping[str, object]:
    """Return a cluster with the nodes that it has now, in pools by their type."""
    kinds = {kind for kind in _CLUSTER_MARKS if all(_is_of(kind, node) for node in nodes)}
    if len(kinds) != 1:
        raise ValueError("its nodes are not all of EKS, or all of DOKS")
    regions = {node.metadata.labels.get(_NODE_REGION, "") for node in nodes}
    pools: dict[str, Counter[str]] = {"gpu_nodes": Counter(), "cpu_nodes": Counter()}
    for node in nodes:
        has_gpus = any(node.status.capacity.get(name, "0") != "0" for name in _GPU_RESOURCES)
        pools["gpu_nodes" if has_gpus else "cpu_nodes"][
            node.metadata.labels.get(_NODE_TYPE, "")
        ] += 1
    sizes = {
        name: [{"type": type_, "count": count} for type_, count in pool.items()]
        for name, pool in pools.items()
    }
    return {"kind": kinds.pop(), "region": regions.pop() if len(regions) == 1 else "", **sizes}


def _is_of(kind: str, node: _Node) -> bool:
    return any(
        name.startswith(_CLUSTER_MARKS[kind]) for name in (node.spec.id, *node.metadata.labels)
    )


def _number(allowed: ranges.NumberRange) -> _ParsedType:
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

    return _ParsedType("number", parse)


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


def _pair(
    name: str, split: Callable[[str, str], tuple[str, str, str]], sentence: str
) -> _ParsedType:
    """Return the type of two texts, such as `team=search`."""

    def parse(text: str) -> tuple[str, str]:
        first, _, second = split(text, "=")
        if not first or not second:
            raise ValueError(f"{text!r} {sentence}.")
        return first, second

    return _ParsedType(name, parse)


def _rate(text: str) -> ExchangeRate:
    """Return what a dollar is worth, and on which day: `CNY=7.1@2026-11-20`."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate; write CNY=7.1@2026-11-20.")
    per_usd = Decimal(match[2])
    if not per_usd or match[1] == "USD":
        raise ValueError(f"{text!r}: give units of another currency for one dollar, above 0.")
    return ExchangeRate(currency=match[1], per_usd=per_usd, day=_day(match[3]))


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text)
    fraction = (float(match[1]) if match else 0.0) / (100.0 if text.endswith("%") else 1.0)
    if not 0 < fraction <= 1:
        raise ValueError(f"{text!r} is not a share; write 96% or 0.96.")
    return fraction


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


_UNITS = {"s": 1.0, "ms": 0.001, "x": 1.0, "%": 0.01, "": 1.0, "/min": 1 / 60, "/h": 1 / 3600}


def _with_unit(name: str, *units: str) -> _ParsedType:
    """Return the type of numbers with one of the units, such as `500ms`."""

    def parse(text: str) -> float:
        match = _NUMBER_UNIT.fullmatch(text) or re.fullmatch(r"([\d.]+) *(%|/[a-z]+|)", text)
        if match is None or match[2] not in units:
            names = " or ".join(filter(None, units))
            raise ValueError(f"{text!r}: write a number with {names}, such as 2.5{units[0]}.")
        return float(match[1]) * _UNITS[match[2]]

    return _ParsedType(name, parse)


TYPES: Mapping[str, Any] = {
    "amount": _number(ranges.WORK),
    "boot-disk": _ParsedType("size", lambda text: 0 if text == "none" else _size(text)),
    "count": click.IntRange(min=1),
    "count-or-none": click.IntRange(min=0),
    "cluster": _ParsedType("cluster", _cluster),
    "counts": _ParsedType("count", _counts),
    "day": _ParsedType("date", _day),
    "dollars": _ParsedType("usd", _dollars),
    "duration": _ParsedType("duration", _duration),
    "factor": _with_unit("factor", "x"),
    "file": click.Path(dir_okay=False),
    "float": float,
    "folder": click.Path(file_okay=False),
    "grid": _number(ranges.GRID_G_PER_KWH),
    "horizon": _ParsedType("duration", _horizon),
    "host-share": _number(ranges.HOST_FRACTION),
    "hours": click.FloatRange(0, 87_600, min_open=True),
    "hours-a-month": _number(ranges.HOURS_A_MONTH),
    "increase": _ParsedType("usd|percent", _increase),
    "instant": _ParsedType("instant", _instant),
    "int": int,
    "kind": click.Choice(KINDS),
    "label": _pair("name=text", str.partition, "is not a label; write team=NAME"),
    "language": click.Choice(LANGUAGES),
    "machines": click.IntRange(0, MOST_MACHINES),
    "mapping": _pair("column=slot", str.rpartition, "is not a mapping; write COLUMN=SLOT"),
    "percent": _ParsedType("percent", _percent),
    "place": _ParsedType("place", destination),
    "precision": click.Choice(PRECISIONS),
    "pue": _number(ranges.PUE),
    "per-second": _with_unit("rate", "/min", "/h", ""),
    "purchase": click.Choice(PURCHASES),
    "rate": _ParsedType("currency=rate@day", _rate),
    "share": _with_unit("share", "%"),
    "size": _ParsedType("size", _size),
    "slowdown": _number(ranges.SLOWDOWN),
    "time": _with_unit("time", "ms", "s"),
    "work": _ParsedType("unit=done", _work),
}
"""The values of options.toml."""

HINTS = ("kind", "precision", "cores", "cpu_fraction")
HINT_OPTIONS = "kind precision cores cpu jobs-by"
"""What a source may not say itself; where it does, the source wins."""
USAGE_OPTIONS = (
    "egress-to boot-disk.quote snapshots object-storage object-egress ingress inter-zone "
    "inter-region addresses nat-gateways nat-traffic control-plane boot idle-tail"
)
"""Options that each fill a field of `pricing.billing.usage.Usage`."""
OPTIONS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("gpucost.arguments").joinpath("options.toml").read_text(encoding="utf-8")
)
"""Every option by its long name; options.toml says how a section is read."""
_OWN_KEYS = frozenset(
    ["short", "earlier", "flags", "to", "type", "choices", "range", "means", "more"]
)
Command = Callable[..., Any]


class _Option(click.Option):
    """An option whose earlier names stay callable and are not shown; a slip names what is near."""

    def type_cast_value(self, ctx: click.Context, value: object) -> object:
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            choices = self.type.choices if isinstance(self.type, click.Choice) else ()
            typed = value if isinstance(value, tuple | list) else (value,)
            near = [m for v in typed for m in get_close_matches(str(v), choices, 1) if v != m]
            if not near:
                raise
            sentence = f"{error.message} Did you mean {near[0]!r}?"
            raise click.BadParameter(sentence, ctx=error.ctx, param=error.param) from None

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        flag = next(name for name in self.opts if name.startswith("--")).removeprefix("--")
        names, earlier = self.opts, OPTIONS.get(flag, {}).get("earlier", ())
        self.opts = [name for name in names if name not in earlier]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def _language() -> str:
    """Return the language of this computer where reports speak it, else English."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = next(filter(None, names), "")[:2]
    return language if language in LANGUAGES else ENGLISH


def options(names: str, **settings: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Return what adds options of options.toml to a command, in their order.

    Args:
        names: of the options; NAME.COMMAND is an option as it is there.
        settings: of `click.option`, by the option, where only the program knows them.
    """

    def add(command: Command) -> Command:
        for name in reversed(names.split()):
            parameter = name.partition(".")[0].replace("-", "_")
            command = _option(name, settings.get(parameter, {}))(command)
        return command

    return add


def _option(name: str, settings: Mapping[str, Any]) -> Callable[[Command], Command]:
    flag, _, variant = name.partition(".")
    row = {**OPTIONS[flag], **OPTIONS[flag].get(variant, {})}
    row = {k: v for k, v in row.items() if v != "unset" and not isinstance(v, Mapping)}
    declared = {key: value for key, value in row.items() if key not in _OWN_KEYS}
    earlier, kind = row.get("earlier", ()), row.get("type", "")
    if "choices" in row:
        declared["type"] = click.Choice(row["choices"])
    elif "range" in row:
        declared["type"] = (click.FloatRange if kind == "float" else click.IntRange)(*row["range"])
    elif kind:
        declared["type"] = TYPES[kind]
    if kind == "language":
        declared["default"] = _language
    declared |= {"help": row.get("means", "") + row.get("more", ""), **settings}
    flags = [*filter(None, [row.get("short", "")]), *row.get("flags", [f"--{flag}"]), *earlier]
    return click.option(*flags, row.get("to") or flag.replace("-", "_"), cls=_Option, **declared)
