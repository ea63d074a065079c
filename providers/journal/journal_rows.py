"""Rows of the journal as values: a run, its resources, its offer, which is a line of text."""

import json
import sqlite3
from datetime import date, datetime
from decimal import Decimal

from pricing.catalog.offer import Offer
from pricing.money import plain, usd
from providers.interface import Deployment, JournaledResource
from providers.ownership_tags import OwnershipTags
from providers.terms import Terms

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


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def resource_from_row(row: sqlite3.Row) -> JournaledResource:
    """Return a resource of a run."""
    return JournaledResource(
        kind=row["kind"],
        name=row["name"],
        region=row["region"],
        id=row["id"],
        state=row["state"],
        intended_at=datetime.fromisoformat(row["intended_at"]),
        billed_from=_time(row["billed_from"]),
        billed_until=_time(row["billed_until"]),
        address=row["address"],
    )


def run_from_row(
    row: sqlite3.Row, resources: tuple[JournaledResource, ...], agreed: Terms | None
) -> Deployment:
    """Return a run with its resources, and what its launch was confirmed with."""
    predicted = row["predicted_usd"]
    return Deployment(
        marks=OwnershipTags(
            run=row["run"],
            deadline=datetime.fromisoformat(row["deadline"]),
            owner=row["owner"],
            plan=row["plan"],
        ),
        provider=row["provider"],
        offer=None if row["offer"] is None else offer_from_text(row["offer"]),
        region=row["region"],
        count=row["count"],
        state=row["state"],
        started_at=datetime.fromisoformat(row["started_at"]),
        ended_at=_time(row["ended_at"]),
        predicted_usd=None if predicted is None else Decimal(predicted),
        resources=resources,
        reason=row["reason"],
        account=row["account"],
        terms=agreed,
    )
