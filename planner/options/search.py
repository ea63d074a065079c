"""Every offer is either a candidate of an option or a rejection with its reason."""

import math
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from planner.actions import ACTIONS, Action
from planner.baseline.baseline import over_limits
from planner.baseline.rejection import Reason, Rejected
from planner.baseline.tenancy import Tenancy
from planner.diagnosis.diagnose import SWITCH_HOURS
from planner.models.estimate import Estimate, divide
from planner.options.candidate import Candidate
from planner.options.context import (
    JobContext,
    gpus_used,
    machines,
    measured_cores,
)
from planner.options.feasibility import (
    checks_of,
    refusal,
    refusal_of_alike,
    too_slow,
    unproven,
)
from planner.options.market import OnSale, Refused, Sifted, size_of
from planner.options.scaling import all_needed, may_scale, scaled_hours, scaling
from planner.options.spot import Interruptions, check_ends, misses_deadline, rate
from planner.prediction.layout import Layout
from planner.profile.source import slice_named, source_slice
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import UNMOVED, PriceRange
from pricing.errors import InputError
from pricing.frozen import by_name

SCALE_DOWN = "scale-down"
_made = by_name(Candidate)
_IDLE_SAVED = (0.95, 0.5, 0.05)


class _Way(NamedTuple):
    """A way to run a job: actions, and their codes."""

    actions: tuple[Action, ...]
    codes: tuple[str, ...]


def find_candidates(context: JobContext) -> tuple[tuple[Candidate, ...], tuple[Rejected, ...]]:
    """Return the candidates that keep every limit, and one rejection per size and reason."""
    candidates: list[Candidate] = []
    sifted = _sifted(context)
    rejected = dict(sifted.refused)
    checks, ways = checks_of(context), _ways(context)
    for size in sifted.taken:
        one = refusal(size, context, checks)
        made, refused = _consider(size, context, ways) if one is None else ([], [one])
        candidates.extend(made)
        # Why the copies of today are all needed is told beside what else the machine can do.
        for why in refused:
            if made and why.offer == size.offer.name:
                continue
            key, found = (why.offer, why.reason), (why.excess, size.number, why)
            if key not in rejected or found[:2] < rejected[key][:2]:
                rejected[key] = found
    names = {candidate.offer.name for candidate in candidates}
    kept = (one for (name, _), (_, _, one) in rejected.items() if name not in names)
    return tuple(candidates), tuple(sorted(kept, key=attrgetter("offer", "reason")))


def _sifted(context: JobContext) -> Sifted:
    """Return the offers without those that jobs on such machines cannot take, whatever they do."""
    paid, known = _paid(context), context.alike.sifted
    if (paid is not None) not in known:
        taken: list[OnSale] = []
        refused: dict[tuple[str, str], Refused] = {}
        for number, offer in enumerate(_cheapest_region(paid, context), start=1):
            one = refusal_of_alike(offer, context)
            if one is None:
                taken.append(context.alike.on_sale(number, offer, context.sizing(offer)))
            else:
                refused.setdefault((one.offer, one.reason), (one.excess, number, one))
        known[paid is not None] = Sifted(tuple(taken), refused)
    sifted = known[paid is not None]
    if paid is None:
        return sifted
    one = refusal_of_alike(paid, context)
    if one is None:
        here = context.alike.on_sale(0, paid, context.sizing(paid))
        return Sifted((here, *sifted.taken), sifted.refused)
    return Sifted(sifted.taken, {**sifted.refused, (one.offer, one.reason): (one.excess, 0, one)})


def _paid(context: JobContext) -> Offer | None:
    """Return today's machine as it is paid for, where that is known and was asked for."""
    today = context.baseline.offer
    known = today is not None and not context.baseline.assumed and context.market.named(today)
    return today if known else None


