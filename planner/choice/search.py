"""Every offer is either a candidate or a rejection with its reason.

How many copies of a service are enough, hour by hour, on the machines of an offer.
What one copy can answer follows from what one was measured to answer: its share of the GPU's time
grows with its requests, at the mean and at the 95th percentile, and so do the other parts of the
GPU, the cache of keys and values, and the cores of its host; its latency grows as in an M/M/1
queue (planner/models/copies.py). Copies start before the hour that needs them, and their
start is paid for.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

import msgspec

from planner.actions import ACTIONS, Action, action
from planner.actions.action import compatible
from planner.choice.baseline import over_limits
from planner.choice.candidate import Candidate, check_ends, misses_deadline, rate
from planner.choice.changes import effort_hours, structural
from planner.choice.context import JobContext, measured_cores
from planner.choice.feasibility import may_run_together, refusal, too_slow, unproven
from planner.choice.offers import OnSale
from planner.choice.requirements import Reason, Rejected, Requirements
from planner.choice.workload import DAY_H, END_WHEN_IDLE, IDLE_END_S, idle_shares
from planner.diagnosis.diagnose import SWITCH_HOURS
from planner.models.copies import Scaling, load_of, on_gpu_ms, stretch
from planner.models.draws import Cause
from planner.models.estimate import Estimate, digits, digits_of, exactly
from planner.models.gpu_speed import STEPPED_BATCH
from planner.models.interruption import CHECKPOINTS
from planner.prediction.layout import Layout
from planner.prediction.predict import Way
from planner.profile.kinds import GPU_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY
from planner.profile.model import Profile
from planner.profile.source import slice_named, source_slice
from planner.profile.trials import Serving
from planner.serving.measured_service import MeasuredService, fuller_batch
from planner.serving.search import RATE_SPREAD
from planner.signals.finding import Saved
from planner.signals.signals import PARTS, idle_pause_s, open_hours, weights_gib
from planner.signals.thresholds import BUSIEST, NODE_NETWORK_GBPS
from pricing.billing.machine_time import UNKNOWN_GRANULARITY_S
from pricing.billing.provider_rules import rules_of
from pricing.catalog.offer import BOUGHT, Offer
from pricing.catalog.price_age import UNMOVED
from pricing.errors import InputError
from pricing.hardware import Gpu
from pricing.message import Message, join
from pricing.money import HOURS_PER_MONTH, cents

SCALE_DOWN, MORE, _FAST_NETWORK = "scale-down", "more-gpus", "fast-network"
_MORE_REQUESTS, _WORKERS = "more-requests", "dataloader-workers"


_NOTHING_DONE = Way.of(())
_MOSTLY_COMMUNICATES = 0.5  # of a step: half the GPUs then take no longer, at best


def find_candidates(context: JobContext) -> tuple[tuple[Candidate, ...], tuple[Rejected, ...]]:
    """Return the candidates that keep every limit, and one rejection per size and reason."""
    candidates: list[Candidate] = []
    rejected: dict[tuple[str, str], Rejected] = {}
    sets = tuple(map(Way.of, _action_sets(context)))
    ways_on = {True: _that_fit(sets, context), False: _elsewhere(sets, context)}  # today's size?
    sizes = [size for offer in _offered(context) for size in _sizes(offer, context)]
    why_not = [refusal(size, context) for size in sizes]
    fit = [size for size, unable in zip(sizes, why_not, strict=True) if unable is None]
    kernels = {gpu.name: _kernels(gpu, context) for gpu in {size.offer.card for size in fit}}
    speeds = {
        (layout, today): _speeds(layout, context, ways_on[today], kernels[layout.chip.name])
        for layout, today in {(_layout(size, context), size.today) for size in fit}
    }
    for size, unable in zip(sizes, why_not, strict=True):
        refused = [unable] if unable else []
        if unable is None:
            layout, ways = _layout(size, context), ways_on[size.today]
            fitting, refused = _consider(size, layout, speeds[layout, size.today], context, ways)
            candidates.extend(fitting)
            if fitting:  # why all copies of today are needed is told beside what else it can do
                refused = [why for why in refused if why.offer != size.offer.name]
        for why in refused:
            before = rejected.setdefault((why.offer, why.reason), why)
            if why.excess < before.excess:
                rejected[why.offer, why.reason] = why
    names = {candidate.offer.name for candidate in candidates}
    final = (reason_ for (name, _), reason_ in rejected.items() if name not in names)
    return tuple(candidates), tuple(sorted(final, key=attrgetter("offer", "reason")))


def _offered(context: JobContext) -> Iterator[Offer]:
    """Yield today's machine as it is paid for, where that is known and was asked for.

    Then one offer per size and purchase: the cheapest region, today's region on a tie; of today's
    machine a cheaper region alone.
    """
    today, market = context.baseline.offer, context.market
    paid = today if today and not context.baseline.assumed and market.named(today) else None
    if paid:
        yield paid
    farther_ms = context.farther_ms if context.users_in else None
    home = today.region if today else None
    for cheapest in market.cheapest(home, context.stays_on, farther_ms, context.room_ms):
        if paid is None or cheapest.sale != paid.sale:
            yield cheapest


def _sizes(offer: Offer, context: JobContext) -> Iterator[OnSale]:
    """Yield the machines of an offer that a job takes; and one where it may do with fewer GPUs.

    With today's GPUs that is, too, where communication takes most of a step, or may: a slow network
    over which it was not measured.
    """
    size, hardware = context.sized(offer), context.profile.hardware
    yield size
    gbps, share = hardware.network_gbps, context.signals.get("step.comm_fraction")
    may = gbps is not None and gbps < NODE_NETWORK_GBPS
    waits = share >= _MOSTLY_COMMUNICATES if isinstance(share, float) else may
    differs, gpus = offer.gpu != context.gpu.name, round(offer.gpu_count)
    trains = offer.gpu_count > 1 and (differs or waits) and context.profile.job.kind.trains
    trains = trains or gpus in context.fewer_gpus
    if size.machines > 1 and (trains or may_run_together(offer, max(1, gpus), context)):
        yield size._replace(machines=1, used=gpus, today=False)


class _Speeds(NamedTuple):
    """The speed-up of the kernels on one GPU of a layout; of the job there, by what is done."""

    kernels: Estimate
    done: dict[tuple[str, ...], Estimate]


def _kernels(gpu: Gpu, context: JobContext) -> Estimate | InputError:
    """Return the speed-up of the kernels on a GPU; an error where a specification is missing."""
    try:
        return context.predictions.kernels(gpu)
    except InputError as error:
        return error


def _speeds(
    layout: Layout, context: JobContext, ways: tuple[Way, ...], kernels: Estimate | InputError
) -> _Speeds | InputError:
    """Return the speed-ups on a layout; an error where a specification is missing."""
    if isinstance(kernels, InputError):
        return kernels
    done = {way.codes: _with_batch(way, layout, context) for way in (_NOTHING_DONE, *ways)}
    try:
        speeds = context.predictions.speeds(layout, done.values(), kernels)
    except InputError as error:
        return error
    return _Speeds(kernels, dict(zip(done, speeds, strict=True)))


def _with_batch(way: Way, layout: Layout, context: JobContext) -> Way:
    """Return the way with what a full batch of requests gains on the GPUs of a layout."""
    if _MORE_REQUESTS not in way.codes:
        return way
    gain = fuller_batch(context.profile, layout.chip.name)
    signals = {**context.signals, "serving.fuller_batch": gain}
    return Way.of(
        tuple(action(a.code, signals) if a.code == _MORE_REQUESTS else a for a in way.actions)
    )


def _consider(
    size: OnSale,
    layout: Layout,
    speeds: _Speeds | InputError,
    context: JobContext,
    ways: tuple[Way, ...],
) -> tuple[list[Candidate], list[Rejected]]:
    """Return the candidates of an offer that the job fits, and why other ways to run it fail."""
    fitting: list[Candidate] = []
    over: list[Rejected] = []
    offer = size.offer
    if isinstance(speeds, InputError):
        return [], [Rejected(offer=offer.name, reason="unknown-gpu", detail=speeds.problems[0])]
    placed = _taken(size, layout, speeds.kernels, context)
    if ruled_out := set(placed.changes) & set(context.asked.without):
        why = Message("no.ruled-out", codes=sorted(ruled_out))
        return [], [Rejected(offer=offer.name, reason="moves", detail=why)]
    limited = context.asked.limits_a_job
    for way in ways:
        if placed.stays and not way.actions:
            continue  # that is o0
        candidate = _candidate(placed, speeds, context, way)
        if SCALE_DOWN in way.codes and candidate.scaling is None:
            reason, detail = all_needed(size, context, candidate.speed)
            if size.today:
                today_text = Message("no.fewer-copies", machine=offer.name)
                over.append(Rejected(offer=today_text, reason=reason, detail=detail))
            continue
        problem = _unfit_for_spot(candidate, context) or too_slow(candidate, context)
        if problem is not None:
            over.append(Rejected(offer=offer.name, reason=problem[0], detail=problem[1]))
            continue
        cost = candidate.usd_range.high if limited else None
        limits = over_limits(offer.name, candidate.hours, cost, context.asked) if limited else []
        over.extend(limits)
        if not limits:
            fitting.append(candidate)
    return fitting, over


def _that_fit(ways: tuple[Way, ...], context: JobContext) -> tuple[Way, ...]:
    """Return the ways to run a job on today's machine: none where its host's memory ran out."""
    if context.profile.job.ended != GPU_OUT_OF_MEMORY:
        return () if context.profile.job.ended == HOST_OUT_OF_MEMORY else ways
    called = {code for finding in context.findings for code in finding.actions}
    frees = [
        action(code, context.signals)
        for code in sorted({*called, *context.asked.actions} - {*context.asked.without})
        if (memory := ACTIONS[code].memory) is not None and memory[1] < 1.0
    ]
    return tuple(
        Way.of(compatible((*way.actions, cure)))
        for cure in frees
        if cure.kind == "safe" or cure.code in context.asked.actions
        for way in ways
    )


def _elsewhere(ways: tuple[Way, ...], context: JobContext) -> tuple[Way, ...]:
    """Return the ways to run a job on another machine: without what mends today's alone.

    Workers of a loader that has none gain nothing on full cores, and with the cores of a larger
    host: there they are a way of their own.
    """
    moved = [tuple(cure for cure in way.actions if not cure.stays) for way in ways]
    called = {code for f in context.findings if f.confidence != "possible" for code in f.actions}
    step = context.profile.step
    if step and step.loader_workers == 0 and _WORKERS in called.difference(context.asked.without):
        workers = action(_WORKERS, context.signals)
        moved += [compatible((*actions, workers)) for actions in moved]
    return tuple({way.codes: way for way in map(Way.of, moved)}.values())


def _action_sets(context: JobContext) -> Iterator[tuple[Action, ...]]:
    """Yield the ways to run it: as it is, with all fixes or the quick ones, ended when idle.

    Each has the actions that were asked for, and none that was ruled out.
    """
    needs = context.asked
    chosen = tuple(action(code, context.signals) for code in needs.actions)
    fixes = tuple(fix for fix in context.fixes if fix.code not in needs.without)
    ways = [(), fixes, tuple(fix for fix in fixes if fix.effort_hours <= SWITCH_HOURS)]
    if context.idle_share and END_WHEN_IDLE not in needs.without:
        end = ACTIONS[END_WHEN_IDLE]
        if context.work.idle_hours:
            ways = [(), *((*way, end) for way in ways)]
        elif not context.work.fixed_work:
            ways.append((end,))
    if may_scale(context) and SCALE_DOWN not in needs.without:
        ways.append((ACTIONS[SCALE_DOWN],))
    for way in dict.fromkeys(tuple(fix.code for fix in way) for way in ways):
        quick = (action(code, context.signals) for code in way if code not in needs.actions)
        yield compatible((*chosen, *quick))


class _Taken(NamedTuple):
    """An offer that can run the job: what all ways to run it there have in common."""

    size: OnSale
    layout: Layout
    changes: tuple[str, ...]
    doubt: str | None
    stays: bool


def price_cures(context: JobContext, actions: Iterable[Action]) -> dict[str, Saved]:
    """Return what each action alone saves on today's machine in the period, by its code.

    Only of those whose gain is known, where a faster job holds its machine for less time, and of
    ending an idle machine.
    """
    today, cost = context.baseline.offer, context.baseline.cost
    if today is None or cost is None:
        return {}
    work, gains, cures = context.work, dict[str, bool](), []
    for cure in actions:
        ends_idle = cure.code == END_WHEN_IDLE and context.idle_share is not None
        gain = bool(work.fixed_work and cure.gain and cure.gain[2] > 1.0)
        pays = gain or (ends_idle and (work.idle_hours or not work.fixed_work))
        if pays and cure.code not in context.asked.without:
            gains[cure.code] = gain
            cures.append((cure,))
    saves = price_changes(context, cures, today, cost)
    return {
        code: saved if gain else msgspec.structs.replace(saved, time_factor=None)
        for (code, gain), saved in zip(gains.items(), saves, strict=True)
    }


def price_changes(
    context: JobContext, changes: Iterable[tuple[Action, ...]], today: Offer, cost: Decimal
) -> list[Saved]:
    """Return what actions together save on today's machine in the period, of what it costs."""
    size, ways = context.sized(today), tuple(map(Way.of, changes))
    layout = _layout(size, context)
    speeds = _speeds(layout, context, ways, _kernels(today.card, context))
    if isinstance(speeds, InputError):
        raise speeds
    placed, saves = _taken(size, layout, speeds.kernels, context), []
    for way in ways:
        bill = _candidate(placed, speeds, context, way)
        low, high = bill.usd_range.low, bill.usd_range.high
        least, mid, most = (cents(cost - usd) for usd in (high, bill.expected, low))
        factor = digits(context.work.time_factor(bill.hours_mid, way.codes))
        saves.append(Saved(low=least, mid=mid, high=most, time_factor=factor))
    return saves


