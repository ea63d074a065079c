"""The ledger: seconds that were billed for each machine by its provider's own rule, and dollars."""

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

from msgspec import structs

from pricing.billing.quote import Quote, Usage, quote
from pricing.catalog.offer import Offer
from pricing.money import EXACT
from providers.interface import Deployment, JournaledResource

_FINEST_PRICE = Decimal("0.000001")
_LEAST_S = Decimal(1)  # clocks have whole seconds, and what was made was there for a moment


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """What a run has cost.

    Attributes:
        billed_s: seconds of all machines together, as the provider counts them.
        usd: exact; None where the price is not known.
        usd_per_hour: what the machines that are there cost an hour; None without a price.
        machines: machines that are there.
    """

    billed_s: int
    usd: Decimal | None
    usd_per_hour: Decimal | None
    machines: int


def bill_run(deployment: Deployment, now: datetime) -> RunCost:
    """Return the bill of a run so far, or its last one where all machines are gone.

    Args:
        deployment: the run.
        now: the end of billing of machines that are still there.
    """
    born = [machine for machine in deployment.machines if machine.billed_from is not None]
    burning = ("made", "intended") if deployment.ended_at is None else ("made",)
    alive = sum(machine.state in burning for machine in deployment.machines)
    if not deployment.machines and any(
        machine.state in burning for machine in deployment.computing
    ):
        alive = deployment.count  # a pool whose nodes nobody has seen yet
    bills = [bill_machine(machine, deployment.offer, now) for machine in born]
    billed_s = sum(billed for billed, _ in bills)
    if deployment.offer is None:
        return RunCost(billed_s=billed_s, usd=None, usd_per_hour=None, machines=alive)
    total = Decimal(0)
    for _, dollars in bills:
        total = EXACT.add(total, dollars or Decimal(0))
    return RunCost(
        billed_s=billed_s,
        usd=total,
        usd_per_hour=deployment.offer.usd_per_hour * alive,
        machines=alive,
    )


def bill_machine(
    machine: JournaledResource, offer: Offer | None, now: datetime
) -> tuple[int, Decimal | None]:
    """Return a machine's billed seconds and exact dollars; without a price, its lifetime."""
    if machine.billed_from is None:
        return 0, Decimal(0)
    until = machine.billed_until or now
    lived_s = max(_LEAST_S, Decimal(str((until - machine.billed_from).total_seconds())))
    if offer is None:
        return int(lived_s), None
    bill = quote_machines(offer, 1, lived_s, machine.billed_from)
    return bill.billed_s, bill.exact


def quote_machines(offer: Offer, count: int, seconds: Decimal, day: datetime) -> Quote:
    """Return the bill of so many machines for so long, each with its public address."""
    return quote(offer, Usage(duration_s=seconds, as_of=day.date(), count=count, addresses=count))


def usd_for(offer: Offer | None, count: int, seconds: Decimal, day: datetime) -> Decimal:
    """Return what so many machines cost for so long, exact.

    A machine of one's own costs nothing more.
    """
    if offer is None:
        return Decimal(0)
    return quote_machines(offer, count, seconds, day).exact


def price_within(
    offer: Offer, count: int, seconds: Decimal, day: datetime, most_usd: Decimal
) -> Decimal:
    """Return the highest hourly price at which so many machines cost no more than that.

    A bill is linear in the price; what does not depend on it, such as addresses, comes off first.
    Rounded down to a millionth of a dollar; 0 where the rest, or a minimum charge, costs more.
    """
    at_1_usd, at_2_usd = (
        usd_for(structs.replace(offer, usd_per_hour=price), count, seconds, day)
        for price in (Decimal(1), Decimal(2))
    )
    hours = EXACT.subtract(at_2_usd, at_1_usd)
    budget = EXACT.subtract(most_usd, EXACT.subtract(at_1_usd, hours))
    price = EXACT.divide(max(budget, Decimal(0)), hours).quantize(
        _FINEST_PRICE, rounding=ROUND_DOWN
    )
    if (
        price > 0
        and usd_for(structs.replace(offer, usd_per_hour=price), count, seconds, day) <= most_usd
    ):
        return price
    return Decimal(0)
