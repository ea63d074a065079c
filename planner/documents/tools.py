"""What other tools call a provider and a GPU, and which of them can start an option."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from planner.plan.bill import RentedOffer
from pricing.catalog.offer import BOUGHT

_LEAST_IDLE_S = 60  # our script looks every ten seconds

CLUSTER = "kubernetes"
"""The tool that starts jobs on machines which are there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that can rent a machine and run a job on it.

    Attributes:
        title: as it writes itself.
        providers: its names of the catalog's providers.
        types: the providers whose machine types it takes by their own names.
        gpus: its names of the catalog's GPUs.
        by_provider: those that differ at one provider.
        off_is_free: the providers where the hours of a machine end with its power.
        names_both: the providers where it wants the GPU beside the type.
        own_idle_s: the shortest time of its own rule for GPUs that do nothing; None: it has none.
    """

    title: str
    providers: Mapping[str, str]
    types: tuple[str, ...]
    gpus: Mapping[str, str]
    by_provider: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    off_is_free: tuple[str, ...] = ()
    names_both: tuple[str, ...] = ()
    own_idle_s: int | None = None

    def takes_type(self, offer: RentedOffer) -> bool:
        """Return whether it knows the machine by the provider's own name of it."""
        return offer.provider in self.types

    def gpu(self, offer: RentedOffer) -> str | None:
        """Return its name of the offer's GPU; None where it has none."""
        return self.by_provider.get(offer.provider, {}).get(offer.gpu) or self.gpus.get(offer.gpu)

    def can_start(self, offer: RentedOffer) -> bool:
        """Return whether it rents such a machine: knows the provider, and the type or the GPU."""
        known = offer.provider in self.providers and offer.purchase in BOUGHT
        return known and (self.takes_type(offer) or self.gpu(offer) is not None)

    def least_idle_s(self, offer: RentedOffer, image: str | None) -> int | None:
        """Return the shortest idle time after which what it starts can end; None: it cannot.

        By its own rule, else by our script, which switches the machine off and does not reach it
        from within a container.
        """
        ours = offer.provider in self.off_is_free and image is None
        return _LEAST_IDLE_S if ours and self.own_idle_s is None else self.own_idle_s


@cache
def tools() -> Mapping[str, Tool]:
    """Return the tools by the word that `gpucost export --to` takes."""
    text = files("planner.documents").joinpath("tools.toml").read_text(encoding="utf-8")
    return {word: Tool(**{**row, **_tuples(row)}) for word, row in tomllib.loads(text).items()}


def _tuples(row: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(value) for name, value in row.items() if isinstance(value, list)}


def that_start(offer: RentedOffer) -> tuple[str, ...]:
    """Return the words of the tools that can rent an offer; a cluster rents nothing."""
    return tuple(
        word for word, tool in tools().items() if word != CLUSTER and tool.can_start(offer)
    )