def _taken(size: OnSale, layout: Layout, kernels: Estimate, context: JobContext) -> _Taken:
    stays = context.baseline.is_paid(size.offer, size.machines * context.work.replicas)
    changes = structural(size, kernels, context)
    return _Taken(size, layout, changes, unproven(size, context), stays)


def _layout(size: OnSale, context: JobContext) -> Layout:
    """Return the layout on machines; those of today's size have its cores, network and slice.

    Where a job does not use the fast network, or the cores, that it has, it does not use another's
    either.
    """
    layout, count = size.layout, size.machines
    if not size.today:
        if context.idle_cores and layout.cpu_cores:
            used = context.idle_cores[0] / context.profile.gpu_count * layout.gpu_count
            layout = replace(layout, cpu_cores=min(layout.cpu_cores, used))
        reached = context.profile.hardware.network_gbps
        if count == 1 or reached is None or not ACTIONS[_FAST_NETWORK].is_proved(context.signals):
            return layout
        return replace(layout, network_gbps=min(reached, layout.network_gbps or math.inf))
    if (network := context.profile.hardware.network_gbps) is not None:
        layout = replace(layout, network_gbps=network)
    if (cores := measured_cores(size.offer, context)) is not None:
        layout = replace(layout, cpu_cores=cores * count)
    if source_slice(context.profile) is not None:
        layout = replace(layout, slice=slice_named(context.profile))  # it stays where it is
    return layout


