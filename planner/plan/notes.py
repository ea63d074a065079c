"""What a plan assumed, and what its reader must know."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import fmean

from planner.choice.baseline import gpu_memory_gib, where
from planner.choice.requirements import Period, Requirements
from planner.fleet.fleet import TIMETABLE, Fleet, Placement
from planner.fleet.tenant import CONTEXT_GIB
from planner.models.track_record import TrackRecord
from planner.plan.confidence import thin
from planner.plan.draft import JobDraft
from planner.plan.recommendation import Recommendation
from planner.prediction.bounds import contradictions
from planner.prediction.sharing import peak_share
from planner.prediction.slices import grown_need_gib, memory_growth, recorded_s, whole_gpu
from planner.profile.model import Profile
from planner.profile.source import slice_named, source_slice, unknown_slice
from planner.signals.compute_share import SHARES
from planner.signals.program_places import has_guessed_times
from planner.signals.signals import DAY_H, WEEK_H, holds_in_advance, memory_need_gib, turn_hours
from planner.signals.thresholds import DAY_S, LEFT_ON, USABLE
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import EVERYWHERE
from pricing.catalog.price_age import OLD_DAYS
from pricing.listing import listed
from pricing.message import Message, join
from pricing.money import plain, whole_dollars

_HOST_NAME = re.compile(r"(node|host|rank|worker|machine)[\W_]?\d+", re.IGNORECASE)
_NAMED = 10
"""Most jobs of a fleet that one sentence names."""


def assumptions(jobs: Sequence[JobDraft], period: Period, needs: Requirements) -> tuple[str, ...]:
    """Return what was assumed rather than stated: what a change must earn, then job by job."""
    code = "note.must-pay-back" if period == "month" else "note.must-pay-back-in-a-run"
    rate, months = plain(needs.engineer_usd_per_hour), plain(needs.horizon)
    notes: list[str] = [Message(code, usd=rate, months=months)]
    if needs.history is not None:
        notes.append(_of_record(needs.history))
    if extras := _of_each_machine(needs):
        notes.append(extras)
    if (budget := needs.budget_usd) is not None and len(jobs) > 1:
        notes.append(Message("note.budget-each", budget=whole_dollars(budget), n=len(jobs)))
    for job in jobs:
        notes.extend(job.baseline.notes)
        if (sliced := _of_slice(job)) is not None:
            notes.append(sliced)
        if job.profile.job.kind == "unknown":
            notes.append(Message("note.kind-unknown", job=job.name))
        if period == "month" and job.work.fixed_work:
            notes.append(Message("note.same-work", job=job.name))
        if not needs.egress_to:
            notes.extend(_users_assumed(job))
    return tuple(dict.fromkeys(notes))


def _maybe_one_job(jobs: Sequence[JobDraft]) -> Iterator[str]:
    """Yield the jobs that bear names of hosts, began together, ran as long and held as much."""
    groups = defaultdict[tuple[object, ...], list[str]](list)
    for job in jobs:
        profile, window = job.profile, job.profile.window
        is_host = _HOST_NAME.search(job.name) and not profile.job.kind.answers
        if is_host and window and window.start:
            minutes = (window.start.timestamp() // 60, round((window.duration_s or 0.0) / 60))
            sort = (re.sub(r"\d+", "#", job.name), profile.hardware.gpu, profile.gpu_count)
            groups[*sort, *minutes].append(job.name)
    for names in groups.values():
        if len(names) > 1:
            yield Message("note.maybe-one-job", jobs=listed(names, _NAMED))


def _users_assumed(job: JobDraft) -> Iterator[str]:
    """Yield where the users of a service that is to move to another region are taken to be."""
    today, best = job.baseline.offer, job.choice
    if best is None or today is None or not job.profile.job.kind.answers:
        return
    home = where(today, job.profile).region
    if best.offer.region != home and job.profile.job.latency_slo_ms is not None:
        is_known = not job.baseline.assumed and home != EVERYWHERE
        code = "note.users-assumed" if is_known else "note.users-unknown"
        yield Message(code, job=job.name, home=home)


def _of_slice(job: JobDraft) -> str | None:
    """Return what is taken of the whole GPU where a slice of it was measured; None elsewhere."""
    if source_slice(job.profile) is None:
        return None
    full_gpu = whole_gpu(job.profile)
    return Message(
        "note.slice",
        job=job.name,
        slice=slice_named(job.profile) or "",
        low=full_gpu.low,
        mid=full_gpu.mid,
        high=full_gpu.high,
    )


def _of_each_machine(needs: Requirements) -> str:
    """Return what is on every bill beside machine time, in words; empty if nothing is."""
    if needs.machine_only or not (needs.boot_disk_bytes or needs.public_address):
        return ""
    if not needs.boot_disk_bytes:
        return Message("note.address")
    code = "note.boot-disk-and-address" if needs.public_address else "note.boot-disk"
    return Message(code, gib=needs.boot_disk_bytes / 2**30)


def _of_record(record: TrackRecord) -> str:
    """Return what a record of earlier outcomes does to predictions."""
    sorts = (("same-gpu", record.same_machine), ("other-gpu", record.moved))
    outcomes = [
        Message(f"history.{where}", words=row.words) for where, row in sorts if row.outcomes
    ]
    text = join(outcomes) or Message("history.none")
    return Message("note.history", name=record.name, words=text)


def _unknown_move(name: str, net_usd: Decimal | None) -> str:
    """Return up to what a move whose data are not stated would still pay."""
    if net_usd is None or net_usd <= 0:
        return Message("note.move-unknown", job=name)
    return Message("note.move-unknown-up-to", job=name, usd=whole_dollars(net_usd))


def _spot(jobs: Iterable[JobDraft]) -> Iterator[str]:
    """Yield what is not known of the spot options."""
    several = tuple(jobs)
    spot = [o for job in several for o in job.options if o.offer.purchase == "spot"]
    blind = {o.offer.provider for o in spot if not o.interruptions_known}
    blind.update(provider for job in several for provider in job.left_out.blind)
    if blind:
        yield Message("note.interruptions-unknown", providers=sorted(blind))
    if any(offer.purchase == "spot" for job in several for offer in job.offers):
        yield Message("note.spot-waiting")


def warnings(jobs: tuple[JobDraft, ...], catalog: Catalog, period: Period) -> tuple[str, ...]:
    """Return what a reader must know: doubts about data and prices, limits nothing keeps."""
    notes: list[str] = []
    totals = [j.name for j in jobs if j.profile.work and j.profile.work.total]
    if period == "month" and totals and len(totals) < len(jobs):
        notes.append(Message("note.only-some-totals", jobs=totals))
    for job in jobs:
        notes.extend(job.baseline.warnings)
        notes.extend(_gaps(job))
        notes.extend(_use_read(job))
        notes.extend(_idle_end(job))
        about = (*job.profile.provenance.notes, *contradictions(job.profile))
        notes.extend(Message("note.about", job=job.name, note=note) for note in about)
        if (slice_text := unknown_slice(job.profile)) is not None:
            notes.append(Message("note.slice-unknown", job=job.name, why=slice_text))
        if holds_in_advance(job.profile):
            framework = job.profile.job.framework or ""
            notes.append(Message("note.holds-in-advance", job=job.name, framework=framework))
        if ground := thin(job.profile):
            notes.append(Message("note.thin", job=job.name, ground=ground))
        if (best := job.choice) and best.move and best.move.once_usd is None:
            notes.append(_unknown_move(job.name, best.benefit.net_usd))
        if not job.feasible:
            notes.append(Message("note.nothing-feasible", job=job.name))
        for bill in (job.baseline.quote, job.choice.quote if job.choice else None):
            notes.extend(bill.warnings if bill else ())
    notes.extend(_maybe_one_job(jobs))
    notes.extend(_fewer_copies(jobs))
    notes.extend(_on_paid_machines(jobs))
    notes.extend(_spot(jobs))
    stale = sum(catalog.is_stale(offer) for job in jobs for offer in job.offers)
    if stale:
        notes.append(Message("note.stale", n=stale, days=OLD_DAYS))
    return tuple(dict.fromkeys(notes))


_COPY = re.compile(r"(-[0-9a-z]{5}|[-_.]?[0-9]+)$")
_FILLED = 0.6  # of a copy in the busiest hour; the rest is for the minutes in it and for queues
_SEVERAL, _LEAST_COPIES = 3, 2
_UNDER_USED = "under-used-inference"


def _fewer_copies(jobs: Iterable[JobDraft]) -> Iterator[Message]:
    """Yield how many copies of each service with several would do in its busiest hour.

    Copies are jobs of one name but for the end, on one kind of machine, that requests keep busy
    for a small part of the time. Kernel time is an upper bound of what requests need: few at once
    take nearly as long as many. What it does not tell is how long they wait: it is tried, not
    planned.
    """
    services: dict[tuple[str, str], list[JobDraft]] = defaultdict(list)
    for job in jobs:
        offer, idle = job.baseline.offer, job.findings[:1]
        under_used = bool(idle) and idle[0].code == _UNDER_USED
        planned = job.work.service is not None or job.work.demand is not None
        solo = job.baseline.tenancy is None  # a machine that others use stays when a copy goes
        if under_used and offer is not None and solo and not planned:
            services[_COPY.sub("", job.name), offer.place].append(job)
    for (name, _), copies in services.items():
        hours = [hours for job in copies if (hours := _kernel_time_by_hour(job.profile))]
        same_hours = len(hours) == len(copies) and len({len(mean) for mean in hours}) == 1
        if len(copies) < _SEVERAL or not same_hours:
            continue
        busy = [sum(at_once) for at_once in zip(*hours, strict=True)]
        peak, n = max(busy), len(copies)
        enough = max(_LEAST_COPIES, math.ceil(round(peak / _FILLED, 6)))
        usd = sum((job.baseline.cost or Decimal(0) for job in copies), Decimal(0))
        if enough < n and usd:
            yield Message(
                "note.fewer-copies",
                name=name,
                n=n,
                enough=enough,
                busy=fmean(busy) / n,
                peak=peak / n,
                then=peak / enough,
                now=whole_dollars(usd),
                usd=whole_dollars(usd * enough / n),
            )


def _on_paid_machines(jobs: Iterable[JobDraft]) -> Iterator[Message]:
    """Yield which job could run on a machine that is paid whatever runs, and does nothing.

    One of the same size, bought by the hour and not shared; the dearest job first.
    """
    by_cost = sorted(jobs, key=lambda job: (-(job.baseline.cost or Decimal(0)), job.name))
    idle = [job for job in by_cost if job.does_nothing and job.baseline.owed > 0]
    for job in by_cost:
        bill, offer, cost = job.baseline.quote, job.baseline.offer, job.baseline.cost
        if job.does_nothing or job.baseline.owed or job.baseline.tenancy or job.baseline.assumed:
            continue
        if bill is None or offer is None or cost is None:
            continue
        free = (p for p in idle if p.baseline.has_size(offer) and p.baseline.tenancy is None)
        paid = next((p for p in free if p.baseline.count >= job.baseline.count), None)
        if paid is not None:
            idle.remove(paid)
            machines = bill.by_time
            yield Message(
                "note.on-paid",
                name=job.name,
                idle=paid.name,
                machine=offer.name,
                usd=whole_dollars(cost - machines),
                fraction=round(machines / cost, 4) if cost else Decimal(0),
                saves=whole_dollars(machines),
            )


def _kernel_time_by_hour(profile: Profile) -> tuple[float, ...]:
    """Return the share of each hour with a kernel running; empty where it is not known."""
    use, busy = profile.by_hour, profile.busy_fraction
    mean = fmean(use.mean) if use is not None and use.mean else 0.0
    if use is None or not busy or not mean:
        return ()
    return tuple(min(1.0, busy / mean * share) for share in use.mean)


_FEW_GAPS = 0.1
_MINUTE_S = 60.0


def _gaps(job: JobDraft) -> Iterator[Message]:
    """Yield how much of the time of a recording nobody recorded, where that is much."""
    window = job.profile.window
    if window is None or window.coverage is None or window.duration_s is None:
        return
    if (missing := 1.0 - window.coverage) > _FEW_GAPS:
        minutes = window.duration_s / _MINUTE_S
        yield Message(
            "note.gaps", job=job.name, gap=missing * minutes, whole=minutes, share=missing
        )


def _idle_end(job: JobDraft) -> Iterator[Message]:
    """Yield that a recording ends with the GPUs at rest for much of it, where no cause says so."""
    profile, window = job.profile, job.profile.window
    is_named = any(finding.code == LEFT_ON for finding in job.findings)
    if is_named or window is None or window.duration_s is None or has_guessed_times(profile):
        return
    for note in profile.provenance.notes:
        if isinstance(note, Message) and note.code == "read.idle-ends":
            lead_s, tail_s = (float(str(note.params[name])) for name in ("lead", "tail"))
            if tail_s > _FEW_GAPS * (whole_s := lead_s + window.duration_s + tail_s):
                minutes = {"tail": tail_s / _MINUTE_S, "whole": whole_s / _MINUTE_S}
                yield Message("note.about", job=job.name, note=Message("read.idle-end", **minutes))


def _use_read(job: JobDraft) -> Iterator[Message]:
    """Yield that SM activity stands for a GPU's use, and that not every GPU was read."""
    slots = ("util.kernel_time", "util.sm_active")
    kernels, sms = (len(job.profile.readings(slot)) for slot in slots)
    if sms and not kernels:
        yield Message("note.by-sm-activity", job=job.name)
    n, of = kernels or sms, len(job.profile.gpus)
    if 0 < n < of:
        yield Message("note.gpus-unread", job=job.name, n=n, of=of)


