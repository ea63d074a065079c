"""Which offer holds on a day: dated rows in, one offer per provider, region, type and purchase."""

import difflib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property, lru_cache
from itertools import chain, islice, takewhile
from operator import attrgetter

from msgspec import structs

from pricing.catalog.offer import EVERYWHERE, PURCHASES, Offer, bundled_offers
from pricing.catalog.sizes import sizes
from pricing.errors import InputError
from pricing.message import Message


@lru_cache(maxsize=4)
def load_catalog(as_of: date | None = None, *, extra: tuple[Offer, ...] = ()) -> "Catalog":
    """Return the bundled offers as they stood on a day.

    Args:
        as_of: the day; None is the newest day on which any price was read (never today's clock).
        extra: further rows, such as prices read today; they compete by the same rules.
    """
    rows = tuple(sorted((*bundled_offers(), *extra), key=_row_order))
    if as_of is None:
        as_of = max(row.as_of for row in rows if row.dated)
    return Catalog(as_of=as_of, rows=rows)


_offer_order = attrgetter("provider", "instance_type", "region", "purchase")


def _order_text(row: Offer) -> str:
    """Return `_offer_order` as one text, which sorts faster."""
    return f"{row.provider}\0{row.instance_type}\0{row.region}\0{row.purchase}"