def _candidate(placed: _Taken, speeds: _Speeds, context: JobContext, way: Way) -> Candidate:
    (actions, codes, _), size = way, placed.size
    unchanged, speed = speeds.done[()], speeds.done[codes]
    if placed.doubt:
        speed = msgspec.structs.replace(speed, basis=join((speed.basis, placed.doubt)), weak=True)
    scaled = scaling(placed.size, context, speed) if SCALE_DOWN in codes else None
    hours = (
        _hours(context, placed.layout, unchanged, speed, actions)
        if scaled is None
        else scaled_hours(scaled, placed.size, context, speed)
    )
    if scaled is not None:
        codes = _said_of_copies(codes, scaled, context)
    offer, today, bill = size.offer, context.baseline.offer, context.baseline.quote
    tried = (c for c in context.trial if {*placed.changes}.isdisjoint(ACTIONS[c].excludes))
    return Candidate(
        size=size,
        count=size.machines * (context.work.replicas if scaled is None else scaled.peak),
        actions=codes,
        codes=(*codes, *(() if placed.stays else tried), *placed.changes),
        effort_hours=effort_hours(offer, actions, placed.changes, context),
        speed=speed,
        hours_of_work=context.work.hours_at_work,
        idle_hours=context.work.idle_hours_with(codes),
        causes=hours.causes,
        untreated=hours.untreated,
        basis=hours.basis,
        work=context.work,
        interruptions=rate(offer, context.asked, max(1, size.used), size.machines),
        catalog=context.catalog,
        dearest=context.market.dearest,
        # Today's price is the same on both sides.
        moved=UNMOVED if offer == today else offer.moved(context.catalog.as_of),
        tenancy=context.baseline.tenancy if context.baseline.has_size_there(offer) else None,
        owed=context.baseline.owed,
        stays=placed.stays,
        unknown_today=bill.unknown if today and bill and today.provider == offer.provider else (),
        scaling=scaled,
    )


