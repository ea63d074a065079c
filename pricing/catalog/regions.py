"""Where a region is: its country, continent and the European Union, as its provider documents it.

`--region` is a promise about where data are. A price for everywhere (`*`) keeps it only where the
size, or the provider as a whole, is documented for known regions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from msgspec import structs

from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.catalog.sizes import rental_of, sizes
from pricing.errors import InputError
from pricing.tables import read_csv

EU = "eu"
"""The group of the European Union's members; the continent is `europe`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RegionPlace:
    """Where a region is.

    Attributes:
        country: ISO 3166 code, lower case.
        name: of the country, lower case.
        continent: africa, apac, europe, middle-east, north-america or south-america.
        in_eu: whether the country is a member of the European Union.
    """

    country: str
    name: str
    continent: str
    in_eu: bool

    @property
    def names(self) -> frozenset[str]:
        """What `--region` may call it, beside the region's own name."""
        eu = {EU} if self.in_eu else set()
        return frozenset({self.country, self.name, self.continent, *eu})


def place_of(provider: str, region: str) -> _RegionPlace | None:
    """Return where a provider's region is; None where no source says so."""
    return _places().get((provider, region))


def known_regions(offers: Iterable[Offer]) -> frozenset[str]:
    """Return every word for a place: regions of offers and providers, countries, continents."""
    regions = {region for offer in offers for region in regions_of(offer)}
    regions |= {region for _, region in _places()}
    return frozenset(regions | {name for row in _places().values() for name in row.names})


@cache
def _countries() -> dict[str, str]:
    return {region: row.name for (_, region), row in _places().items()}


def country_of(region: str) -> str:
    """Return the country that a region is in; another place as it is."""
    return _countries().get(region, region)


_ANYWHERE = frozenset({"internet", "worldwide", "anywhere"})


def destination(word: str) -> str:
    """Return the country, continent or region that a word names; empty where it may be any.

    Args:
        word: a country by name or code, a continent, a region of a provider, or "internet".

    Raises:
        InputError: nothing of that name is known.
    """
    name = word.strip().lower()
    if name in _ANYWHERE:
        return ""
    for row in read_csv("countries.csv"):
        if name in (row["country"], row["name"]):
            return row["name"]
    places = {row.continent for row in _places().values()} | {EU}
    if name in places:
        return name
    if name in _countries() and name != EVERYWHERE:
        return name
    places_known = sorted(places | {row["name"] for row in read_csv("countries.csv")})
    raise InputError(
        f"{word!r} is not a place that traffic could go to; write internet, a region, "
        f"or one of: {', '.join(places_known)}."
    )


def regions_of(offer: Offer) -> tuple[str, ...]:
    """Return the regions in which an offer is known to be sold; empty where none is known.

    A price for everywhere holds in the regions of its size, else in those that the provider
    documents for such types.
    """
    if offer.region != EVERYWHERE:
        return (offer.region,)
    size = sizes().get((offer.provider, offer.instance_type))
    how = rental_of(offer.provider, offer.instance_type)
    return (size.regions if size else ()) or (how.regions if how else ())


def placed(offer: Offer, places: Iterable[str]) -> Offer | None:
    """Return the offer in a region that was asked for; None where nothing shows that it is there.

    Args:
        offer: one with a price for everywhere is taken in the first of its regions that fits.
        places: regions by their names, or groups of them; none asked for fits all.
    """
    names = {word.lower() for word in places}
    if not names:
        return offer
    for region in regions_of(offer):
        if is_in(offer.provider, region, names):
            return structs.replace(offer, region=region)
    everywhere = offer.region == EVERYWHERE and _names_of(offer.provider, EVERYWHERE) & names
    return offer if everywhere else None


def is_in(provider: str, region: str, places: Iterable[str]) -> bool:
    """Return whether a region is one of the places, by its name or a group; none: it is."""
    names = {word.lower() for word in places}
    return not names or region in names or bool(_names_of(provider, region) & names)


def continent_of(offer: Offer) -> str | None:
    """Return the one continent that an offer is on; None where it is not known, or not one."""
    region_places = [
        place_of(offer.provider, region) for region in regions_of(offer) or (EVERYWHERE,)
    ]
    names = {row.continent if row else None for row in region_places}
    return names.pop() if len(names) == 1 else None


def continent_named(country: str) -> str | None:
    """Return the continent of a country by its name, or a continent as it is; None: neither."""
    rows = read_csv("countries.csv")
    continents = {row["name"]: row["continent"] for row in rows}
    return country if country in continents.values() else continents.get(country)


def round_trip_ms(offer: Offer, country: str) -> float | None:
    """Return the median round trip between an offer's place and another country; 0 within one.

    Args:
        offer: of several regions the farthest counts.
        country: its name.

    Returns:
        Milliseconds over a provider's own network; None where they were not published.
    """
    trips = [_round_trip(name, country) for name in countries_of(offer)]
    return None if None in trips else max(filter(None, trips), default=0.0 if trips else None)


@cache
def longest_trip_ms(continent: str | None) -> float | None:
    """Return the longest round trip published between two countries of a continent, ms.

    None where there is none.
    """
    pairs = _round_trips().items()
    trips = (ms for pair, ms in pairs if {continent_named(name) for name in pair} == {continent})
    return max(trips, default=None)


def countries_of(offer: Offer) -> frozenset[str]:
    """Return the countries in which an offer may be, by name; empty for one that is not known."""
    rows = (place_of(offer.provider, region) for region in regions_of(offer))
    return frozenset(row.name if row else "" for row in rows)


def _round_trip(first: str, second: str) -> float | None:
    return 0.0 if first == second else _round_trips().get(frozenset((first, second)))


@cache
def _round_trips() -> Mapping[frozenset[str], float]:
    names = {row["country"]: row["name"] for row in read_csv("countries.csv")}
    return {
        frozenset((names[row["country"]], names[row["other"]])): float(row["ms"])
        for row in read_csv("latency.csv")
    }


def _names_of(provider: str, region: str) -> frozenset[str]:
    row = place_of(provider, region)
    return row.names if row else frozenset()


@cache
def _places() -> Mapping[tuple[str, str], _RegionPlace]:
    """Return places by provider and region; `*`: a provider that documents one region only."""
    countries = {row["country"]: row for row in read_csv("countries.csv")}
    return MappingProxyType(
        {
            (row["provider"], row["region"]): _RegionPlace(
                country=row["country"],
                name=countries[row["country"]]["name"],
                continent=countries[row["country"]]["continent"],
                in_eu=countries[row["country"]]["eu"] == "yes",
            )
            for row in read_csv("regions.csv")
        }
    )