def _row_order(row: Offer) -> tuple[object, ...]:
    return (_offer_order(row), row.starts, not row.current, row.usd_per_hour, row.source)


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Every known price row, seen from one day.

    Attributes:
        as_of: the day.
        rows: all rows, current and superseded, in a fixed order.
        published: when the published catalog was made that rows are of; None: none is.
        sha256: of the rows that are not bundled, in hex; empty where all are.
    """

    as_of: date
    rows: tuple[Offer, ...] = field(repr=False)
    published: datetime | None = None
    sha256: str = ""

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """The offers that hold on the day, sorted by provider, type, region and purchase.

        A type whose first known price is later is offered at that price; one whose only price
        has ended is not; nor is one that the provider's newest reading no longer lists.
        """
        return tuple(sorted(chain.from_iterable(self.by_size), key=_order_text))

    @cached_property
    def by_size(self) -> tuple[tuple[Offer, ...], ...]:
        """The offers that hold on the day by provider, type and way of buying, sorted by these."""
        sizes = (
            tuple(
                row
                for row in (group if len(group) == 1 else self._in_force(group))
                if (row.valid_until is None or row.valid_until >= self.as_of)
                and ((row.current and not row.withdrawn) or not self._delisted(row))
            )
            for _, sold in sorted(self._sold.items())
            for _, group in sorted(sold.items())
        )
        return tuple(filter(None, sizes))

    def bought_otherwise(self, offer: Offer) -> Iterator[Offer]:
        """Yield the offers of one size in one region, however they are bought."""
        prefix = f"{offer.provider}\0{offer.instance_type}\0{offer.region}\0"
        first = bisect_left(self.offers, prefix, key=_order_text)
        same = islice(self.offers, first, first + len(PURCHASES))
        return takewhile(lambda row: _order_text(row).startswith(prefix), same)

    def gpu_counts(self, like: Offer) -> tuple[float, ...]:
        """Return the GPUs per machine, rising, that a provider sells of a GPU, bought like this."""
        return self._gpu_counts.get((like.provider, like.gpu, like.purchase), ())

    @cached_property
    def _gpu_counts(self) -> dict[tuple[str, str, str], tuple[float, ...]]:
        counts: dict[tuple[str, str, str], set[float]] = {}
        for offer in self.offers:
            counts.setdefault((offer.provider, offer.gpu, offer.purchase), set()).add(
                offer.gpu_count
            )
        return {key: tuple(sorted(sizes)) for key, sizes in counts.items()}

    @cached_property
    def count(self) -> int:
        """How many offers have a current row, whatever the day; a refreshed price counts once."""
        last: dict[tuple[str, ...], Offer] = {}
        for row in self.rows:
            latest = last.setdefault(_offer_order(row), row)
            if latest is not row:
                last[_offer_order(row)] = max(row, latest, key=_precedence)
        return sum(row.current for row in last.values())

    @property
    def newest(self) -> date:
        """Latest day on which a price in force was read."""
        return max(self._read_on)

    @property
    def oldest(self) -> date:
        """Earliest day on which a price in force was read."""
        return min(self._read_on)

    @cached_property
    def _read_on(self) -> set[date]:
        return {offer.as_of for offer in self.offers}

    @cached_property
    def places(self) -> tuple[Offer, ...]:
        """One offer for each provider, region and way of buying: its last."""
        return tuple({(o.provider, o.region, o.purchase): o for o in self.offers}.values())

    @cached_property
    def least_host(self) -> dict[str, tuple[float | None, float | None]]:
        """The least vCPUs and memory (GiB) for each GPU that is sold with a model.

        None where no machine with it states them.
        """
        sold: dict[str, list[Offer]] = defaultdict(list)
        for offer in self.offers:
            if offer.gpu_count >= 1:
                sold[offer.gpu].append(offer)
        return {
            gpu: (
                min((o.vcpus / o.gpu_count for o in offers if o.vcpus), default=None),
                min((o.ram_gib / o.gpu_count for o in offers if o.ram_gib), default=None),
            )
            for gpu, offers in sold.items()
        }

    def at(self, as_of: date) -> "Catalog":
        """Return the same rows seen from another day."""
        return self if as_of == self.as_of else replace(self, as_of=as_of)

    def full_place(self, text: str) -> str:
        """Return PROVIDER/TYPE of a type that only one provider has; any other text as it is."""
        name = text.lower()
        providers = {row.provider for row in self.rows if row.instance_type.lower() == name}
        return f"{providers.pop()}/{text}" if len(providers) == 1 else text

    def find(
        self,
        provider: str,
        instance_type: str,
        region: str | None = None,
        purchase: str = "on_demand",
    ) -> Offer:
        """Return the offer of that name on the day.

        Args:
            provider: such as "aws".
            instance_type: the provider's name for the size.
            region: may be left out where the price is the same in all regions of the type.
            purchase: one of PURCHASES.

        Raises:
            InputError: nothing of that name is sold so; the message lists the nearest names, the
                purchases or the regions there are, or says when the last price ended.
        """
        group = self._purchased(provider, instance_type, purchase)
        name = f"{provider}/{instance_type}"
        in_force = self._in_force(group)
        offers = [offer for offer in in_force if not offer.withdrawn] or in_force
        if not offers:
            ended = max(row.valid_until for row in group if row.valid_until is not None)
            raise InputError(
                f"{name}: its last known price ended on {ended}, so nothing is known for "
                f"{self.as_of}. Ask for a day until then: --as-of {ended}."
            )
        if region is None:
            return _one_price(name, offers)
        in_region = [offer for offer in offers if offer.region in (region, EVERYWHERE)]
        if not in_region:
            raise InputError(
                f"{name} is not sold in region {region!r}. It is sold in: "
                f"{', '.join(offer.region for offer in offers)}."
            )
        return max(in_region, key=_precedence)

    def history(
        self,
        provider: str,
        instance_type: str,
        region: str | None = None,
        purchase: str = "on_demand",
    ) -> tuple[Offer, ...]:
        """Return every known row of that name (all regions if none is given), by start."""
        rows = [
            row
            for row in self._sold.get((provider, instance_type), {}).get(purchase, ())
            if region is None or row.region in (region, EVERYWHERE)
        ]
        return tuple(sorted(rows, key=lambda row: (row.starts, _row_order(row))))

    def is_stale(self, offer: Offer) -> bool:
        """Return whether its price is old on the day, or was read on no stated day."""
        return offer.is_stale(self.as_of)

    def delisting(self, offer: Offer) -> tuple[str, ...]:
        """Return what must be said of a leftover price: superseded, with no later one known."""
        if offer.withdrawn or not self._delisted(offer):
            return ()
        statement = f"{offer.place}: this price is superseded and no later one is known"
        why = f" ({offer.notes})" if offer.notes else ""
        return (f"{statement}{why}; the provider may no longer sell it.",)

    @cached_property
    def _sold(self) -> Mapping[tuple[str, str], Mapping[str, Sequence[Offer]]]:
        """Rows by (provider, type), then by purchase, each in row order."""
        sold: dict[tuple[str, str], dict[str, list[Offer]]] = {}
        for row in self.rows:
            purchases = sold.setdefault((row.provider, row.instance_type), {})
            purchases.setdefault(row.purchase, []).append(row)
        return sold

    @cached_property
    def _last_reading(self) -> Mapping[str, date]:
        """The newest day on which each provider's current prices were read."""
        current = (row for row in self.rows if row.current)
        return {row.provider: row.as_of for row in sorted(current, key=attrgetter("as_of"))}

    def _delisted(self, row: Offer) -> bool:
        """Return whether a withdrawn or superseded row is all there is on the day."""
        return (row.withdrawn and row.starts <= self.as_of) or (
            not row.current
            and row.valid_until is None
            and row.starts < self._last_reading.get(row.provider, row.starts) <= self.as_of
        )

    def _in_force(self, group: Sequence[Offer]) -> list[Offer]:
        """Return the row that holds on the day in each region of one type and purchase."""
        regions = {row.region for row in group}
        if len(group) == 1 or (len(regions) == len(group) and EVERYWHERE not in regions):
            day = self.as_of
            return [row for row in group if row.valid_until is None or day <= row.valid_until]
        chosen = []
        by_region: dict[str, list[Offer]] = {}
        for row in group:
            by_region.setdefault(row.region, []).append(row)
        everywhere = by_region.get(EVERYWHERE, [])
        for region in sorted(regions):
            regional = [] if region == EVERYWHERE else by_region[region]
            holding = self._holding([*everywhere, *regional])
            if region == EVERYWHERE and holding is not None and not holding.current:
                # A replaced price for everywhere has ended once any region was read later.
                holding = self._holding(group)
            if holding is not None and holding.region == region:
                chosen.append(holding)
        return chosen

    def _holding(self, rows: Sequence[Offer]) -> Offer | None:
        """Return the row that holds on the day; where none does, the next known one."""
        in_force = [row for row in rows if row.holds_on(self.as_of)]
        if in_force:
            return max(in_force, key=_precedence)
        later = [row for row in rows if row.starts > self.as_of]
        return min(later, key=lambda row: row.starts, default=None)

    def _purchased(self, provider: str, instance_type: str, purchase: str) -> Sequence[Offer]:
        sold = self._sold.get((provider, instance_type))
        if sold is None:
            raise self._unknown_name(provider, instance_type)
        if purchase not in sold:
            ways = [way for way in PURCHASES if way in sold]
            listed = {"place": f"{provider}/{instance_type}", "ways": ", ".join(ways)}
            reason = Message("price.not-listed", purchase=purchase, **listed)
            raise InputError(reason, hint=f"Add --purchase {ways[0]}.")
        return sold[purchase]

    def _unknown_name(self, provider: str, instance_type: str) -> InputError:
        """Return what to raise for a name that the catalog does not have."""
        providers = sorted({name for name, _ in self._sold})
        if provider not in providers:
            near = difflib.get_close_matches(provider.lower(), providers, n=1)
            nearest = Message("price.meant", name=near[0]) if near else ""
            names = {"nearest": nearest, "providers": ", ".join(providers)}
            return InputError(Message("price.no-provider", provider=provider, **names))
        size = sizes().get((provider, instance_type))
        if size is not None:
            reason = Message("price.by-contract", place=f"{provider}/{instance_type}")
            return InputError(reason, hint=Message("price.ask", provider=provider, gpu=size.gpu))
        types = {name.lower(): name for owner, name in self._sold if owner == provider}
        near = difflib.get_close_matches(instance_type.lower(), sorted(types), n=3, cutoff=0.4)
        nearest = Message("price.nearest", names=", ".join(types[n] for n in near)) if near else ""
        names = {"provider": provider, "type": instance_type, "nearest": nearest}
        return InputError(Message("price.no-type", **names), hint=Message("price.list", **names))