def _said_of_copies(codes: tuple[str, ...], to: Scaling, context: JobContext) -> tuple[str, ...]:
    """Return the codes of a way with copies by demand: more of them, fewer, or as many as today."""
    copies = context.work.replicas
    fewer = to.peak < copies or to.fewest < to.peak
    change = (MORE,) if to.peak > copies else (SCALE_DOWN,) if fewer else ()
    return (*(code for code in codes if code != SCALE_DOWN), *change)


def _unfit_for_spot(candidate: Candidate, context: JobContext) -> tuple[Reason, str] | None:
    """Return why spot capacity would not do: the work never ends, or not in time."""
    if candidate.offer.purchase != "spot":
        return None
    needs, work_h = context.asked, candidate.work_hours("high")
    if candidate.interruptions is not None:
        endless = check_ends(candidate.interruptions, work_h)
        if endless is not None:
            return endless
    count, gpus = candidate.size.machines, max(1, candidate.size.used)
    if needs.deadline_h is not None and count > 1:
        return "deadline", Message("no.trace-of-one", n=count)
    return misses_deadline(work_h, needs, gpus)


class _Hours(NamedTuple):
    """What multiplies the hours of today, and where that comes from.

    Attributes:
        causes: with the actions.
        basis: where they come from.
        untreated: without the actions, where none of them can hurt.
    """

    causes: tuple[Cause, ...]
    basis: str
    untreated: tuple[Cause, ...] = ()


