"""What every fetcher of prices is asked and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Protocol, cast

from pricing.refresh.reading import PriceReading
from providers.registry import CLOUDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a fetcher.

    Attributes:
        now: the time of the reading, aware.
        environment: variables that hold credentials and endpoints; never printed.
        regions: only these; empty: the fetcher's own default.
    """

    now: datetime
    environment: Mapping[str, str] = field(repr=False)
    regions: tuple[str, ...] = ()


class Fetch(Protocol):
    """Reads a provider's live prices.

    Raises:
        MissingCredentialsError: names the variable to set.
        InputError: an endpoint, a file or a region that was asked for cannot be used.
        ProviderError: the provider failed; nothing of its answer is kept.
    """

    def __call__(self, request: Request) -> PriceReading:
        """Return everything that the provider says it sells."""


def fetcher(provider: str) -> Fetch:
    """Return the fetcher of a provider in `priced()`; its library is imported when it fetches."""
    return cast("Fetch", import_module(CLOUDS[provider].prices).fetch)
