"""What stands on a bill beside machine time, looked up at one place for one use but for its time.

Uses that differ by their time alone share items. An item tells its dollars where many bills are
compared, and the same dollars with their line where one is written.
"""

from decimal import Decimal
from typing import NamedTuple, Protocol

from pricing.billing.amount import words_of
from pricing.billing.billing_rule import BillingRule, caveats
from pricing.billing.lines import Charge, QuoteLine
from pricing.billing.rates import Rate
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer

_ZERO = Decimal(0)


class Item(Protocol):
    """One thing that was asked for."""

    @property
    def what(self) -> str:
        """Its kind of line."""

    def usd(self, usage: Usage) -> Decimal | None:
        """Return its dollars, exact; None where it has no known price."""

    def charge(self, offer: Offer, usage: Usage) -> Charge:
        """Return the same as a line, with what must be said beside it."""


class Timed(NamedTuple):
    """What is billed by its time.

    Attributes:
        what: its kind of line.
        rate: its price, in whatever quantity was asked for.
        words: what it is called in the rule of its line.
        terms: the rules behind it, whose caveats are said.
        kept: it is billed for as long as things are kept; else for as long as the machines live.
        more: what the rule of its line says beside its price.
    """

    what: str
    rate: Rate
    words: str
    terms: tuple[BillingRule, ...]
    kept: bool = False
    more: str = ""

    def usd(self, usage: Usage) -> Decimal:
        """Return its dollars, exact."""
        return self.rate.usd(usage.kept_s if self.kept else usage.life_s, usage.start)

    def charge(self, offer: Offer, usage: Usage) -> Charge:
        """Return the same as a line, with what must be said beside it."""
        return self.charge_as(words_of(self.rate.price, self.words) + self.more, offer, usage)

    def charge_as(self, rule: str, offer: Offer, usage: Usage) -> Charge:
        """Return its line under a rule in words."""
        amount = self.rate.amount(usage.kept_s if self.kept else usage.life_s, usage.start)
        said = tuple([f"{self.what}: {offer.provider}: {text}" for text in amount.warnings])
        line = amount.line(self.what, self.rate.price, rule)
        return Charge((line,), said + caveats(self.terms))


class ComesAlong(NamedTuple):
    """A boot disk in the price of its machine."""

    what: str
    gib: Decimal

    def usd(self, usage: Usage) -> Decimal:  # noqa: ARG002 - as of every item
        """Return nothing."""
        return _ZERO

    def charge(self, offer: Offer, usage: Usage) -> Charge:  # noqa: ARG002 - as of every item
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

    def usd(self, usage: Usage) -> None:
        """Return that its dollars are not known."""

    def charge(self, offer: Offer, usage: Usage) -> Charge:  # noqa: ARG002 - as of every item
        """Return no line, but what is left out."""
        return Charge((), (self.text,), (self.what,))


class Settled(NamedTuple):
    """What costs the same however long the machines live."""

    what: str
    always_usd: Decimal | None
    item: Item

    def usd(self, usage: Usage) -> Decimal | None:  # noqa: ARG002 - as of every item
        """Return its dollars, exact; None where it has no known price."""
        return self.always_usd

    def charge(self, offer: Offer, usage: Usage) -> Charge:
        """Return the same as a line, with what must be said beside it."""
        return self.item.charge(offer, usage)