def _hours(
    context: JobContext,
    layout: Layout,
    unchanged: Estimate,
    speed: Estimate,
    actions: tuple[Action, ...],
) -> _Hours:
    """Return what multiplies today's hours on a layout: fewer for fixed work, else the time held.

    Args:
        context: of the job.
        layout: the GPUs at work.
        unchanged: the speed-up there without any action.
        speed: with the actions.
        actions: on the job.
    """
    if context.work.fixed_work:
        causes = _faster(layout, unchanged, speed, actions)
        harmless = bool(actions) and all(a.gain is not None and a.gain[0] >= 1.0 for a in actions)
        untreated = _faster(layout, unchanged, unchanged, ()) if harmless else ()
        return _Hours(causes, speed.basis, untreated)
    if any(a.code == END_WHEN_IDLE for a in actions) and context.idle_share:
        return _ended_when_idle(context.profile, context.idle_share, context.asked)
    if context.profile.job.kind == "unknown":
        low, high = min(1.0, 1.0 / speed.high), max(1.0, 1.0 / speed.low)
        return _Hours(
            (Cause("speed", _axis(layout), low, 1.0, high),), Message("hours.kind-unknown")
        )
    return _Hours((), Message("hours.held"))


def _ended_when_idle(profile: Profile, idle: float, needs: Requirements) -> _Hours:
    """Return the hours of a machine that ends some time after its last work, and starts for more.

    Of each pause the delay and the start are not saved. Where the mean length of the pauses is
    known, pauses that are all alike save least (Jensen's inequality, as what is saved of a pause is
    convex in its length), pauses of a Poisson process what is expected, one long pause nearly all.
    That is the pause before and after the job, where it is long. Of people's work the machine may
    have to stay on from the first piece of a day to the last, as in half of the cases expected.
    """
    pause_s, lost_s = idle_pause_s(profile), IDLE_END_S + needs.checkpoints.restart_s
    least, expected = 0.05, 0.5
    basis = Message("hours.idle-saved", share=idle)
    if pause_s is not None:
        least, expected = max(0.0, 1.0 - lost_s / pause_s), math.exp(-lost_s / pause_s)
        basis = Message("hours.idle-pauses", share=idle, seconds=pause_s)
    around, kept = idle_shares(profile, needs, 0.0)
    saved, within = around - kept, max(0.0, idle - around)
    parts = (0.95, min(0.95, expected), least)
    low, mid, high = (1.0 - saved - within * part for part in parts)
    *_, share = open_hours(profile) or (0.0,)
    if share > mid:
        mid, high = (mid + share) / 2, max(high, share)
    return _Hours((Cause("use", "idle", low, mid, max(mid, high)),), basis)


def _faster(
    layout: Layout, unchanged: Estimate, speed: Estimate, actions: tuple[Action, ...]
) -> tuple[Cause, ...]:
    """Return what multiplies hours of fixed work: the layout, and each action apart.

    What the range of the speed is wider with the actions comes from them, by what each may gain.
    """
    down, up = (
        min(width, limit) for width, limit in zip(_widths(unchanged), _widths(speed), strict=True)
    )
    mid = 1.0 / unchanged.mid
    cause = Cause("speed", _axis(layout), mid / up, mid, mid * down)
    if not actions:
        return (cause,)
    lower, higher = (width_ / part for width_, part in zip(_widths(speed), (down, up), strict=True))
    gain = unchanged.mid / speed.mid
    doubts = {a.code: math.log(a.gain[2] / a.gain[0]) for a in actions if a.gain}
    total = sum(doubts.values())
    if not total:
        return (cause, Cause("cure", "gain", gain / higher, gain, gain * lower))
    parts = ((code, doubt / total) for code, doubt in doubts.items() if doubt)
    return (
        cause,
        Cause("cure", "gain", gain, gain, gain),
        *(Cause("cure", f"gain/{code}", higher**-part, 1.0, lower**part) for code, part in parts),
    )


def _widths(speed: Estimate) -> tuple[float, float]:
    """Return how far the ends of a speed lie below and above what is expected, as factors >= 1."""
    return speed.mid / speed.low, speed.high / speed.mid


def _axis(layout: Layout) -> str:
    """Return the name of the axis on which the speed of a layout is drawn: its GPUs, and links."""
    return f"speed/{layout.gpu_name}/{layout.gpu_count}/{layout.machines}"


_HOUR_S = 3600.0
_GIB_MIB = 1024.0
_VOLUME_MIB_S = 125.0  # AWS gp3 as it is sold (EBS volume types); more is bought by the month
_ROUNDING = 1e-9
_SLOTS = ("util.kernel_time", "util.sm_active")
_ALWAYS = 0.99  # the most that a reading in whole percent tells of a GPU that is now and then free


class _Limit(NamedTuple):
    """How many times its measured requests a copy can answer at most, and what sets that."""

    times: float
    words: str
    reason: Reason


