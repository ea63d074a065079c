"""What stands on a bill beside machine time, looked up at one place for one use but for its time.

Uses that differ by their time alone share items. An item tells its dollars where many bills are
compared, and the same dollars with their line where one is written.
"""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol

from pricing.billing.amount import Amount, Tariff, words_of
from pricing.billing.billing_rule import BillingRule, caveats
from pricing.billing.lines import Charge, QuoteLine
from pricing.catalog.offer import Offer

_ZERO = Decimal(0)


class Item(Protocol):
    """One thing that was asked for."""

    @property
    def what(self) -> str:
        """Its kind of line."""

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal | None:
        """Return its dollars, exact; None where it has no known price.

        Args:
            life_s: how long the machines live.
            start: when they are created; None where that is not known.
        """

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:
        """Return the same as a line, with what must be said beside it."""


class Timed(NamedTuple):
    """What is billed by its time.

    Attributes:
        what: its kind of line.
        rate: its price, in whatever quantity was asked for.
        words: what it is called in the rule of its line.
        terms: the rules behind it, whose caveats are said.
        more: what the rule of its line says beside its price.
    """

    what: str
    rate: Tariff
    words: str
    terms: tuple[BillingRule, ...]
    more: str = ""

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal:
        """Return its dollars, exact."""
        return self.rate.usd(life_s, start)

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:
        """Return the same as a line, with what must be said beside it."""
        rule = words_of(self.rate.price, self.words) + self.more
        return self.charge_as(rule, offer, self.rate.amount(life_s, start))

    def charge_as(self, rule: str, offer: Offer, amount: Amount) -> Charge:
        """Return the line of an amount under a rule in words."""
        said = tuple([f"{self.what}: {offer.provider}: {text}" for text in amount.warnings])
        line = amount.line(self.what, self.rate.price, rule)
        return Charge((line,), said + caveats(self.terms))


class ComesAlong(NamedTuple):
    """A boot disk in the price of its machine."""

    what: str
    gib: Decimal

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal:  # noqa: ARG002 - as of every item
        """Return nothing."""
        return _ZERO

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:  # noqa: ARG002 - as of every item
        """Return its line, which costs nothing."""
        line = QuoteLine(
            what=self.what,
            usd=_ZERO,
            formula="{0} GiB come with the machine",
            numbers=(self.gib,),
            rule="boot disk in the price of the machine",
            source=offer.source,
            as_of=offer.date_text,
        )
        return Charge((line,), ())


class Unpriced(NamedTuple):
    """What has no known price, with the sentence that says so."""

    what: str
    text: str

    def usd(self, life_s: Decimal, start: datetime | None) -> None:
        """Return that its dollars are not known."""

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:  # noqa: ARG002 - as of every item
        """Return no line, but what is left out."""
        return Charge((), (self.text,), (self.what,))


class Settled(NamedTuple):
    """What costs the same however long the machines live: it is kept for a time of its own."""

    what: str
    always_usd: Decimal | None
    item: Item
    kept_s: Decimal

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal | None:  # noqa: ARG002 - as of every item
        """Return its dollars, exact; None where it has no known price."""
        return self.always_usd

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:  # noqa: ARG002 - as of every item
        """Return the same as a line, with what must be said beside it."""
        return self.item.charge(offer, self.kept_s, start)