def _precedence(row: Offer) -> tuple[bool, date, bool, date, bool]:
    """Rank a row; more wins: known start over partial date, later start, current over superseded.

    Of two readings of one day the one that can be trusted more wins.
    """
    is_dated = row.dated or row.valid_from is not None
    return (is_dated, row.starts, row.current, row.as_of, row.confidence == "high")


def _one_price(name: str, offers: Sequence[Offer]) -> Offer:
    """Return the only offer; of several regions with one price, that price for everywhere."""
    if len(offers) == 1:
        return offers[0]
    everywhere = [offer for offer in offers if offer.region == EVERYWHERE]
    if everywhere:
        return everywhere[0]
    if len({offer.usd_per_hour for offer in offers}) == 1:
        return structs.replace(offers[0], region=EVERYWHERE)
    regions = [offer.region for offer in offers]
    regions_named = {"first": regions[0], "regions": ", ".join(regions)}
    raise InputError(Message("price.which-region", name=name, **regions_named))


_LISTED = 25  # more names than these are not printed
_NEAR = 5
_OWNERS = {
    "amazon": "aws",
    "google": "gcp",
    "microsoft": "azure",
    "oracle": "oci",
    "do": "digitalocean",
}


def unknown_names(flag: str, values: Iterable[str], valid: Iterable[str]) -> list[str]:
    """Return a sentence for each given name that nothing is called.

    It names the nearest known ones, or all of them where there are few.

    Args:
        flag: what the names were given with, such as `--provider`.
        values: by the user.
        valid: of the catalog.
    """
    names = sorted(set(valid))
    return [
        f"{flag} {name} is not in the catalog{_suggestion(name, names)}"
        for name in values
        if name not in names
    ]


def _suggestion(name: str, names: list[str]) -> str:
    """Return which known name was meant, if one is near, and what there is."""
    near = difflib.get_close_matches(name.lower(), names, _NEAR, 0.5)
    near = [owned] if (owned := _OWNERS.get(name.lower(), "")) in names else near
    if len(names) <= _LISTED:
        near = near[:1]
    suggestion = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"{suggestion} Known: {', '.join(names)}." if len(names) <= _LISTED else suggestion