_UNMEASURED = _Limit(0.0, Message("limit.unmeasured"), "slowdown")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One copy on the machines of an offer, asked as much as when it was measured.

    Attributes:
        share: of its GPU's time, mean; None where not measured.
        peak: the same at its 95th percentile.
        peak_high: the same at the low end of the GPU's speed.
        fixed_ms: the part of the longest latency that does not grow with load; None where latency
            was not measured.
        queued_ms: the part that does, were the GPU otherwise free.
        target_ms: None without a target.
    """

    share: float | None
    peak: float
    peak_high: float
    fixed_ms: float | None
    queued_ms: float
    target_ms: float | None

    def latency_at(self, times: float) -> float | None:
        """Return the latency where the copy answers so many times what it was measured at."""
        if self.fixed_ms is None:
            return None
        return self.fixed_ms + self.queued_ms * stretch(0.0, self.peak_high * times)

    @property
    def times_in_time(self) -> float:
        """How many times that it can answer within its target; 0 or less: none, however few."""
        room_ms = (self.target_ms or 0.0) - (self.fixed_ms or 0.0)
        if room_ms <= 0.0:
            return 0.0
        return (1.0 - self.queued_ms / room_ms) / max(self.peak_high, _ROUNDING)


def scaling(
    size: OnSale, context: JobContext, speed: Estimate, margin: float = 1.0
) -> Scaling | None:
    """Return the fewest copies that answer the demand; None where no fewer hours are paid for.

    Args:
        size: whose machines run them.
        context: of a service.
        speed: of the job there, over today.
        margin: what a copy can take over what is expected.
    """
    if not may_scale(context):
        return None
    offer = size.offer
    copy = _copy(offer, context, speed)
    limit = min(_limits(size, context, speed, copy), default=_UNMEASURED)
    if limit.times <= 0.0:
        return None
    in_time = context.latency_ms and copy.target_ms and not is_late(context)
    if size.today and context.work.demand and in_time:
        # Today's copies keep it in the busiest hour: no more than they are needed there.
        limit = max(limit, limit._replace(times=max(context.work.demand) / _copies_seen(context)))
    demand, by_hour = _demand(context), _by_hour(offer, context, limit.times * margin)
    busy = max(load / n for load, n in zip(demand, by_hour, strict=True) if n)
    starts = sum(max(0, n - by_hour[hour - 1]) for hour, n in enumerate(by_hour))
    service = context.work.service
    result = Scaling(
        by_hour=by_hour if len(set(by_hour)) > 1 else by_hour[:1],
        fewest=min(by_hour),
        peak=max(by_hour),
        starts=starts,
        start_s=digits(_start_s(context)),
        busiest_fraction=digits(busy / limit.times if service else (copy.share or 0.0) * busy),
        latency_ms=digits_of(
            copy.latency_at(busy)
            if service is None
            else service.latency_ms(service.layout_on(offer, size.used), busy * service.rate)
        ),
        limit=limit.words,
    )
    ordered = offer.gpu_count * size.machines * result.peak
    now_h = context.work.replicas * context.work.hours.mid
    fewer = _copies_h(result, offer, context) < now_h - _ROUNDING
    return result if (fewer or is_late(context)) and ordered >= offer.minimum_gpus else None


def spare_copies(context: JobContext) -> float | None:
    """Return the share of a service's copies, on what they run on, that no request needs, 0-1.

    None where that is unknown, or one copy runs.
    """
    today, copies = context.baseline.offer, context.work.replicas
    if today is None or copies == 1:
        return None
    scaled = scaling(context.sized(today), context, exactly(1.0, ""))
    if scaled is None:
        return None
    return 1.0 - _copies_h(scaled, today, context) / (copies * context.work.hours.mid)


def _copies_h(scaled: Scaling, offer: Offer, context: JobContext) -> float:
    """Return the hours of the period that copies are paid for, their starts included.

    A schedule covers all of a month where demand is told by the hour.
    """
    stated, hours = context.work.demand is not None, sum(scaled.by_hour)
    period_h = float(HOURS_PER_MONTH) if stated else context.work.hours.mid
    return (hours + scaled.starts * _start_h(offer, context)) / len(scaled.by_hour) * period_h


def all_needed(size: OnSale, context: JobContext, speed: Estimate) -> tuple[Reason, str]:
    """Return why no fewer copies are enough on the machines of an offer."""
    copies, offer = context.work.replicas, size.offer
    limit = min(_limits(size, context, speed, _copy(offer, context, speed)), default=_UNMEASURED)
    if limit.times <= 0.0:
        return limit.reason, Message("no.fewer", n=copies, why=limit.words)
    times = Message("no.one-answers", times=limit.times, why=limit.words)
    peak = max(_by_hour(offer, context, limit.times))
    if peak > copies:
        return limit.reason, Message("no.peak", n=peak, today=copies, why=times)
    return limit.reason, Message("no.fewer", n=copies, why=times)


def scaled_hours(scaled: Scaling, size: OnSale, context: JobContext, speed: Estimate) -> _Hours:
    """Return the hours of each of the peak's machines: machine hours of the period over them.

    The ends are those of the copies that the ends of the speed ask for; at most today's.
    """
    base = context.work.hours.mid
    top = max(context.work.replicas * base, _copies_h(scaled, size.offer, context))
    ends = [(end, 1.0) for end in (speed.high, speed.mid, speed.low)]
    if context.work.service is not None:
        ends = [(speed.mid, margin) for margin in (RATE_SPREAD, 1.0, 1.0 / RATE_SPREAD)]
    elif size.offer.gpu == context.gpu.name:
        ends = [(speed.mid, 1.0)] * 3  # what was measured there
    shares = []
    for end, margin in ends:
        expected = end == speed.mid and margin == 1.0
        fewer = scaled if expected else scaling(size, context, exactly(end, speed.basis), margin)
        hours = top if fewer is None else _copies_h(fewer, size.offer, context)
        shares.append(hours / scaled.peak / base)
    low, mid, high = shares
    cause = Cause("use", f"copies/{size.offer.gpu}", min(low, mid), mid, max(mid, high))
    return _Hours((cause,), Message("hours.copies", limit=scaled.limit))


def may_scale(context: JobContext) -> bool:
    """Return whether copies could follow demand: a service of several, or with its hours stated.

    A copy that shares its machine with other jobs leaves that machine on the bill.
    """
    work, job = context.work, context.profile.job
    wants = work.replicas > 1 or work.demand is not None or is_late(context)
    return job.kind.answers and not work.fixed_work and wants and context.baseline.tenancy is None


def _demand(context: JobContext) -> tuple[float, ...]:
    """Return the demand of each hour in measured copies: as stated, else that of all copies now.

    Where more copies were seen than run now, they were needed.
    """
    return context.work.demand or (float(_copies_seen(context)),)


def _copies_seen(context: JobContext) -> int:
    """Return the most copies that were seen to run."""
    stated = context.profile.job.replicas
    return max(context.work.replicas, (stated and stated.peak) or 0)


def _by_hour(offer: Offer, context: JobContext, capacity: float) -> tuple[int, ...]:
    """Return the copies of each hour; none in hours stated to be without a request."""
    demand = _demand(context)
    stated = context.profile.job.replicas
    quiet = (stated.min or 0) if stated else 0
    fewest = max(1, quiet)
    needed = tuple(
        max(fewest, math.ceil(load / capacity - _ROUNDING)) if load > 0.0 else quiet
        for load in demand
    )
    # A term is paid for all hours, and a start longer than an hour costs more than it ends.
    always = offer.purchase not in BOUGHT or _start_s(context) >= _HOUR_S
    return (max(needed),) * len(needed) if always else needed


def _start_h(offer: Offer, context: JobContext) -> float:
    """Return the hours billed for a start, in whole units of the provider's granularity."""
    rules = rules_of(offer.provider, context.catalog.as_of, offer.instance_type)
    unit_s = float(rules.granularity_s or UNKNOWN_GRANULARITY_S)
    return math.ceil(_start_s(context) / unit_s) * unit_s / _HOUR_S


