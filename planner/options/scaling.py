"""How many copies of a service are enough, hour by hour, on the machines of an offer.

What one copy can answer follows from what one was measured to answer: its share of the GPU's time
grows with its requests, at the mean and at the 95th percentile, and so do the other parts of the
GPU, the cache of keys and values, and the cores of its host; its latency grows as in an M/M/1
queue (planner/prediction/queueing.py). Copies start before the hour that needs them, and their
start is paid for.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from planner.baseline.rejection import Reason
from planner.models.copies import Scaling
from planner.models.estimate import Estimate, exactly
from planner.options.context import JobContext, machines
from planner.options.feasibility import BUSIEST
from planner.prediction.queueing import busiest, on_gpu_ms, stretch
from planner.profile.model import Profile
from planner.signals.signals import PARTS, worst_latency_ms
from pricing.billing.machine_time import UNKNOWN_GRANULARITY_S
from pricing.billing.provider_rules import rules_of
from pricing.catalog.offer import BOUGHT, Offer
from pricing.money import HOURS_PER_MONTH

_HOUR_S = 3600.0
_ROUNDING = 1e-9
_SLOTS = ("util.kernel_time", "util.sm_active")


class _Limit(NamedTuple):
    """How many times its measured requests a copy can answer at most, and what sets that."""

    times: float
    words: str
    reason: Reason


_UNMEASURED = _Limit(0.0, "its use of the GPU was not measured", "slowdown")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One copy on the machines of an offer, as busy as it was measured.

    Attributes:
        share: of its GPU's time, mean; None where not measured.
        peak: the same at its 95th percentile.
        latency_ms: the longest expected; None where not measured.
        queued_ms: the part of it that grows with load.
        target_ms: None without a target.
    """

    share: float | None
    peak: float
    latency_ms: float | None
    queued_ms: float
    target_ms: float | None

    def latency_at(self, times: float) -> float | None:
        """Return the latency where the copy answers so many times what it was measured at."""
        if self.latency_ms is None:
            return None
        longer = max(1.0, stretch(self.peak, self.peak * times))
        return self.latency_ms + self.queued_ms * (longer - 1.0)


def scaling(offer: Offer, context: JobContext, speed: Estimate) -> Scaling | None:
    """Return the fewest copies that answer the demand; None where no fewer hours are paid for.

    Args:
        offer: whose machines run them.
        context: of a service.
        speed: of the job there, over today.
    """
    if not may_scale(context):
        return None
    copy = _copy(offer, context, speed)
    least = min(_limits(offer, context, speed, copy), default=_UNMEASURED)
    if least.times <= 0.0:
        return None
    demand, by_hour = _demand(context), _by_hour(offer, context, least.times)
    busy = max(asked / n for asked, n in zip(demand, by_hour, strict=True) if n)
    starts = sum(max(0, n - by_hour[hour - 1]) for hour, n in enumerate(by_hour))
    found = Scaling(
        by_hour=by_hour if len(set(by_hour)) > 1 else by_hour[:1],
        starts=starts,
        start_s=context.asked.checkpoints.restart_s,
        paid=(sum(by_hour) + starts * _start_h(offer, context)) / len(by_hour),
        busiest_fraction=(copy.share or 0.0) * busy,
        latency_ms=copy.latency_at(busy),
        limit=least.words,
    )
    ordered = offer.gpu_count * machines(offer, context) * found.peak
    paid = found.paid * period_h(context)
    fewer = paid < context.work.replicas * context.work.hours.mid - _ROUNDING
    return found if fewer and ordered >= offer.minimum_gpus else None


def all_needed(offer: Offer, context: JobContext, speed: Estimate) -> tuple[Reason, str]:
    """Return why no fewer copies are enough on the machines of an offer."""
    copies = context.work.replicas
    least = min(_limits(offer, context, speed, _copy(offer, context, speed)), default=_UNMEASURED)
    if least.times <= 0.0:
        return least.reason, f"no fewer than its {copies} copies: {least.words}"
    times = f"one can answer {least.times:.2f} times what it was measured at ({least.words})"
    peak = max(_by_hour(offer, context, least.times))
    if peak > copies:
        return least.reason, f"its peak wants {peak} copies, {copies} run today: {times}"
    return least.reason, f"no fewer than its {copies} copies: {times}"


def scaled_hours(found: Scaling, offer: Offer, context: JobContext, speed: Estimate) -> Estimate:
    """Return the hours of each of the peak's machines: machine hours of the period over them.

    The ends are those of the copies that the ends of the speed ask for; at most today's.
    """
    held, speeds = (
        context.work.replicas * context.work.hours.mid,
        (speed.high, speed.mid, speed.low),
    )
    if offer.gpu == context.gpu.name:
        speeds = (speed.mid,) * 3  # what was measured there
    ends = []
    for one in speeds:
        there = found if one == speed.mid else scaling(offer, context, exactly(one, speed.basis))
        ends.append(held if there is None else there.paid * period_h(context))
    low, mid, high = (hours / found.peak for hours in ends)
    basis = f"copies by the demand, {found.limit}"
    return Estimate(low=min(low, mid), mid=mid, high=max(mid, high), basis=basis, weak=speed.weak)


