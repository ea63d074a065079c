"""The values of `gpucost quote -f json`: of an offer, of a plan's option, of one's own machine."""

from datetime import date

import msgspec
from msgspec import UNSET, UnsetType

from planner.plan.bill import CostLine, RentedOffer
from pricing.money import Amount


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


class QuoteDocument(msgspec.Struct, frozen=True, kw_only=True):
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


class OwnCost(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars a year for one thing, in cents.

    Attributes:
        what: it is for.
        usd: a year.
    """

    what: str
    usd: Amount


class OwnRate(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars for a GPU-hour that is used, at a share of the year's hours.

    Attributes:
        used_fraction: of the year's hours.
        usd: for a GPU-hour.
    """

    used_fraction: float
    usd: Amount


class RivalSwing(msgspec.Struct, frozen=True, kw_only=True):
    """How the break-even share moves with one figure between its low and its high end.

    Attributes:
        figure: that moves.
        low: its low end, in words.
        high: its high end, in words.
        break_even_at_low: share of the hours there [0 to 1; above 1 never].
        break_even_at_high: share of the hours there [0 to 1; above 1 never].
    """

    figure: str
    low: str
    high: str
    break_even_at_low: float
    break_even_at_high: float


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
    sensitivity: tuple[RivalSwing, ...]


class OwnershipDocument(msgspec.Struct, frozen=True, kw_only=True):
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
    costs: tuple[OwnCost, ...]
    usd_per_gpu_hour: tuple[OwnRate, ...]
    against: tuple[Rival, ...]
    assumptions: tuple[str, ...]