def _start_s(context: JobContext) -> float:
    """Return how long a new copy takes to its first answer: as stated; else the usual start.

    No start is shorter than reading the weights from a volume as it is sold.
    """
    asked_s = context.asked.checkpoints.restart_s
    if asked_s != CHECKPOINTS.restart_s:
        return asked_s
    return max(asked_s, (weights_gib(context.profile) or 0.0) * _GIB_MIB / _VOLUME_MIB_S)


def _copy(offer: Offer, context: JobContext, speed: Estimate) -> _Copy:
    job, share = context.profile.job, context.load or 0.0
    latency, loaded = context.latency_ms or 0.0, max(share, _peak(context))
    slowest = 1.0 if offer.gpu == context.gpu.name else speed.low
    own = _load_when_measured(context, loaded)
    queued = on_gpu_ms(latency, job.requests_per_s, share, own)
    work_ms = 0.0
    if is_late(context) and _answers_together(context):
        queued = 0.0
    elif is_late(context):  # what is to become shorter is no more than of a typical request
        work_ms = 1000.0 * share / job.requests_per_s if job.requests_per_s else latency
        times = job.latency_ms and (job.latency_ms.mean or job.latency_ms.p50)
        queued *= min(1.0, work_ms / (1.0 - own) / times) if times else 1.0
    return _Copy(
        share=None if context.load is None else share / speed.mid,
        peak=min(1.0, loaded / speed.mid),
        peak_high=loaded / slowest,
        fixed_ms=None if context.latency_ms is None else (latency - queued) / min(1.0, slowest),
        queued_ms=max(queued * (1.0 - own), work_ms) / slowest,
        target_ms=job.latency_slo_ms,
    )


def _answers_together(context: JobContext) -> bool:
    """Return whether a request waits for no other: a server that batches has room in its batch."""
    serving = context.profile.job.serving
    is_server = context.signals["job.family"] == "llm-server"
    return is_server and ((serving and serving.requests_waiting) or 0.0) < 1.0


