"""The documents of `gpucost quote`: of an offer, of a plan's option, of one's own machine."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, structs

from gpucost.arguments.settings import OWN_HARDWARE, load_section
from gpucost.files.plan_file import load_plan
from planner.models.estimate import whole
from planner.plan.bill import CostLine, RentedOffer, cost_lines, rented_offer
from planner.plan.read import find_option
from pricing import alternatives
from pricing.billing.provider_rules import rules_of
from pricing.billing.quote import SCHEMA, Quote, Usage, quote, quote_over
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import EVERYWHERE, PURCHASES, TERMS_H, Offer, parse_place
from pricing.errors import InputError
from pricing.hardware import resolve
from pricing.money import Amount, cents, plain, quantity_text, without_zeros


class QuotedMonth(msgspec.Struct, frozen=True, kw_only=True):
    """The whole bill of a month of so many hours, in cents.

    Attributes:
        hours: of the month [h].
        total: the bill [USD].
    """

    hours: int
    total: Amount


class QuotedCommitment(msgspec.Struct, frozen=True, kw_only=True):
    """A reserved offer beside the same GPUs on demand.

    Attributes:
        term_h: hours that are paid for.
        term_usd: for one machine over all of them.
        on_demand: the place that it is compared with; None where none is sold.
        on_demand_usd_per_hour: its price.
        break_even_fraction: share of the hours from which the commitment is cheaper.
    """

    term_h: int
    term_usd: Amount
    on_demand: str | None
    on_demand_usd_per_hour: Amount | None
    break_even_fraction: float | None


class PrintedQuote(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of one use of one offer, or of an option of a plan.

    Attributes:
        schema: of the document.
        as_of: day of prices and rules.
        currency: of every amount.
        total: in cents.
        offer: what is rented.
        count: machines.
        duration_s: life of each.
        billed_s: billed seconds of each; None for an option of a plan.
        lines: they add up to the total, but for its rounding.
        warnings: what a reader must know.
        at_least: whether a part has no known price; left out where none is missing.
        months: the bill of each length of a month, where no duration was given.
        start: instant at which the bill begins, as it was given.
        commitment: of a reserved offer.
    """

    schema: str
    as_of: date
    currency: str
    total: Amount
    offer: RentedOffer
    count: int
    duration_s: float
    billed_s: int | None
    lines: tuple[CostLine, ...]
    warnings: tuple[str, ...]
    at_least: bool | UnsetType = UNSET
    months: tuple[QuotedMonth, ...] | UnsetType = UNSET
    start: str | UnsetType = UNSET
    commitment: QuotedCommitment | UnsetType = UNSET


