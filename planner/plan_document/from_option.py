"""What is rented and what it costs, of a plan that was just made: rounded as it is written."""

from collections.abc import Iterable
from decimal import Decimal

from planner.actions.machine_settings import MachineSettings
from planner.baseline.tenancy import Tenancy
from planner.models.estimate import Estimate
from planner.models.power import best_cap
from planner.options.option import Benefit, Move, Option
from planner.options.parallelism import Distribution
from planner.plan.energy import Energy, energy_of, energy_today
from planner.plan.plan import JobPlan, Plan
from planner.plan_document.bill import (
    CostLine,
    OfferDocument,
    OptionCost,
    PricedPart,
    TodayCost,
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
    Saving,
    Spread,
    Worth,
)
from planner.profile.model import Profile
from pricing.billing.lines import QuoteLine
from pricing.catalog.offer import Offer
from pricing.hardware import find
from pricing.money import cents, plain

_LEAST_UNITS = 1e-6  # less is no amount of work that has a price
_LARGE_UNITS = ((1_000_000, "1M "), (1_000, "1k "), (1, ""))


def baseline_document(job: JobPlan, plan: Plan) -> BaselineDocument:
    """Return how a job runs today."""
    baseline, bill = job.baseline, job.baseline.quote
    return BaselineDocument(
        assumed=baseline.assumed,
        breaks=tuple(ReasonAgainst(reason=r.reason, detail=r.detail) for r in baseline.broken),
        offer=offer_document(baseline.offer, plan) if baseline.offer else None,
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
        cost_per_work=_cost_per_work(baseline.cost, job),
        energy=_energy(energy_today(job.profile, baseline.hours, plan.site, baseline.replicas)),
        power_cap=_power_cap(job.profile),
        machine=_machine(job.machine),
    )


def option_document(option: Option, job: JobPlan, plan: Plan) -> OptionDocument:
    """Return one way to run a job."""
    return OptionDocument(
        id=option.id,
        offer=offer_document(option.offer, plan),
        count=option.count,
        provisionable=option.provisionable,
        actions=option.actions,
        settings={code: dict(values) for code, values in option.machine.values.items()},
        machine=_machine(option.machine),
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
        ),
        cost_per_work=_cost_per_work(option.cost, job),
        energy=_energy(_energy_of(option, job, plan)),
        saves=_saving(option, job.baseline.cost),
        move=_moving(option.move) if option.move else None,
        benefit=_worth(option.benefit),
        why=option.why,
    )


def offer_document(offer: Offer, plan: Plan) -> OfferDocument:
    """Return what is rented, at its price."""
    return OfferDocument(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        gpu=offer.gpu,
        gpu_count=_whole_if(float(offer.gpu_count)),
        purchase=offer.purchase,
        usd_per_hour=Decimal(plain(offer.usd_per_hour)),
        as_of=offer.as_of,
        source=offer.source,
        stale=offer.is_stale(plan.as_of),
    )


def cost_lines(lines: Iterable[QuoteLine]) -> tuple[CostLine, ...]:
    """Return the lines of a bill."""
    return tuple(
        CostLine(
            what=line.what,
            usd=Decimal(plain(line.usd)),
            how=line.how,
            rule=line.rule,
            source=line.source,
            as_of=line.as_of,
            parts=tuple(
                PricedPart(
                    quantity=Decimal(plain(part.quantity)),
                    unit=part.unit,
                    unit_usd=Decimal(plain(part.unit_usd)),
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
    return _whole_if(float(f"{value:.6g}"))


def digits_of(value: float | None) -> float | None:
    """Return six significant digits of what is known."""
    return None if value is None else digits(value)


def in_cents(amount: Decimal | None) -> Decimal | None:
    """Return dollars rounded to cents where they are known."""
    return None if amount is None else cents(amount)


def _whole_if(value: float) -> float:
    return int(value) if value == int(value) else value


def _share(tenancy: Tenancy) -> BilledShare:
    return BilledShare(held=tenancy.held, of=tenancy.of, beside=tenancy.beside)


def _saving(option: Option, today: Decimal | None) -> Saving:
    saves = None if today is None else today - option.cost
    known = saves is not None and bool(today)
    fraction = round(float(saves / today), 4) if known and saves is not None and today else None
    return Saving(usd=in_cents(saves), fraction=fraction)


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


def _power_cap(profile: Profile) -> PowerCapAdvice | None:
    """Return the power limit that takes least energy at little loss; None where none saves."""
    power_w, gpu = profile.mean("power.board_w"), find(profile.hardware.gpu)
    limit_w = profile.mean("power.limit_w") or (gpu.tdp_w if gpu else None)
    cap = best_cap(power_w, limit_w) if power_w and limit_w else None
    if cap is None:
        return None
    return PowerCapAdvice(
        cap_w=digits(cap.cap_w),
        slowdown=rounded(cap.slowdown),
        energy_fraction=rounded(cap.energy),
    )


def _cost_per_work(cost: Decimal | None, job: JobPlan) -> CostPerWork | None:
    units = job.work.units
    unit = job.profile.work.unit if job.profile.work else None
    if not units or units < _LEAST_UNITS or unit is None or cost is None:
        return None
    size, prefix = next((s, p) for s, p in _LARGE_UNITS if units >= s or s == 1)
    per = cost * size / Decimal(str(units))
    return CostPerWork(unit=f"{prefix}{unit}", mid=_fine(per))


def _fine(amount: Decimal) -> Decimal:
    """Return cents, or four significant digits of what is less than a dollar."""
    return cents(amount) if amount >= 1 else Decimal(plain(Decimal(f"{amount:.4g}")))


def _energy_of(option: Option, job: JobPlan, plan: Plan) -> Energy:
    """Return the energy of an option: all its GPUs work, on today's machine as many as today."""
    offer, today = option.offer, job.baseline.offer
    count = round(offer.gpu_count) * option.count if offer.gpu_count >= 1 else None
    if today is not None and today.name == offer.name:
        count = job.profile.gpu_count * job.baseline.replicas
    hours = job.baseline.hours.mid
    return energy_of(job.profile, option, gpus=count, today_h=hours, site=plan.site)


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


def _worth(benefit: Benefit) -> Worth:
    return Worth(
        net_usd=in_cents(benefit.net_usd),
        periods=Decimal(plain(benefit.periods)),
        saves_usd=in_cents(benefit.saves_usd),
        effort_hours=benefit.effort_hours,
        effort_usd=cents(benefit.effort_usd),
        moving_usd=in_cents(benefit.moving_usd),
    )
