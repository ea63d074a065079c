"""The documents of `gpucost quote`: of an offer, of a plan's option, of one's own machine."""

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from gpucost.files.own_hardware import load_own_hardware
from gpucost.files.plan_file import load_plan
from planner.plan_document.encode import encode
from planner.plan_document.find import find_option
from pricing.alternatives.commitment import commit, commitment_json, commitment_note
from pricing.alternatives.ownership import SPREAD_FRACTION, Ownership, Swing, sensitivity
from pricing.billing.price_changes import quote_over
from pricing.billing.provider_rules import rules
from pricing.billing.quote import SCHEMA, Quote, Usage, quote, to_json
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import EVERYWHERE, PURCHASES, TERMS_H, Offer, parse_place
from pricing.errors import InputError
from pricing.money import cents, plain, quantity_text

OWN = "own"
OWN_SCHEMA = "gpucost.ownership/v1"
MONTHS_H = (730, 744)
"""A month as price lists have it (365 x 24 / 12), and the longest one."""

_OWN_PRICE = "given with --price"
_SHARES = tuple(Decimal(text) for text in ("0.25", "0.5", "0.75", "1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteRequest:
    """One use, to be priced at several offers.

    Attributes:
        day: whose prices hold.
        duration_s: life of the machines; None is a month, shown for every length of it.
        purchase: how it is bought.
        price: what one machine costs an hour instead of the catalog's price, if that is given.
        start: instant at which it starts, if that is known.
        use: further fields of `Usage`.
    """

    day: date
    duration_s: Decimal | None
    purchase: str
    price: Decimal | None = None
    start: datetime | None = None
    use: dict[str, Any] = field(default_factory=dict)

    def usage(self, hours: int | None = None) -> Usage:
        """Return the use, or the same for so many hours; a stated life owes whole terms."""
        duration_s = self.duration_s if hours is None else Decimal(hours * 3600)
        return Usage(
            duration_s=Decimal(0) if duration_s is None else duration_s,
            as_of=self.day,
            start=self.start,
            committed=hours is None and self.purchase in TERMS_H,
            **self.use,
        )


def find_offer(place: str, asked: QuoteRequest, catalog: Catalog) -> Offer:
    """Return the offer of PROVIDER/TYPE[/REGION] on the day.

    Raises:
        InputError: there is none; the message says what there is.
    """
    provider, instance_type, region = parse_place(place)
    if asked.price is None:
        return catalog.find(provider, instance_type, region, asked.purchase)
    return replace(
        _sold_somehow(place, asked.purchase, catalog),
        purchase=asked.purchase,
        usd_per_hour=asked.price,
        source=_OWN_PRICE,
        as_of=asked.day,
        as_of_text="",
        dated=True,
        valid_from=None,
        valid_until=None,
        current=True,
        withdrawn=False,
        confidence="high",
    )


def _sold_somehow(place: str, purchase: str, catalog: Catalog) -> Offer:
    """The machine as it is sold that way, else in any way: its price is replaced."""
    provider, instance_type, region = parse_place(place)
    ways = dict.fromkeys((purchase, *PURCHASES))
    refused = None
    for way in ways:
        try:
            return catalog.find(provider, instance_type, region, way)
        except InputError as error:
            refused = refused or error
    raise refused or InputError(f"{place} is not in the catalog.")


def offer_document(place: str, asked: QuoteRequest, catalog: Catalog) -> dict[str, Any]:
    """Return the quote of one offer.

    Raises:
        InputError: there is no such offer, or a quantity cannot be.
    """
    offer = find_offer(place, asked, catalog)
    if asked.duration_s is not None:
        document = to_json(_quote(place, offer, asked.usage(), catalog))
    else:
        document = to_json(_quote(place, offer, asked.usage(MONTHS_H[0]), catalog))
        document["months"] = [
            {"hours": h, "total": str(_quote(place, offer, asked.usage(h), catalog).total)}
            for h in MONTHS_H
        ]
        document["warnings"] += _month_notes(offer, asked.day)
    if asked.start is not None:
        document["start"] = asked.start.isoformat()
    if offer.purchase in TERMS_H:
        commitment = commit(offer, catalog.offers)
        document["commitment"] = commitment_json(commitment)
        document["warnings"].append(commitment_note(commitment))
    document["warnings"] += catalog.delisting(offer)
    region = parse_place(place)[2]
    if region is not None and offer.region == EVERYWHERE:
        document["warnings"].append(
            f"{offer.provider} has one price everywhere; whether it sells in {region} was not "
            "checked."
        )
    return document


def _quote(place: str, offer: Offer, usage: Usage, catalog: Catalog) -> Quote:
    if usage.start is None or offer.source == _OWN_PRICE:
        return quote(offer, usage)
    provider, instance_type, region = parse_place(place)
    rows = catalog.history(provider, instance_type, region, offer.purchase)
    return quote_over(rows, usage, region)


def _month_notes(offer: Offer, day: date) -> list[str]:
    """What is known of monthly caps; none is applied that the provider does not state for GPUs."""
    held = rules(offer.provider, day)
    cap, printed = held.rule("cpu_monthly_cap_h"), held.rule("gpu_monthly_price_h")
    if cap is None:
        return []
    hours = quantity_text(cap.amount)
    note = (
        f"{offer.provider}: sizes without GPUs are billed for {hours} h of a month at "
        "most; no such cap is known for GPU sizes, and none is applied"
    )
    if printed is not None:
        note += f" (their monthly price is {quantity_text(printed.amount)} x the hourly one)"
    return [note]


def plan_document(path: str, option_id: str) -> dict[str, Any]:
    """Return the quote of one option of a plan, as the plan has it."""
    plan = load_plan(path)
    found = find_option(plan, option_id)
    if found.offer is None or found.cost is None:
        raise InputError(f"{found.name}: its cost is not known; say --current, or --price.")
    return {
        "schema": SCHEMA,
        "as_of": plan.as_of.isoformat(),
        "currency": plan.currency,
        "total": encode(found.cost.mid),
        "offer": encode(found.offer),
        "count": found.count,
        "duration_s": round(found.hours.mid * 3600),
        "billed_s": None,
        "lines": encode(found.cost.lines),
        "warnings": list(plan.warnings),
    }


def own_document(rivals: tuple[Offer, ...]) -> dict[str, Any]:
    """Return what the machine in [own_hardware] costs a year, and from which use it pays.

    Args:
        rivals: the offers to compare it with, by the price of a GPU-hour.

    Raises:
        InputError: the section is missing or wrong.
    """
    own, bounds = load_own_hardware()
    return {
        "schema": OWN_SCHEMA,
        "currency": "USD",
        "name": own.name,
        "gpu": own.gpu,
        "gpu_count": int(own.gpus) if own.gpus == int(own.gpus) else float(own.gpus),
        "annual_usd": str(cents(own.annual_usd)),
        "costs": [{"what": cost.what, "usd": str(cents(cost.usd))} for cost in own.costs],
        "usd_per_gpu_hour": [
            {"used_fraction": float(share), "usd": _rate(own.usd_per_gpu_hour(share))}
            for share in _SHARES
        ],
        "against": [_against(own, bounds, rival) for rival in rivals],
        "assumptions": [
            f"figures without a range of their own are varied by {plain(100 * SPREAD_FRACTION)} %",
            "a GPU-hour counts as one whatever the GPU does in it: compare like with like",
        ],
    }


def _against(
    own: Ownership, bounds: dict[str, tuple[Decimal, Decimal]], rival: Offer
) -> dict[str, Any]:
    price = rival.usd_per_hour / Decimal(str(rival.gpu_count))
    return {
        "offer": rival.place,
        "gpu": rival.gpu,
        "purchase": rival.purchase,
        "usd_per_gpu_hour": _rate(price),
        "break_even_fraction": _share(own.break_even_fraction(price)),
        "sensitivity": [_swing(swing) for swing in sensitivity(own, price, bounds)],
    }


def _swing(swing: Swing) -> dict[str, Any]:
    return {
        "figure": swing.figure,
        "low": plain(swing.low),
        "high": plain(swing.high),
        "break_even_at_low": _share(swing.at_low),
        "break_even_at_high": _share(swing.at_high),
    }


def _share(fraction: Decimal) -> float:
    return float(round(fraction, 4))


def _rate(usd: Decimal) -> str:
    return str(usd.quantize(Decimal("0.0001")))