def unknown_moves(recommended: Recommendation) -> tuple[str, ...]:
    """Name the jobs that are to share on another machine whose data move at an unknown cost."""
    if (alternative := recommended.alternative) is None:
        return ()
    packed = recommended.packed_jobs
    blind = [name for name in alternative.unknown if name in packed]
    if not blind:
        return ()
    return (Message("note.moves-unknown", n=len(blind), jobs=listed(blind, _NAMED)),)


_HOUR_S = 3600.0
_MODES: Mapping[str, tuple[str, ...]] = {
    "mps": (Message("risk.mps-errors"), Message("risk.mps-memory")),
    "time-slicing": (Message("risk.time-slicing-errors"), Message("risk.time-slicing-turns")),
    "mig": (Message("risk.mig-errors"),),
}


def risks(placement: Placement, jobs: Sequence[JobDraft]) -> tuple[str, ...]:
    """Return what may go wrong on a GPU that jobs share; nothing for a job alone.

    Args:
        placement: the GPU.
        jobs: those that share it, in the order of the plan.
    """
    if len(placement.jobs) == 1:
        return ()
    profiles = [job.profile for job in jobs]
    if turns := timetable(placement, jobs):
        listed_turns = [f"{name} {hours}" for name, hours in turns.items()]
        return (Message("risk.timetable", turns=listed_turns), Message("risk.turn-ends"))
    return (
        *_MODES.get(placement.mode or "", ()),
        *_of_memory(placement, jobs),
        *_of_latency(profiles),
        *_of_peaks(profiles),
        *_of_interval(placement),
    )