def may_scale(context: JobContext) -> bool:
    """Return whether copies could follow demand: a service of several, or with its hours stated.

    A copy that shares its machine with other jobs leaves that machine on the bill.
    """
    work, job = context.work, context.profile.job
    asked = work.replicas > 1 or work.demand is not None
    return job.kind.answers and not work.fixed_work and asked and context.baseline.tenancy is None


def period_h(context: JobContext) -> float:
    """Return the hours that a schedule covers: all of a month where demand is told by the hour."""
    held = context.work.hours.mid
    return held if context.work.demand is None else float(HOURS_PER_MONTH)


def _demand(context: JobContext) -> tuple[float, ...]:
    """Return the demand of each hour in measured copies: as stated, else that of all copies now.

    Where more copies were seen than run now, they were needed.
    """
    if context.work.demand is not None:
        return context.work.demand
    stated = context.profile.job.replicas
    seen = (stated.peak or 0) if stated else 0
    return (float(max(context.work.replicas, seen)),)


def _by_hour(offer: Offer, context: JobContext, most: float) -> tuple[int, ...]:
    demand = _demand(context)
    stated = context.profile.job.replicas
    least = stated.min if stated else None
    fewest = max(1, least or 0)
    quiet = 0 if _may_end(context, least) else fewest
    needed = tuple(
        max(fewest, math.ceil(asked / most - _ROUNDING)) if asked > 0.0 else quiet
        for asked in demand
    )
    # A term is paid for all hours, and a start longer than an hour costs more than it ends.
    always = offer.purchase not in BOUGHT or context.asked.checkpoints.restart_s >= _HOUR_S
    return (max(needed),) * len(needed) if always else needed


def _start_h(offer: Offer, context: JobContext) -> float:
    """Return the hours billed for a start, in whole units of the provider's granularity."""
    rules = rules_of(offer.provider, context.catalog.as_of, offer.instance_type)
    unit_s = float(rules.granularity_s or UNKNOWN_GRANULARITY_S)
    return math.ceil(context.asked.checkpoints.restart_s / unit_s) * unit_s / _HOUR_S


def _may_end(context: JobContext, least: int | None) -> bool:
    """Return whether no copy at all may run in an hour without a request.

    Who stated that none need run may; else a request that comes all the same waits for a start, so
    that must keep the latency target.
    """
    if least is not None:
        return least == 0
    target_ms = context.profile.job.latency_slo_ms
    return target_ms is None or context.asked.checkpoints.restart_s * 1000.0 <= target_ms


def _copy(offer: Offer, context: JobContext, speed: Estimate) -> _Copy:
    same = offer.gpu == context.gpu.name
    profile, share = context.profile, context.load
    latency = worst_latency_ms(profile)
    peak = min(1.0, max(share or 0.0, _peak(context)) / speed.mid)
    slowdown = 1.0 if same else min(1.0, speed.low)
    slowest = None if latency is None else latency / slowdown
    queued = on_gpu_ms(slowest or 0.0, profile.job.requests_per_s, (share or 0.0) / speed.mid, peak)
    return _Copy(
        share=None if share is None else share / speed.mid,
        peak=peak,
        latency_ms=slowest,
        queued_ms=queued,
        target_ms=profile.job.latency_slo_ms,
    )


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
    seen = (one.p95 for slot in _SLOTS for one in profile.readings(slot))
    return max((value for value in seen if value is not None), default=0.0)


def _limits(offer: Offer, context: JobContext, speed: Estimate, copy: _Copy) -> Iterator[_Limit]:
    if copy.share is None:
        return  # what was not measured may be full
    yield _Limit(BUSIEST / max(copy.share, _ROUNDING), f"the GPU {BUSIEST:.0%} busy", "slowdown")
    peak = max(copy.peak, _ROUNDING)
    yield _Limit(1.0 / peak, "the GPU full at its 95th percentile", "slowdown")
    yield from _by_latency(copy)
    yield from _by_parts(context.profile, speed)
    cores, vcpus = context.host.cores, _cores(offer, context)
    if cores and vcpus:
        yield _Limit(vcpus / cores, "the cores of its host", "capability")


def _by_latency(copy: _Copy) -> Iterator[_Limit]:
    if copy.target_ms is None:
        return
    if copy.latency_ms is None:
        yield _Limit(1.0, "a latency target without a measured latency", "latency")
    elif copy.latency_ms > copy.target_ms:
        yield _Limit(0.0, "the latency target, missed today", "latency")
    elif copy.queued_ms > 0.0:
        longest = 1.0 + (copy.target_ms - copy.latency_ms) / copy.queued_ms
        most = busiest(copy.peak, longest) / max(copy.peak, _ROUNDING)
        yield _Limit(most, f"the latency target of {copy.target_ms:g} ms", "latency")


def _by_parts(profile: Profile, speed: Estimate) -> Iterator[_Limit]:
    for title, part in PARTS:
        if used := part(profile):
            most = BUSIEST / used * min(1.0, speed.mid)
            yield _Limit(most, f"the {title} {BUSIEST:.0%} in use", "slowdown")
    serving = profile.job.serving
    if serving is not None and serving.kv_cache_fraction:
        most = BUSIEST / serving.kv_cache_fraction
        yield _Limit(most, f"the KV cache {BUSIEST:.0%} full", "memory")


def _cores(offer: Offer, context: JobContext) -> float | None:
    return None if offer.vcpus is None else offer.vcpus * machines(offer, context)
