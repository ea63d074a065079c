"""Where to rent what gpucost cannot launch: each provider's own page or tool."""

from pricing.catalog import rental
from providers.registry import CLOUDS


def page_of(provider: str) -> str:
    """Return where to rent there; a provider that can be launched on states it in its folder."""
    known = CLOUDS[provider].page if provider in CLOUDS else rental.page_of(provider)
    return known or f"the page of {provider}"
