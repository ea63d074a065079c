"""An offer as a line of text in the journal, and back."""

import json
from datetime import date

from pricing.catalog.offer import Offer
from pricing.money import plain, usd

_TEXTS = ("provider", "region", "instance_type", "gpu", "purchase", "source")
_NUMBERS = ("gpu_count", "gpu_memory_gib", "vcpus", "ram_gib", "scratch_disk_gib")


def offer_to_text(offer: Offer) -> str:
    """Return what bills and tables need of an offer, as JSON; money is text."""
    told: dict[str, object] = {name: getattr(offer, name) for name in (*_TEXTS, *_NUMBERS)}
    told |= {"usd_per_hour": plain(offer.usd_per_hour), "as_of": offer.as_of.isoformat()}
    return json.dumps(told | {"dated": offer.dated})


def offer_from_text(text: str) -> Offer:
    """Return the offer that `offer_to_text` wrote."""
    told = json.loads(text)
    price, day = usd(told.pop("usd_per_hour")), date.fromisoformat(told.pop("as_of"))
    return Offer(usd_per_hour=price, as_of=day, **told)