def _cheapest_region(paid: Offer | None, context: JobContext) -> Iterator[Offer]:
    """Yield one offer per size and purchase: the cheapest region, today's region on a tie.

    Today's machine, which is offered as it is paid for, is yielded in a cheaper region alone.
    """
    today = context.baseline.offer
    home = today.region if today else None
    for cheapest in context.market.cheapest(home, context.stays_on):
        if paid is None or (size_of(cheapest), cheapest.region) != (size_of(paid), home):
            yield cheapest


def _consider(
    size: OnSale, context: JobContext, ways: tuple[_Way, ...]
) -> tuple[list[Candidate], list[Rejected]]:
    """Return the candidates of an offer that the job fits, and why other ways to run it fail."""
    made: list[Candidate] = []
    over: list[Rejected] = []
    offer, place = size.offer, _place(size, context)
    paid, limited = size.sizing.today and _is_paid(size, context), context.asked.limits_a_job
    for way in ways:
        if paid and not way.actions:
            continue  # that is o0
        try:
            candidate = _candidate(place, context, way)
        except InputError as error:  # specifications that a prediction needs are missing
            over.append(Rejected(offer=offer.name, reason="unknown-gpu", detail=error.problems[0]))
            continue
        if SCALE_DOWN in candidate.actions and candidate.scaling is None:
            reason, detail = all_needed(offer, context, candidate.speed)
            if size.sizing.today:
                told = f"{offer.name}, fewer copies"
                over.append(Rejected(offer=told, reason=reason, detail=detail))
            continue
        problem = _unfit_for_spot(candidate, context) or too_slow(candidate, context)
        if problem is not None:
            over.append(Rejected(offer=offer.name, reason=problem[0], detail=problem[1]))
            continue
        limits = _over_limits(candidate, context) if limited else []
        over.extend(limits)
        if not limits:
            made.append(candidate)
    return made, over


def _over_limits(candidate: Candidate, context: JobContext) -> list[Rejected]:
    asked, name = context.asked, candidate.offer.name
    cost = None if asked.budget_usd is None else candidate.cost_at("high")
    return over_limits(name, candidate.hours, cost, asked)


def _is_paid(size: OnSale, context: JobContext) -> bool:
    """Return whether that is the machines that are paid today."""
    return context.baseline.is_paid(size.offer, size.sizing.machines * context.work.replicas)


def _ways(context: JobContext) -> tuple[_Way, ...]:
    return tuple(_Way(some, tuple(one.code for one in some)) for some in _action_sets(context))


def _action_sets(context: JobContext) -> Iterator[tuple[Action, ...]]:
    """Yield the ways to run it: as it is, with all fixes or the quick ones, ended when idle."""
    yield ()
    if context.fixes:
        yield context.fixes
    switches = tuple(one for one in context.fixes if one.effort_hours <= SWITCH_HOURS)
    if switches and switches != context.fixes:
        yield switches
    if context.idle_share and not context.work.fixed_work:
        yield (ACTIONS["idle-shutdown"],)
    if may_scale(context):
        yield (ACTIONS[SCALE_DOWN],)


class _Taken(NamedTuple):
    """An offer that can run the job: what of a candidate no action changes."""

    offer: Offer
    machines: int
    layout: Layout
    doubt: str | None
    interruptions: Interruptions | None
    moved: PriceRange
    tenancy: Tenancy | None
    unknown_today: tuple[str, ...]


def _place(size: OnSale, context: JobContext) -> _Taken:
    offer, today = size.offer, size.sizing.today
    return _Taken(
        offer=offer,
        machines=size.sizing.machines,
        layout=_layout_today(size, context) if today else size.layout,
        doubt=unproven(offer, context),
        interruptions=_interruptions(size, context) if offer.purchase == "spot" else None,
        moved=_moved(offer, context) if today else context.market.moved(offer),
        tenancy=_tenancy(offer, context) if today else None,
        unknown_today=_unknown_today(offer, context),
    )


def _layout_today(size: OnSale, context: JobContext) -> Layout:
    """Return the layout on machines of today's size: with the cores and the slice of today."""
    layout, count = size.layout, size.sizing.machines
    if (cores := measured_cores(size.offer, context)) is not None:
        layout = replace(layout, cpu_cores=min(cores * count, layout.cpu_cores or math.inf))
    if source_slice(context.profile) is not None:
        layout = replace(layout, slice=slice_named(context.profile))  # it stays where it is
    return layout