class OwnRate(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars for a GPU-hour that is used, at a share of the year's hours.

    Attributes:
        used_fraction: of the year's hours.
        usd: for a GPU-hour.
    """

    used_fraction: float
    usd: Amount


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """An offer beside one's own machine.

    Attributes:
        offer: its place.
        gpu: canonical model.
        purchase: how it is bought.
        usd_per_gpu_hour: its price.
        break_even_fraction: share of the year's hours from which owning is cheaper; above 1 never.
        sensitivity: by figure, the widest swing first.
    """

    offer: str
    gpu: str
    purchase: str
    usd_per_gpu_hour: Amount
    break_even_fraction: float
    sensitivity: tuple[alternatives.Swing, ...]


class OwnershipCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine of one's own costs a year, and from which use it pays.

    Attributes:
        schema: of the document.
        currency: of every amount.
        name: what the machine is called.
        gpu: canonical model.
        gpu_count: GPUs in it.
        annual_usd: a year, used or not.
        costs: they add up to it.
        usd_per_gpu_hour: at several shares of the hours.
        against: the offers it is compared with.
        assumptions: what a reader must know.
    """

    schema: str
    currency: str
    name: str
    gpu: str
    gpu_count: float
    annual_usd: Amount
    costs: tuple[alternatives.Cost, ...]
    usd_per_gpu_hour: tuple[OwnRate, ...]
    against: tuple[Rival, ...]
    assumptions: tuple[str, ...]


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
    use: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def usage(self, hours: int | None = None) -> Usage:
        """Return the use, or the same for the hours of a month; a stated life owes whole terms."""
        duration_s = self.duration_s if hours is None else Decimal(hours * 3600)
        return Usage(
            duration_s=Decimal(0) if duration_s is None else duration_s,
            as_of=self.day,
            start=self.start,
            commitment="term" if hours is None else "month",
            **self.use,
        )


def find_offer(name: str, request: QuoteRequest, catalog: Catalog) -> Offer:
    """Return the offer of PROVIDER/TYPE[/REGION] on the day.

    Raises:
        InputError: there is none; the message says what there is.
    """
    provider, instance_type, region = parse_place(name)
    if request.price is None:
        return catalog.find(provider, instance_type, region, request.purchase)
    return structs.replace(
        _sold_somehow(name, request.purchase, catalog),
        purchase=request.purchase,
        usd_per_hour=request.price,
        source=_OWN_PRICE,
        as_of=request.day,
        as_of_text="",
        dated=True,
        valid_from=None,
        valid_until=None,
        current=True,
        withdrawn=False,
        confidence="high",
    )


def _sold_somehow(name: str, purchase: str, catalog: Catalog) -> Offer:
    """Return the machine as it is sold that way, else in any way: its price is replaced."""
    provider, instance_type, region = parse_place(name)
    ways = dict.fromkeys((purchase, *PURCHASES))
    refused = None
    for way in ways:
        try:
            return catalog.find(provider, instance_type, region, way)
        except InputError as error:
            refused = refused or error
    raise refused or InputError(f"{name} is not in the catalog.")


def offer_document(name: str, request: QuoteRequest, catalog: Catalog) -> PrintedQuote:
    """Return the quote of one offer.

    Raises:
        InputError: there is no such offer, or a quantity cannot be.
    """
    offer = find_offer(name, request, catalog)
    months: tuple[QuotedMonth, ...] | UnsetType = UNSET
    if request.duration_s is None:
        bills = {hours: _quote(name, offer, request.usage(hours), catalog) for hours in MONTHS_H}
        months = tuple(QuotedMonth(hours=h, total=bill.total) for h, bill in bills.items())
        priced, notes = bills[MONTHS_H[0]], _month_notes(offer, request.day)
    else:
        priced, notes = _quote(name, offer, request.usage(), catalog), []
    committed = alternatives.commit(offer, catalog.offers) if offer.purchase in TERMS_H else None
    if committed is not None:
        notes.append(alternatives.commitment_note(committed))
    notes += catalog.delisting(offer)
    region = parse_place(name)[2]
    if region is not None and offer.region == EVERYWHERE:
        notes.append(
            f"{offer.provider} has one price everywhere; whether it sells in {region} was not "
            "checked."
        )
    return msgspec.structs.replace(
        document_of(priced),
        warnings=(*priced.warnings, *notes),
        months=months,
        start=UNSET if request.start is None else request.start.isoformat(),
        commitment=UNSET if committed is None else _commitment(committed),
    )


def document_of(bill: Quote) -> PrintedQuote:
    """Return the bill of one use of one offer as it is printed."""
    return PrintedQuote(
        schema=SCHEMA,
        as_of=bill.usage.as_of,
        currency="USD",
        total=bill.total,
        offer=rented_offer(bill.offer),
        count=bill.usage.count,
        duration_s=whole(bill.usage.duration_s),
        billed_s=bill.billed_s,
        lines=tuple(structs.replace(line, parts=UNSET) for line in cost_lines(bill.lines)),
        warnings=bill.warnings,
        at_least=True if bill.at_least else UNSET,
    )


def _commitment(commitment: alternatives.Commitment) -> QuotedCommitment:
    fraction, rival = commitment.break_even_fraction, commitment.on_demand
    return QuotedCommitment(
        term_h=int(commitment.term_h),
        term_usd=cents(commitment.term_usd),
        on_demand=None if rival is None else rival.place,
        on_demand_usd_per_hour=None if rival is None else without_zeros(rival.usd_per_hour),
        break_even_fraction=None if fraction is None else alternatives.break_even_share(fraction),
    )


def _quote(name: str, offer: Offer, usage: Usage, catalog: Catalog) -> Quote:
    if usage.start is None or offer.source == _OWN_PRICE:
        return quote(offer, usage)
    provider, instance_type, region = parse_place(name)
    rows = catalog.history(provider, instance_type, region, offer.purchase)
    return quote_over(rows, usage, region)


def _month_notes(offer: Offer, day: date) -> list[str]:
    """Return what is known of monthly caps.

    None is applied that the provider does not state for GPUs.
    """
    rules = rules_of(offer.provider, day)
    cap, printed = rules.rule("cpu_monthly_cap_h"), rules.rule("gpu_monthly_price_h")
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


def plan_document(path: str, option_id: str) -> PrintedQuote:
    """Return the quote of one option of a plan, as the plan has it."""
    plan = load_plan(path)
    option = find_option(plan, option_id)
    if option.offer is None or option.cost is None:
        raise InputError(f"{option.name}: its cost is not known; say --machine, or --price.")
    return PrintedQuote(
        schema=SCHEMA,
        as_of=plan.as_of,
        currency=plan.currency,
        total=option.cost.mid,
        offer=option.offer,
        count=option.count,
        duration_s=round(option.hours.mid * 3600),
        billed_s=None,
        lines=option.cost.lines,
        warnings=plan.warnings,
    )


def own_document(rivals: tuple[Offer, ...]) -> OwnershipCosts:
    """Return what the machine in [own_hardware] costs a year, and from which use it pays.

    Args:
        rivals: the offers to compare it with, by the price of a GPU-hour.

    Raises:
        InputError: the section is missing or wrong.
    """
    own, bounds = load_own_hardware()
    spread_percent = plain(100 * alternatives.SPREAD_FRACTION)
    return OwnershipCosts(
        schema=OWN_SCHEMA,
        currency="USD",
        name=own.name,
        gpu=own.gpu,
        gpu_count=whole(own.gpus),
        annual_usd=cents(own.annual_usd),
        costs=tuple(structs.replace(cost, usd=cents(cost.usd)) for cost in own.costs),
        usd_per_gpu_hour=tuple(
            OwnRate(used_fraction=float(share), usd=_rate(own.usd_per_gpu_hour(share)))
            for share in _SHARES
        ),
        against=tuple(_rival(own, bounds, offer) for offer in rivals),
        assumptions=(
            f"figures without a range of their own are varied by {spread_percent} %",
            "a GPU-hour counts as one whatever the GPU does in it: compare like with like",
        ),
    )


def _rival(
    own: alternatives.Ownership, bounds: dict[str, tuple[Decimal, Decimal]], offer: Offer
) -> Rival:
    return Rival(
        offer=offer.place,
        gpu=offer.gpu,
        purchase=offer.purchase,
        usd_per_gpu_hour=_rate(offer.usd_per_gpu_hour),
        break_even_fraction=alternatives.break_even_share(
            own.break_even_fraction(offer.usd_per_gpu_hour)
        ),
        sensitivity=alternatives.sensitivity(own, offer.usd_per_gpu_hour, bounds),
    )


def _rate(usd: Decimal) -> Decimal:
    return usd.quantize(Decimal("0.0001"))


_ENDS = 3
_WORDS = ("name", "gpu")


def load_own_hardware() -> tuple[alternatives.Ownership, dict[str, tuple[Decimal, Decimal]]]:
    """Return the machine of the settings file, and the low and high ends that its owner gave.

    A figure is a number, or `[low, expected, high]`.

    Raises:
        InputError: there is no such section, or figures are missing, unknown or out of range; all
            of them.
    """
    section, where = load_section(OWN_HARDWARE)
    needed = [f.name for f in fields(alternatives.Ownership) if f.default is MISSING]
    problems = [f"{where} {name} is missing; add it." for name in needed if name not in section]
    values: dict[str, Any] = {}
    bounds: dict[str, tuple[Decimal, Decimal]] = {}
    for key, value in section.items():
        try:
            if key in _WORDS:
                values[key] = _word(key, value)
            elif key in alternatives.FIGURES or key == alternatives.CLOUD:
                low, values[key], high = _figure(value)
                if isinstance(value, list):
                    bounds[key] = (low, high)
            else:
                problems.append(
                    f"{where} {key} is not one of its figures: {', '.join(alternatives.FIGURES)}."
                )
        except InputError as error:
            problems += [f"{where} {key}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    values.pop(alternatives.CLOUD, None)
    return alternatives.Ownership(**values), bounds


def _word(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{value!r:.40} is not text.")
    if key != "gpu":
        return value
    return resolve(value).name


def _figure(value: object) -> tuple[Decimal, Decimal, Decimal]:
    """Return low, expected and high; all the same where one number is given."""
    if isinstance(value, list):
        if len(value) != _ENDS:
            raise InputError(f"{value!r:.40} is not a range; write one number or [low, mid, high].")
        low, mid, high = (_number(end) for end in value)
        if not low <= mid <= high:
            raise InputError(f"{value!r:.40} does not rise; write [low, mid, high].")
        return low, mid, high
    number = _number(value)
    return number, number, number


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{value!r:.40} is not a number.")
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise InputError(f"{value!r:.40} is not a number.") from None
    if not number.is_finite():
        raise InputError(f"{value!r:.40} is not a finite number.")
    return number