def timetable(placement: Placement, jobs: Sequence[JobDraft]) -> dict[str, str]:
    """Return the hours (UTC) in which each job holds a GPU, as "Mon-Fri 9-12"; empty: no turns."""
    if placement.mode != TIMETABLE:
        return {}
    return {job.name: week_hours_text(turn_hours(job.profile)) or "always" for job in jobs}


def week_hours_text(hours: Sequence[int]) -> str:
    """Return hours of a week as days and times; days of the same times stand together."""
    days = defaultdict[tuple[int, int], list[int]](list)
    for begin in (hour for hour in hours if (hour - 1) % WEEK_H not in hours):
        length = next(n for n in range(WEEK_H) if (begin + n) % WEEK_H not in hours)
        days[begin % DAY_H, length].append(begin // DAY_H)
    return ", ".join(
        f"{_days(which)} {begin}-{(begin + length) % DAY_H or DAY_H}"
        + (f" ({length} h)" if length > DAY_H else "")
        for (begin, length), which in days.items()
    )


def _days(days: Sequence[int]) -> str:
    first, last = days[0], days[-1]
    if len(days) > 1 and last - first == len(days) - 1:
        return f"{_DAYS[first]}-{_DAYS[last]}"
    return "+".join(_DAYS[day] for day in days)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def memory_limits(placement: Placement, jobs: Sequence[JobDraft]) -> dict[str, int]:
    """Return what each job may take of a shared GPU's memory, MiB; none where not all is known.

    It is the need that the packing counts, and a part of what is left by that need. All limits
    together keep the packing's headroom.
    """
    needs = {job.name: _memory_gib(job.profile) for job in jobs}
    total = sum(need or 0.0 for need in needs.values())
    if placement.mode != "mps" or len(jobs) == 1 or None in needs.values() or not total:
        return {}
    room_mib = 1024.0 * USABLE * gpu_memory_gib(placement.offer)
    return {name: math.floor(room_mib * (need or 0.0) / total) for name, need in needs.items()}


def core_limits(placement: Placement, jobs: Sequence[JobDraft]) -> dict[str, int]:
    """Return what each job may take of a shared GPU's time, percent, by its 95th percentile.

    None where it was measured on another GPU, or they take more than all of it together.
    """
    peaks = {job.name: peak_share(job.profile) or 0.0 for job in jobs}
    total, gpu = sum(peaks.values()), placement.offer.gpu
    same = all(job.baseline.offer and job.baseline.offer.gpu == gpu for job in jobs)
    if placement.mode != "mps" or len(jobs) == 1 or not (same and 0.0 < total <= 1.0):
        return {}
    return {name: math.floor(100.0 * peak / total) for name, peak in peaks.items()}


def _memory_gib(profile: Profile) -> float | None:
    need = grown_need_gib(profile)
    return None if need is None else need + CONTEXT_GIB


def _of_memory(placement: Placement, jobs: Sequence[JobDraft]) -> Iterator[str]:
    if placement.mode == "mig":
        return
    needs = [memory_need_gib(job.profile) for job in jobs]
    held = [need + CONTEXT_GIB for need in needs if need is not None]
    room = gpu_memory_gib(placement.offer)
    if len(held) == len(needs):
        yield Message("risk.memory", held=sum(held), room=room, left=room - sum(held))
    if limits := memory_limits(placement, jobs):
        parts = [f"{name} {mib / 1024.0:.1f} GiB" for name, mib in limits.items()]
        yield Message("risk.memory-limits", limits=parts)


def _of_latency(profiles: Sequence[Profile]) -> Iterator[str]:
    services = [p.job.name for p in profiles if p.job.is_unmeasured_service]
    if services:
        yield Message("risk.latency-unmeasured", jobs=services)


def _of_peaks(profiles: Sequence[Profile]) -> Iterator[str]:
    blind = [profile.job.name for profile in profiles if not _has_peak(profile)]
    if blind:
        yield Message("risk.peaks-unmeasured", jobs=blind)
    short = [profile for profile in profiles if (recorded_s(profile) or 0.0) < DAY_S]
    if short:
        growth = max(memory_growth(profile) for profile in short)
        code = "risk.less-than-a-day-grown" if growth > 1.0 else "risk.less-than-a-day"
        yield Message(code, recorded=_recorded(short), growth=growth)


def _recorded(short: Sequence[Profile]) -> str:
    """Return names, with how long each was recorded where that is known."""
    by_time: dict[str, list[str]] = {}
    for profile in short:
        seen_s = recorded_s(profile)
        by_time.setdefault(_hours(seen_s), []).append(profile.job.name)
    parts = [Message("risk.recorded", jobs=names, time=time) for time, names in by_time.items()]
    return join(parts)


def _hours(seen_s: float | None) -> str:
    if seen_s is None:
        return Message("risk.unknown-time")
    if seen_s >= _HOUR_S:
        return Message("risk.hours", n=seen_s / _HOUR_S)
    return Message("risk.minutes", n=seen_s / 60.0)


def _has_peak(profile: Profile) -> bool:
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), SHARES[-1])
    return any(reading.p95 is not None for reading in profile.readings(slot))


def _of_interval(placement: Placement) -> Iterator[str]:
    worst = min(placement.jobs, key=lambda name: placement.speed[name].low)
    low, mid = placement.speed[worst].low, placement.speed[worst].mid
    yield Message("risk.speed", job=worst, mid=mid, low=low)


def roll_back(fleet: Fleet) -> str | None:
    """Return how to go back to a machine for each job; None where nothing is shared."""
    if all(len(placement.jobs) == 1 for placement in fleet.placements):
        return None
    return Message("risk.roll-back")