def _candidate(place: _Taken, context: JobContext, way: _Way) -> Candidate:
    offer, (actions, codes) = place.offer, way
    speed = context.speed(place.layout, actions)
    if place.doubt:
        speed = replace(speed, basis=f"{speed.basis}; {place.doubt}", weak=True)
    scaled = scaling(offer, context, speed) if SCALE_DOWN in codes else None
    return _made(
        offer=offer,
        count=place.machines * (context.work.replicas if scaled is None else scaled.peak),
        actions=codes,
        speed=speed,
        work_hours=_hours(context, speed, actions)
        if scaled is None
        else scaled_hours(scaled, offer, context, speed),
        work=context.work,
        interruptions=place.interruptions,
        catalog=context.catalog,
        dearest=context.market.dearest,
        moved=place.moved,
        tenancy=place.tenancy,
        unknown_today=place.unknown_today,
        scaling=scaled,
    )


def _unknown_today(offer: Offer, context: JobContext) -> tuple[str, ...]:
    """Return what the provider of today's machine has no known price for, at that provider."""
    today, bill = context.baseline.offer, context.baseline.quote
    return bill.unknown if today and bill and today.provider == offer.provider else ()


def _moved(offer: Offer, context: JobContext) -> PriceRange:
    """Return what the price may have moved by; today's is the same on both sides."""
    return UNMOVED if offer == context.baseline.offer else context.market.moved(offer)


def _tenancy(offer: Offer, context: JobContext) -> Tenancy | None:
    """Return the job's part in the bill of the very machine that it runs on."""
    return context.baseline.tenancy if context.baseline.has_size_there(offer) else None


def _interruptions(size: OnSale, context: JobContext) -> Interruptions | None:
    gpus, asked = max(1, size.sizing.used), context.asked
    return rate(size.offer, asked.spot_trace, asked.checkpoints, gpus, size.sizing.machines)


def _unfit_for_spot(candidate: Candidate, context: JobContext) -> tuple[Reason, str] | None:
    """Return why spot capacity would not do: the work never ends, or not in time."""
    if candidate.offer.purchase != "spot":
        return None
    asked, work_h = context.asked, candidate.work_hours.high
    if candidate.interruptions is not None:
        endless = check_ends(candidate.interruptions, work_h)
        if endless is not None:
            return endless
    count = machines(candidate.offer, context)
    if asked.deadline_h is not None and count > 1:
        return "deadline", f"a trace is of one spot machine; when {count} stand at once is unknown"
    gpus = max(1, gpus_used(candidate.offer, context))
    return misses_deadline(work_h, asked.spot_trace, asked.checkpoints, asked.deadline_h, gpus)


def _hours(context: JobContext, speed: Estimate, actions: tuple[Action, ...]) -> Estimate:
    held = context.work.hours
    if context.work.fixed_work:
        return divide(held.mid, speed, speed.basis)
    if any(a.code == "idle-shutdown" for a in actions) and context.idle_share:
        # Pauses shorter than the shutdown's own delay save nothing, so the saving lies anywhere
        # from none to the whole idle share; these are the ends of 90 % of that.
        low, mid, high = (held.mid * (1.0 - context.idle_share * part) for part in _IDLE_SAVED)
        basis = f"idle at least {context.idle_share:.0%} of the time; none to all of it saved"
        return Estimate(low=low, mid=mid, high=high, basis=basis)
    if context.profile.job.kind == "unknown":
        return Estimate(
            low=min(held.mid, held.mid / speed.high),
            mid=held.mid,
            high=max(held.mid, held.mid / speed.low),
            basis="the kind of job is unknown: held time, or the same work at the new speed",
            weak=speed.weak,
        )
    return Estimate(low=held.mid, mid=held.mid, high=held.mid, basis="held time stays")
