"""One documented term of a provider's bill, and the files it is read from."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from pricing.errors import InputError
from pricing.message import Message
from pricing.money import price_text
from pricing.tables import DATA, names, read_csv, read_toml

BYTES_PER_UNIT = MappingProxyType({"GB": Decimal(10**9), "GiB": Decimal(2**30)})
"""What the units mean where nobody says otherwise; some providers call 2^30 bytes a GB."""

LEAD = "lead"
OPEN_END = Decimal("Infinity")

CALENDAR = "calendar"
"""The `month_h` of a price that counts the hours of the calendar month."""

_DESTINATIONS = MappingProxyType(
    {
        "internet": "egress",
        "other_regions": "inter_region",
        "us_east_regions": "inter_region_us_east",
        "intra_region": "inter_zone_each_way",
    }
)
"""What the destinations of a table of traffic by region are called among the rules."""


class Gigabyte(NamedTuple):
    """What a provider calls a GB, with the sentence of its documentation."""

    bytes: Decimal
    sentence: str
    source: str
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingRule:
    """One documented term of a provider's bill.

    Attributes:
        provider: such as "aws".
        name: what it is about; several rows of one name differ in window, region or tier.
        value: a number, or the provider's words.
        unit: of the value: "s", "USD/GiB", "GB/month", "rule" for words.
        source: where it was read, with an address unless it is a lead.
        as_of: date as the source prints it.
        confidence: high, medium, low, or "lead" where no address is known at which it could be
            checked; a quote that uses a lead says so.
        valid_from: first day on which it holds; None is always.
        valid_until: last day on which it holds; None is open.
        note: exceptions and conflicts.
        regions: patterns of the regions it is for ("us-*"); empty means all.
        tier_from: quantity in the rule's unit at which a tier begins.
        tier_until: quantity at which it ends; infinite for the last tier.
        kind: which of several products of one name ("ssd", "ha"); empty for the usual one.
        product: what the provider calls it.
        purchase: the way of buying it is for; empty means every way.
        month_h: hours of the month that a price per month is for; None is 730, CALENDAR those of
            the calendar month.
        step_s: time is billed in whole multiples of it; None where that is not documented.
        prorated: whether a fee per month is owed for the part of the month only.
        each_gib: it is sold in whole pieces of that size.
        types: patterns of the instance types it is for ("BM.*"); empty means all.
        per_machine: a price by the hour is for each machine that uses the service; its tiers
            count machines.
        gigabyte: what the provider calls a GB; None where that is not documented.
    """

    provider: str
    name: str
    value: Decimal | str
    unit: str
    source: str
    as_of: str
    confidence: str
    valid_from: date | None = None
    valid_until: date | None = None
    note: str = ""
    regions: tuple[str, ...] = ()
    tier_from: Decimal = Decimal(0)
    tier_until: Decimal = OPEN_END
    kind: str = ""
    product: str = ""
    purchase: str = ""
    month_h: Decimal | str | None = None
    step_s: Decimal | None = None
    prorated: bool = False
    each_gib: Decimal | None = None
    types: tuple[str, ...] = ()
    per_machine: bool = False
    gigabyte: Gigabyte | None = None

    def __hash__(self) -> int:
        return hash((self.provider, self.name, self.kind, self.unit, self.value))  # a few tell most

    def holds_on(self, day: date) -> bool:
        """Return whether the day lies in the rule's window."""
        return (self.valid_from is None or self.valid_from <= day) and (
            self.valid_until is None or day <= self.valid_until
        )

    def is_for(self, region: str) -> bool:
        """Return whether the rule is for that region."""
        return not self.regions or any(fnmatchcase(region, pattern) for pattern in self.regions)

    @property
    def amount(self) -> Decimal:
        """The value as a number.

        Raises:
            InputError: the value is words.
        """
        if isinstance(self.value, Decimal):
            return self.value
        raise InputError(
            f"billing rule {self.provider}/{self.name} is {self.value!r} where a number is needed; "
            f"correct data/billing/{self.provider}.toml"
        )

    @property
    def is_lead(self) -> bool:
        """Whether no address is known at which the rule could be checked."""
        return self.confidence == LEAD

    @property
    def printed(self) -> str:
        """The unit of the quantity as printed: "GB" of "USD/GB", of "USD/GB-month".

        Raises:
            InputError: the unit names neither GB nor GiB.
        """
        unit = _printed(self.unit)
        if unit is None:
            raise InputError(
                f"billing rule {self.provider}/{self.name} has the unit {self.unit!r}, which is "
                f"neither GB nor GiB; correct data/billing/{self.provider}.toml"
            )
        return unit

    @property
    def bytes_per_unit(self) -> Decimal:
        """Bytes of one unit: 2^30 of a GiB, what the provider says of a GB, else 10^9."""
        printed = self.printed
        if printed == "GB" and self.gigabyte is not None:
            return self.gigabyte.bytes
        return BYTES_PER_UNIT[printed]

    @property
    def per(self) -> str:
        """The unit by its size: "GiB" where it has 2^30 bytes, whatever the provider calls it."""
        return "GiB" if self.bytes_per_unit == BYTES_PER_UNIT["GiB"] else "GB"

    @property
    def price_words(self) -> str:
        """The price as the provider prints it: "0.08 USD/GB-month, its GB being 2^30 bytes"."""
        text = f"{price_text(self.amount)} {self.unit}"
        if "GB" in self.unit and self.per == "GiB":
            return Message("bill.binary", price=text)
        return text


