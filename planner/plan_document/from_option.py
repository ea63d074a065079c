"""What is rented and what it costs, of a plan that was just made: rounded as it is written."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from functools import lru_cache

from msgspec import UNSET, UnsetType

from planner.actions.settings import MachineSettings
from planner.choice.candidate import UsdRange
from planner.choice.option import Distribution, Energy, Move, Option
from planner.choice.workload import Tenancy
from planner.models.copies import Scaling
from planner.models.costs import Saving, WorkCost
from planner.models.estimate import Estimate
from planner.models.power import Cap
from planner.plan.confidence import if_taken
from planner.plan.plan import JobPlan
from planner.plan_document.bill import (
    CostLine,
    OptionCost,
    PricedPart,
    RentedOffer,
    TodayCost,
    UsdEnds,
    whole,
)
from planner.plan_document.options import (
    BaselineDocument,
    BilledShare,
    CostPerWork,
    EnergyUse,
    MachineDocument,
    Moving,
    OptionDocument,
    PowerCapAdvice,
    ReasonAgainst,
    ScalingDocument,
    Spread,
    Worth,
)
from pricing.billing.lines import QuoteLine
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import sellers_of
from pricing.money import cents, without_zeros

_MOST_OFFERS = 4096


def baseline_document(job: JobPlan, as_of: date) -> BaselineDocument:
    """Return how a job runs today, of a plan for a day."""
    baseline, bill = job.baseline, job.baseline.quote
    return BaselineDocument(
        assumed=baseline.assumed,
        breaks=tuple(ReasonAgainst(reason=r.reason, detail=r.detail) for r in baseline.broken),
        offer=offer_document(baseline.offer, as_of) if baseline.offer else None,
        count=baseline.count,
        replicas=baseline.replicas,
        share=_share(baseline.tenancy) if baseline.tenancy else None,
        hours=rounded(baseline.hours),
        cost=TodayCost(
            total=in_cents(baseline.cost),
            lines=cost_lines(bill.lines) if bill else (),
            at_least=bill is not None and bill.at_least,
            unknown=tuple(bill.unknown) if bill else (),
        ),
        cost_per_work=_per_work(job.work_cost),
        energy=_energy(job.energy),
        power_cap=_power_cap(job.power_cap) if job.power_cap else None,
        machine=_machine(job.machine),
    )


def option_document(option: Option, job: JobPlan, as_of: date) -> OptionDocument:
    """Return one way to run a job."""
    doubts = option.doubts
    return OptionDocument(
        id=option.id,
        offer=offer_document(option.offer, as_of),
        count=option.count,
        provisionable=option.provisionable,
        actions=option.actions,
        settings=option.machine.values,
        machine=_machine(option.machine),
        sharing=None,
        distribution=_spread(option.distribution) if option.distribution else None,
        speed=rounded(option.speed),
        hours=rounded(option.hours),
        cost=OptionCost(
            low=cents(option.cost_low),
            mid=cents(option.cost),
            high=cents(option.cost_high),
            lines=cost_lines(option.quote.lines),
            at_least=option.quote.at_least,
            unknown=tuple(option.quote.unknown),
            by_hours=_ends(option.by_hours),
            by_price=_ends(option.by_price),
            by_speed=_ends(doubts.speed) if doubts else UNSET,
            by_cure=_ends(doubts.cure) if doubts else UNSET,
            by_use=_ends(doubts.use) if doubts else UNSET,
            basis=_basis(option, as_of),
        ),
        cost_per_work=_per_work(option.work_cost),
        energy=_energy(option.energy),
        saves=saved(option.saves),
        move=_moving(option.move) if option.move else None,
        benefit=_worth(option),
        confidence=if_taken(job.assurance, option, job.baseline, as_of).level,
        why=option.why,
        scaling=_scaling(option.scaling) if option.scaling else UNSET,
    )


def _ends(found: UsdRange) -> UsdEnds:
    return UsdEnds(low=cents(found.low), high=cents(found.high))


def _basis(option: Option, as_of: date) -> str:
    """Return where the range of a bill comes from."""
    age = max(0, (as_of - option.offer.as_of).days)
    kind = sellers_of(option.offer.provider, option.offer.purchase)
    price = f"the price, {age} days old, as prices of its kind ({kind}) have moved"
    return f"90 % interval: the hours ({option.hours.basis}); {price}"


def offer_document(offer: Offer, as_of: date) -> RentedOffer:
    """Return what is rented, at its price as of a day.

    Jobs have the same offers in their options: what was made of one is found again by the offer's
    identity, which stays its own as long as it stands beside it.
    """
    known = _documents(as_of)
    if id(offer) not in known:
        if len(known) >= _MOST_OFFERS:
            known.clear()
        known[id(offer)] = offer, _document_of(offer, as_of)
    return known[id(offer)][1]


@lru_cache(maxsize=1)
def _documents(as_of: date) -> dict[int, tuple[Offer, RentedOffer]]:  # noqa: ARG001 - of a day
    return {}


def _document_of(offer: Offer, as_of: date) -> RentedOffer:
    return RentedOffer(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        gpu=offer.gpu,
        gpu_count=whole(offer.gpu_count),
        purchase=offer.purchase,
        usd_per_hour=without_zeros(offer.usd_per_hour),
        as_of=offer.as_of,
        source=offer.source,
        stale=offer.is_stale(as_of),
        age_days=max(0, (as_of - offer.as_of).days),
        confidence=offer.confidence,
        host=offer.host,
        by_hand_at=offer.by_hand_at,
    )


def cost_lines(lines: Iterable[QuoteLine]) -> tuple[CostLine, ...]:
    """Return the lines of a bill."""
    return tuple(
        CostLine(
            what=line.what,
            usd=without_zeros(line.usd),
            how=line.how,
            rule=line.rule,
            source=line.source,
            as_of=line.as_of,
            parts=tuple(
                PricedPart(
                    quantity=without_zeros(part.quantity),
                    unit=part.unit,
                    unit_usd=without_zeros(part.unit_usd),
                )
                for part in line.parts
            ),
        )
        for line in lines
    )


def rounded(estimate: Estimate) -> Estimate:
    """Return an estimate with six significant digits."""
    return Estimate(
        low=digits(estimate.low),
        mid=digits(estimate.mid),
        high=digits(estimate.high),
        basis=estimate.basis,
        weak=estimate.weak,
    )


def digits(value: float) -> float:
    """Return six significant digits, whole numbers without a point."""
    return whole(float(f"{value:.6g}"))


def digits_of(value: float | None) -> float | None:
    """Return six significant digits of what is known."""
    return None if value is None else digits(value)


def digits_if_set(value: float | None) -> float | UnsetType:
    """Return six significant digits of what is known; nothing for a field that is left out."""
    return UNSET if value is None else digits(value)


def in_cents(amount: Decimal | None) -> Decimal | None:
    """Return dollars rounded to cents where they are known."""
    return None if amount is None else cents(amount)


def _share(tenancy: Tenancy) -> BilledShare:
    return BilledShare(held=tenancy.held, of=tenancy.of, beside=tenancy.beside)


def saved(one: Saving) -> Saving:
    """Return a saving in cents."""
    return Saving(usd=in_cents(one.usd), fraction=one.fraction)


def _machine(machine: MachineSettings) -> MachineDocument:
    return MachineDocument(
        environment=dict(machine.environment),
        launcher=machine.launcher,
        checkpoint_every_s=digits_of(machine.checkpoint_every_s),
    )


def _spread(one: Distribution) -> Spread:
    return Spread(
        mode=one.mode,
        why=one.why,
        failures=digits(one.failures),
        max_restarts=one.max_restarts,
        nnodes=one.nnodes,
        checkpoint_every_s=digits(one.checkpoint_every_s),
    )


def _scaling(one: Scaling) -> ScalingDocument:
    return ScalingDocument(
        by_hour=one.by_hour,
        fewest=one.fewest,
        peak=one.peak,
        starts=one.starts,
        start_s=digits(one.start_s),
        busiest_fraction=digits(one.busiest_fraction),
        latency_ms=digits_of(one.latency_ms),
        limit=one.limit,
    )


def _power_cap(cap: Cap) -> PowerCapAdvice:
    return PowerCapAdvice(
        cap_w=digits(cap.cap_w),
        slowdown=rounded(cap.slowdown),
        energy_fraction=rounded(cap.energy),
    )


def _per_work(one: WorkCost | None) -> CostPerWork | None:
    return None if one is None else CostPerWork(unit=one.unit, mid=_fine(one.usd))


def _fine(amount: Decimal) -> Decimal:
    """Return cents, or four significant digits of what is less than a dollar."""
    return cents(amount) if amount >= 1 else without_zeros(Decimal(f"{amount:.4g}"))


def _energy(energy: Energy) -> EnergyUse:
    return EnergyUse(
        kwh=rounded(energy.kwh) if energy.kwh else None,
        kgco2e=rounded(energy.kgco2e) if energy.kgco2e else None,
    )


def _moving(move: Move) -> Moving:
    return Moving(
        once_usd=in_cents(move.once_usd),
        hours=digits_of(move.hours),
        pays_back_days=digits_of(move.pays_back_days),
    )


def _worth(option: Option) -> Worth:
    benefit, saves = option.benefit, option.saves.usd
    once = benefit.effort_usd + (benefit.moving_usd or 0)
    ratio = once / saves if saves is not None and saves > 0 else None
    return Worth(
        net_usd=in_cents(benefit.net_usd),
        periods=without_zeros(benefit.periods),
        saves_usd=in_cents(benefit.saves_usd),
        effort_hours=benefit.effort_hours,
        effort_usd=cents(benefit.effort_usd),
        moving_usd=in_cents(benefit.moving_usd),
        pays_back_periods=digits_of(None if ratio is None else float(ratio)),
    )
