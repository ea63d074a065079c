"""One documented term of a provider's bill, and the files it is read from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import Any

from pricing.errors import InputError
from pricing.tables import DATA, names, read_csv, read_toml

BYTES_PER_UNIT = MappingProxyType({"GB": Decimal(10**9), "GiB": Decimal(2**30)})
"""What providers sell traffic and storage in; each rule says which, and nothing is converted."""

LEAD = "lead"
OPEN_END = Decimal("Infinity")

_NEEDED = frozenset({"name", "value", "unit", "source", "as_of", "confidence"})
_OPTIONAL = frozenset(
    {
        "valid_from",
        "valid_until",
        "note",
        "regions",
        "from",
        "until",
        "kind",
        "product",
        "purchase",
        "month_h",
        "step_s",
        "prorated",
        "each_gib",
    }
)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingRule:
    """One documented term of a provider's bill.

    Attributes:
        provider: such as "aws".
        name: what it is about; several rows of one name differ in window, region or tier.
        value: a number, or the provider's words.
        unit: of the value: "s", "USD/GiB", "GB/month", "rule" for words.
        source: where it was read.
        as_of: date as the source prints it.
        confidence: high, medium, low, or "lead" where there is no source.
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

    def holds_on(self, day: date) -> bool:
        """Whether the day lies in the rule's window."""
        return (self.valid_from is None or self.valid_from <= day) and (
            self.valid_until is None or day <= self.valid_until
        )

    def is_for(self, region: str) -> bool:
        """Whether the rule is for that region."""
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
    def per(self) -> str:
        """What one unit of the quantity is: "GB" of "USD/GB", of "GB/month", of "USD/GB-month".

        Raises:
            InputError: the unit names neither GB nor GiB.
        """
        for part in self.unit.replace("-", "/").split("/"):
            if part in BYTES_PER_UNIT:
                return part
        raise InputError(
            f"billing rule {self.provider}/{self.name} has the unit {self.unit!r}, which is "
            f"neither GB nor GiB; correct data/billing/{self.provider}.toml"
        )


@cache
def all_rules(provider: str) -> tuple[BillingRule, ...]:
    """Every rule of a provider's file, then of its table of egress by region."""
    document = read_toml(f"billing/{provider}.toml")
    if document is None:
        return ()
    listed = tuple(_rule_from_toml(provider, entry) for entry in document["rule"])
    table = f"{provider}_egress.csv"
    if table not in names("*_egress.csv"):
        return listed
    return listed + tuple(
        _rule_from_egress_row(provider, row)
        for row in read_csv(table)
        if row["destination"] in _DESTINATIONS
    )


def _rule_from_toml(provider: str, entry: Mapping[str, Any]) -> BillingRule:
    """The rule of one `[[rule]]` table.

    Raises:
        InputError: a field is missing, unknown or out of order.
    """
    unknown = sorted(set(entry) - _NEEDED - _OPTIONAL)
    missing = sorted(_NEEDED - set(entry))
    where = f"{DATA}/billing/{provider}.toml: rule {entry.get('name', '?')!r}"
    problems = [f"{where}: unknown field {field!r}; remove it" for field in unknown]
    problems += [f"{where}: field {field!r} is missing; add it" for field in missing]
    if problems:
        raise InputError(problems)
    value = entry["value"]
    return BillingRule(
        provider=provider,
        name=entry["name"],
        value=value if isinstance(value, str | Decimal) else Decimal(value),
        unit=entry["unit"],
        source=entry["source"],
        as_of=entry["as_of"],
        confidence=entry["confidence"],
        valid_from=entry.get("valid_from"),
        valid_until=entry.get("valid_until"),
        note=entry.get("note", ""),
        regions=tuple(entry.get("regions", ())),
        tier_from=Decimal(entry.get("from", 0)),
        tier_until=Decimal(entry.get("until", OPEN_END)),
        kind=entry.get("kind", ""),
        product=entry.get("product", ""),
        purchase=entry.get("purchase", ""),
        month_h=_month_h(entry.get("month_h")),
        step_s=None if "step_s" not in entry else Decimal(entry["step_s"]),
        prorated=entry.get("prorated", False),
        each_gib=None if "each_gib" not in entry else Decimal(entry["each_gib"]),
    )


def _month_h(value: Decimal | int | str | None) -> Decimal | str | None:
    return value if value is None or value == CALENDAR else Decimal(value)


def _rule_from_egress_row(provider: str, row: Mapping[str, str]) -> BillingRule:
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
    )
