"""Quotes of offers: what is asked is checked as a whole, then priced offer by offer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import click

from gpucost.arguments.parameters import today
from gpucost.files.quote_documents import (
    OWN,
    QuoteRequest,
    find_offer,
    offer_document,
    own_document,
)
from gpucost.files.quote_values import OwnershipDocument, QuoteDocument
from gpucost.prices.cache import load_catalog
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One use of offers, as it was typed.

    Attributes:
        duration: life of the machines, seconds; None where none was given.
        monthly: a month of no date instead.
        purchase: how they are bought.
        price: one's own price of a machine an hour; None: the catalog's.
        start: instant at which the bill begins; None: the beginning of the day.
        as_of: day of prices and rules; None: today.
        use: further fields of `Usage`; None where one was not given.
    """

    duration: Decimal | None
    monthly: bool
    purchase: str
    price: Decimal | None
    start: datetime | None
    as_of: date | None
    use: Mapping[str, object]

    def asked(self, *, of_offers: bool) -> QuoteRequest:
        """Return the use to be priced.

        Raises:
            UsageError: the options contradict each other, or a duration is missing.
        """
        if self.monthly and (self.duration is not None or self.start is not None):
            raise click.UsageError(
                "--monthly is a month of no date; leave out --duration and --start."
            )
        if self.start is not None and self.as_of is not None:
            raise click.UsageError("--start says the day; leave out --as-of.")
        if self.use.get("interrupted") and self.purchase != "spot":
            raise click.UsageError("--interrupted is for spot machines; add --purchase spot.")
        if of_offers and self.duration is None and not self.monthly:
            raise click.UsageError(
                "how long? Give --duration, such as --duration 90m, or --monthly."
            )
        return QuoteRequest(
            day=self.start.date() if self.start is not None else self.as_of or today(),
            duration_s=None if self.monthly else self.duration,
            purchase=self.purchase,
            price=self.price,
            start=self.start,
            use={name: value for name, value in self.use.items() if value is not None},
        )


def quote_offers(
    what: tuple[str, ...], wanted: Wanted, say: Callable[[str], None]
) -> list[QuoteDocument | OwnershipDocument]:
    """Return the quote of each offer, and of one's own machine where `own` is named.

    Raises:
        UsageError: as `Wanted.asked`.
        InputError: offers are not known; all of them are named.
    """
    places = [name for name in what if name != OWN]
    asked = wanted.asked(of_offers=bool(places))
    catalog = load_catalog(asked.day, say=say)
    _check_places(places, asked, catalog)
    return [
        own_document(tuple(find_offer(place, asked, catalog) for place in places))
        if name == OWN
        else offer_document(name, asked, catalog)
        for name in what
    ]


def _check_places(places: list[str], asked: QuoteRequest, catalog: Catalog) -> None:
    """Name every offer that is not known, not only the first."""
    problems: list[str] = []
    for place in places:
        try:
            find_offer(place, asked, catalog)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