def is_late(context: JobContext) -> bool:
    """Return whether requests take longer today than they may."""
    return any(broken.reason == "latency" for broken in context.baseline.broken)


def _load_when_measured(context: JobContext, load: float) -> float:
    """Return the share of its GPU's time that a copy took when its longest latencies were measured.

    Those of a day or more are of its busiest hour, where demand is stated by the hour. A GPU that
    is always busy tells no load: then it is that of a queue with such latencies.
    """
    window, rate = context.profile.window, context.profile.job.requests_per_s
    share, demand = context.load or 0.0, context.work.demand
    if demand and ((window and window.duration_s) or 0.0) >= DAY_H * _HOUR_S:
        load = share * max(demand) / _copies_seen(context)
    if load >= _ALWAYS and rate:
        load = max(share, load_of(context.latency_ms or math.inf, share, rate))
    return min(load, _ALWAYS)


def _peak(context: JobContext) -> float:
    """Return the 95th percentile of the share of the GPU's time that a copy took.

    Where demand is stated by the hour, that of a window of over an hour is of its busy hours, which
    the demand tells already: then the mean alone counts, and what varies within an hour is left to
    the queue.
    """
    profile = context.profile
    window_s = profile.window.duration_s if profile.window else None
    if context.work.demand is not None and (window_s or 0.0) > _HOUR_S:
        return 0.0
    seen = (reading.p95 for slot in _SLOTS for reading in profile.readings(slot))
    return max((value for value in seen if value is not None), default=0.0)


def _limits(size: OnSale, context: JobContext, speed: Estimate, copy: _Copy) -> Iterator[_Limit]:
    cores, each = context.host.cores, size.offer.vcpus
    vcpus = None if each is None else each * size.machines
    if cores and vcpus:
        yield _Limit(vcpus / cores, Message("limit.cores"), "capability")
    if context.work.service is not None:
        yield from _by_serving(size, context.work.service)
        return
    serving = context.profile.job.serving
    if serving is not None and serving.makes_tokens and serving.requests_running:
        yield _by_batch(serving)
    elif copy.share is None:
        return  # what was not measured may be full
    else:
        share, peak = max(copy.share, _ROUNDING), max(copy.peak, _ROUNDING)
        yield _Limit(BUSIEST / share, Message("limit.busy", share=BUSIEST), "slowdown")
        yield _Limit(1.0 / peak, Message("limit.full"), "slowdown")
    yield from _by_latency(copy)
    yield from _by_parts(context.profile, speed)


def _by_batch(serving: Serving) -> _Limit:
    """Return the limit of a language model too little of which is measured to simulate it.

    Its steps take as long with few requests in the batch as with some: kernel time shows no load.
    """
    if (serving.requests_waiting or 0.0) >= 1.0:
        return _Limit(1.0, Message("limit.waiting"), "slowdown")
    times = BUSIEST * STEPPED_BATCH / (serving.requests_running or STEPPED_BATCH)
    return _Limit(times, Message("limit.batch", n=BUSIEST * STEPPED_BATCH), "slowdown")


def _by_serving(size: OnSale, service: MeasuredService) -> Iterator[_Limit]:
    """Yield how many times its measured requests a copy of a language model can take at most."""
    limit = service.limit_on(service.layout_on(size.offer, size.used))
    if limit is None:
        yield _Limit(0.0, Message("limit.gpu-unknown"), "unknown-gpu")
    elif limit.rate <= 0.0:
        reason: Reason = "memory" if limit.stopped_by == "memory" else "latency"
        yield _Limit(0.0, Message("limit.no-rate", why=limit.stopped_by), reason)
    else:
        text = Message("limit.rate", rate=limit.rate, why=limit.stopped_by)
        yield _Limit(limit.rate / service.rate, text, "latency")


def _by_latency(copy: _Copy) -> Iterator[_Limit]:
    if copy.target_ms is None:
        return
    if copy.fixed_ms is None:
        yield _Limit(1.0, Message("limit.latency-unmeasured"), "latency")
    elif (times := copy.times_in_time) <= 0.0:
        yield _Limit(0.0, Message("limit.latency-missed"), "latency")
    else:
        yield _Limit(times, Message("limit.latency", ms=copy.target_ms), "latency")


def _by_parts(profile: Profile, speed: Estimate) -> Iterator[_Limit]:
    for title, part in PARTS:
        if used := part(profile):
            times = BUSIEST / used * min(1.0, speed.mid)
            yield _Limit(times, Message("limit.part", part=title, share=BUSIEST), "slowdown")
    serving = profile.job.serving
    if serving is not None and serving.kv_cache_fraction:
        times = BUSIEST / serving.kv_cache_fraction
        yield _Limit(times, Message("limit.kv-cache", share=BUSIEST), "memory")