def caveats(terms: Iterable[BillingRule]) -> tuple[str, ...]:
    """Return what must be said of rules that a bill uses: leads, and a GB that nobody explains."""
    return _caveats(tuple(terms))


@lru_cache(maxsize=4096)
def _caveats(terms: tuple[BillingRule, ...]) -> tuple[str, ...]:
    leads: dict[tuple[str, str, str], list[str]] = {}
    unexplained: dict[str, None] = {}
    for rule in terms:
        if rule.is_lead:
            name = rule.name.removesuffix(f"_{rule.unit}").replace("_", " ")
            label = f"{rule.provider}: {name} {rule.kind}".strip()
            details = "; ".join(filter(None, (rule.source, rule.note)))
            leads.setdefault((label, rule.unit, details), []).append(str(rule.value))
        if "GB" in rule.unit and rule.gigabyte is None and rule.value:
            unexplained[Message("bill.gb-unknown", provider=rule.provider)] = None
    return (
        *(
            Message("bill.lead", what=label, values=values, unit=unit, source=details)
            for (label, unit, details), values in leads.items()
        ),
        *unexplained,
    )


@cache
def all_rules(provider: str) -> tuple[BillingRule, ...]:
    """Return every rule of a provider's file, then of its table of egress by region."""
    document = read_toml(f"billing/{provider}.toml")
    if document is None:
        return ()
    gigabyte = _gigabyte(provider, document.get("gb"))
    listed = tuple(_rule_from_toml(provider, entry, gigabyte) for entry in document["rule"])
    table = f"{provider}_egress.csv"
    if table not in names("*_egress.csv"):
        return listed
    return listed + tuple(
        _rule_from_egress_row(provider, row, gigabyte)
        for row in read_csv(table)
        if row["destination"] in _DESTINATIONS
    )


def _gigabyte(provider: str, entry: Mapping[str, Any] | None) -> Gigabyte | None:
    if entry is None:
        return None
    if set(entry) != set(Gigabyte._fields):
        raise InputError(
            f"{DATA}/billing/{provider}.toml: [gb] has the fields {', '.join(sorted(entry))}; "
            f"give {', '.join(Gigabyte._fields)}"
        )
    return Gigabyte(**{**entry, "bytes": Decimal(entry["bytes"])})


def _rule_from_toml(
    provider: str, entry: Mapping[str, Any], gigabyte: Gigabyte | None
) -> BillingRule:
    """Return the rule of one `[[rule]]` table.

    Raises:
        InputError: a field is missing, unknown or out of order.
    """
    declared = {
        _TOML_NAMES.get(f.name, f.name): f
        for f in fields(BillingRule)
        if f.name not in ("provider", "gigabyte")
    }
    unexpected = sorted(set(entry) - declared.keys())
    missing = sorted(
        key for key, f in declared.items() if f.default is MISSING and key not in entry
    )
    where = f"{DATA}/billing/{provider}.toml: rule {entry.get('name', '?')!r}"
    problems = [f"{where}: unknown field {field!r}; remove it" for field in unexpected]
    problems += [f"{where}: field {field!r} is missing; add it" for field in missing]
    if problems:
        raise InputError(problems)
    values = {declared[key].name: _plain(value) for key, value in entry.items()}
    return BillingRule(provider=provider, gigabyte=gigabyte, **values)


_TOML_NAMES = {"tier_from": "from", "tier_until": "until"}


def _plain(value: object) -> Any:  # noqa: ANN401 - a value of TOML
    """Return a list as a tuple and a whole number as exact as all others."""
    if isinstance(value, list):
        return tuple(value)
    return Decimal(value) if type(value) is int else value


def _rule_from_egress_row(
    provider: str, row: Mapping[str, str], gigabyte: Gigabyte | None
) -> BillingRule:
    return BillingRule(
        provider=provider,
        name=_DESTINATIONS[row["destination"]],
        value=Decimal(row["usd_per_gb"]),
        unit="USD/GB",
        source=row["source"],
        as_of=row["as_of"],
        confidence=row["confidence"],
        regions=(row["region"],),
        tier_from=Decimal(row["from_gb"]),
        tier_until=Decimal(row["until_gb"] or OPEN_END),
        gigabyte=gigabyte,
    )


@lru_cache(maxsize=256)
def _printed(unit: str) -> str | None:
    return next((part for part in re.split("[-/]", unit) if part in BYTES_PER_UNIT), None)
