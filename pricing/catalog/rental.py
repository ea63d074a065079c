"""How a machine is rented: whether any API knows it by name, from how many GPUs on, and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from pricing.tables import read_csv


@dataclass(frozen=True, slots=True, kw_only=True)
class Rental:
    """How the types of a provider that a pattern covers are rented.

    Attributes:
        pattern: of the types' names; `*` matches any characters.
        own_name: whether the provider itself calls them so; else the name is a price page's or a
            tracker's, and whoever rents one chooses it by hand.
        minimum_gpus: fewest GPUs of an order; None where no minimum is known.
        page: where a person rents there, and with which tool of the provider.
    """

    pattern: str
    own_name: bool
    minimum_gpus: int | None
    page: str


def rental_of(provider: str, instance_type: str) -> Rental | None:
    """Return how a type is rented; None where nothing is written down of its provider."""
    return next(
        (one for one in _rentals().get(provider, ()) if fnmatchcase(instance_type, one.pattern)),
        None,
    )


def page_of(provider: str) -> str | None:
    """Return where to rent at a provider by hand; None where no page is written down."""
    return next((one.page for one in _rentals().get(provider, ())), None)


@cache
def _rentals() -> Mapping[str, Sequence[Rental]]:
    """Return rentals by provider, the narrow patterns first, as in the file."""
    found: dict[str, list[Rental]] = {}
    for row in read_csv("rental.csv"):
        found.setdefault(row["provider"], []).append(
            Rental(
                pattern=row["instance_type"],
                own_name=row["own_name"] == "yes",
                minimum_gpus=int(row["minimum_gpus"]) if row["minimum_gpus"] else None,
                page=row["page"],
            )
        )
    return found
