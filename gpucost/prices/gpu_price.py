"""What one GPU of a pool costs an hour: of a machine, the cheapest one with it, or stated."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from gpucost.prices.cache import load_catalog
from planner.capacity.capacity import GpuPrice
from pricing.catalog.offer import Offer, parse_place
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.money import price_text


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedBy:
    """What names the price: one of place, gpu and price, or nothing.

    Attributes:
        place: PROVIDER/TYPE[/REGION].
        gpu: a GPU's name; its cheapest machine.
        price: of one GPU an hour, USD.
        purchase: how it is bought.
    """

    place: str | None
    gpu: str | None
    price: Decimal | None
    purchase: str


def gpu_price(asked: PricedBy, day: date, say: Callable[[str], None]) -> GpuPrice:
    """Return what one GPU costs an hour on a day.

    Raises:
        InputError: more than one of machine, GPU and price is given, or nothing is sold so.
    """
    given = [name for name in ("place", "gpu", "price") if getattr(asked, name) is not None]
    if len(given) > 1:
        raise InputError("give one of --type, --gpu and --price: each names the price of a GPU.")
    if asked.price is not None:
        return GpuPrice(usd_per_gpu_hour=asked.price, how="as stated by --price", step=1)
    if not given:
        how = "no price: name --type, --gpu or --price for dollars"
        return GpuPrice(usd_per_gpu_hour=None, how=how, step=1)
    offer = _offer(asked, day, say)
    each = offer.usd_per_hour / Decimal(str(offer.gpu_count))
    how = (
        f"{offer.provider}/{offer.instance_type} ({offer.gpu_count:g}x {offer.gpu}), "
        f"{offer.purchase.replace('_', ' ')}, {price_text(offer.usd_per_hour)} USD/h, "
        f"read {offer.as_of}"
    )
    return GpuPrice(usd_per_gpu_hour=each, how=how, step=max(1, int(offer.gpu_count)))


def _offer(asked: PricedBy, day: date, say: Callable[[str], None]) -> Offer:
    """Return the machine whose GPUs are meant."""
    catalog = load_catalog(day, say=say)
    if asked.place is not None:
        provider, instance_type, region = parse_place(asked.place)
        return catalog.find(provider, instance_type, region, asked.purchase)
    models = {gpu.name for gpu in matching(asked.gpu or "")}
    sold = [
        offer
        for offer in catalog.offers
        if offer.gpu in models and offer.purchase == asked.purchase and offer.gpu_count >= 1
    ]
    if not sold:
        raise InputError(
            f"no machine with a whole {asked.gpu} is sold {asked.purchase.replace('_', ' ')}; "
            f"gpucost prices --gpu {asked.gpu} shows what is."
        )
    return min(
        sold,
        key=lambda offer: (offer.usd_per_hour / Decimal(str(offer.gpu_count)), offer.gpu_count),
    )
