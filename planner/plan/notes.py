"""What a plan assumed, and what its reader must know."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from planner.choice.baseline import gpu_memory_gib
from planner.choice.requirements import Period, Requirements
from planner.fleet.fleet import Fleet, Placement
from planner.fleet.tenant import CONTEXT_GIB
from planner.models.track_record import TrackRecord
from planner.plan.confidence import thin
from planner.plan.draft import JobDraft
from planner.plan.recommendation import Recommendation
from planner.prediction.bounds import contradictions
from planner.prediction.slices import DAY_S, memory_growth, recorded_s, whole_gpu
from planner.profile.model import Profile
from planner.profile.source import slice_named, source_slice, unknown_slice
from planner.signals.compute_share import SHARES
from planner.signals.signals import holds_in_advance, memory_need_gib
from pricing.catalog.catalog import Catalog
from pricing.catalog.price_age import OLD_DAYS
from pricing.listing import listed
from pricing.money import plain, whole_dollars

_NAMED = 10
"""Most jobs of a fleet that one sentence names."""


def assumptions(jobs: Iterable[JobDraft], period: Period, asked: Requirements) -> tuple[str, ...]:
    """Return what was assumed rather than stated: what a change must earn, then job by job."""
    over = f"{plain(asked.horizon)} months (--horizon)" if period == "month" else "one run"
    rate = f"{plain(asked.engineer_usd_per_hour)} USD/h (--engineer-rate)"
    found = [f"a change must pay back its work and its move within {over}, at {rate}."]
    if asked.history is not None:
        found.append(_of_record(asked.history))
    if beside := _of_each_machine(asked):
        found.append(f"{beside}, today and in every option; --machine-only excludes that.")
    for job in jobs:
        found.extend(job.baseline.notes)
        if (sliced := _of_slice(job)) is not None:
            found.append(sliced)
        if job.profile.job.kind == "unknown":
            found.append(f"{job.name}: the kind of job is unknown; its hours are treated as fixed.")
        if period == "month" and job.work.fixed_work:
            found.append(
                f"{job.name}: the month's work stays the same, so hours = hours / speed-up."
            )
    return tuple(dict.fromkeys(found))


def _of_slice(job: JobDraft) -> str | None:
    """Return what is taken of the whole GPU where a slice of it was measured; None elsewhere."""
    if source_slice(job.profile) is None:
        return None
    whole = whole_gpu(job.profile)
    return (
        f"{job.name}: measured on {slice_named(job.profile)}, a slice; the whole GPU is taken to "
        f"be {whole.mid:.1f} times as fast ({whole.low:.1f}-{whole.high:.1f}) while it is busy; "
        "today's bill is that of the whole GPU."
    )


def _of_each_machine(asked: Requirements) -> str:
    """Return what is on every bill beside machine time, in words; empty if nothing is."""
    disk = f"boots from a disk of {asked.boot_disk_bytes / 2**30:g} GiB (--boot-disk)"
    address = "has a public IPv4 address (--no-public-address)"
    parts = ((asked.boot_disk_bytes, disk), (asked.public_address, address))
    said = [] if asked.machine_only else [text for holds, text in parts if holds]
    return f"each machine {' and '.join(said)}" if said else ""


def _of_record(record: TrackRecord) -> str:
    """Return what a record of earlier outcomes does to predictions."""
    sorts = (("on today's GPUs", record.same_machine), ("on other GPUs", record.moved))
    told = [f"{where}, {one.words}" for where, one in sorts if one.outcomes]
    return f"--history {record.name}: {'; '.join(told) or 'it holds no outcome'}."


def _unknown_move(name: str, net_usd: Decimal | None) -> str:
    """Return up to what a move whose data are not stated would still pay."""
    paid = "" if net_usd is None else whole_dollars(net_usd)
    upto = paid and f"; the change pays off while that is under ${paid}"
    return f"{name}: the cost of moving the data is unknown (job.dataset_gib, --storage){upto}."


def _spot(jobs: Iterable[JobDraft]) -> Iterator[str]:
    """Yield what is not known of the spot options."""
    several = tuple(jobs)
    spot = [o for job in several for o in job.options if o.offer.purchase == "spot"]
    blind = {o.offer.provider for o in spot if not o.interruptions_known}
    blind.update(provider for job in several for provider in job.left_out.blind)
    if blind:
        yield (
            f"spot at {', '.join(sorted(blind))}: the interruption rate is unknown, so lost "
            "work is not counted; provide a trace with --spot-trace."
        )
    if any(offer.purchase == "spot" for job in several for offer in job.offers):
        yield "spot: the hours exclude waiting for capacity, which is unknown without a trace."


def warnings(jobs: tuple[JobDraft, ...], catalog: Catalog, period: Period) -> tuple[str, ...]:
    """Return what a reader must know: doubts about data and prices, limits nothing keeps."""
    found: list[str] = []
    totals = [j.name for j in jobs if j.profile.work and j.profile.work.total]
    if period == "month" and totals and len(totals) < len(jobs):
        found.append(
            f"only {', '.join(totals)} state a total amount of work, so the plan is per month."
        )
    for job in jobs:
        found.extend(job.baseline.warnings)
        found.extend(f"{job.name}: {note}" for note in job.profile.provenance.notes)
        found.extend(f"{job.name}: {doubt}." for doubt in contradictions(job.profile))
        if (unknown := unknown_slice(job.profile)) is not None:
            found.append(f"{job.name}: {unknown}: no prediction from it is a reason to move.")
        if holds_in_advance(job.profile):
            found.append(
                f"{job.name}: {job.profile.job.framework} reserves GPU memory at start-up "
                "(gpu_memory_utilization and similar settings); how much it needs is unknown."
            )
        if ground := thin(job.profile):
            found.append(f"{job.name}: {ground}.")
        if (best := job.choice) and best.move and best.move.once_usd is None:
            found.append(_unknown_move(job.name, best.benefit.net_usd))
        if not job.feasible:
            found.append(f"{job.name}: no option meets every limit.")
        for bill in (job.baseline.quote, job.choice.quote if job.choice else None):
            found.extend(bill.warnings if bill else ())
    found.extend(_spot(jobs))
    stale = sum(catalog.is_stale(offer) for job in jobs for offer in job.offers)
    if stale:
        found.append(
            f"{stale} of the listed options have prices that are over {OLD_DAYS} days old, or that "
            "have no date (marked old)."
        )
    return tuple(dict.fromkeys(found))


def unknown_moves(recommended: Recommendation) -> tuple[str, ...]:
    """Name the jobs that are to share on another machine whose data move at an unknown cost."""
    if (there := recommended.alternative) is None:
        return ()
    packed = recommended.packed_jobs
    blind = [name for name in there.unknown if name in packed]
    if not blind:
        return ()
    what = f"the cost of moving the data of {len(blind)} jobs that are to share another machine"
    return (f"{what} is unknown (job.dataset_gib, --storage): {listed(blind, _NAMED)}.",)


_HOUR_S = 3600.0
_MODES: Mapping[str, tuple[str, ...]] = {
    "mps": (
        "errors: a fatal error of one job on the GPU ends all jobs there (MPS).",
        "no isolation: a job that takes more memory than it did takes it from the others.",
    ),
    "time-slicing": (
        "errors: a job that fails ends alone; one that fills the memory makes others fail.",
        "no isolation: jobs take turns on the whole GPU, so long kernels of one delay the others.",
    ),
    "mig": ("errors: they stay in a slice; to change the layout all jobs there must be stopped.",),
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
    return (
        *_MODES.get(placement.mode or "", ()),
        *_of_memory(placement, profiles),
        *_of_peaks(profiles),
        *_of_interval(placement),
    )


def _of_memory(placement: Placement, profiles: Sequence[Profile]) -> Iterator[str]:
    if placement.mode == "mig":
        return
    held = [memory_need_gib(profile) for profile in profiles]
    known = [gib + CONTEXT_GIB for gib in held if gib is not None]
    room = gpu_memory_gib(placement.offer)
    if len(known) == len(held):
        left = room - sum(known)
        yield (
            f"memory: at the most that was measured they hold {sum(known):.1f} of {room:.1f} GiB; "
            f"{left:.1f} are left for all to grow."
        )


def _of_peaks(profiles: Sequence[Profile]) -> Iterator[str]:
    blind = [one.job.name for one in profiles if not _has_peak(one)]
    if blind:
        yield f"peaks: of {', '.join(blind)} they were not measured; means stand for them."
    short = [one for one in profiles if (recorded_s(one) or 0.0) < DAY_S]
    if short:
        yield (
            f"peaks: {_recorded(short)}: less than a day, so what a day's busiest hour wants may "
            f"not be in it{_room(short)}."
        )


def _recorded(short: Sequence[Profile]) -> str:
    """Return names, with how long each was recorded where that is known."""
    by_time: dict[str, list[str]] = {}
    for one in short:
        seen_s = recorded_s(one)
        told = "recorded for an unknown time" if seen_s is None else f"recorded {_hours(seen_s)}"
        by_time.setdefault(told, []).append(one.job.name)
    return "; ".join(f"{', '.join(names)} {told}" for told, names in by_time.items())


def _hours(seen_s: float) -> str:
    return f"{seen_s / 3600.0:.3g} h" if seen_s >= _HOUR_S else f"{seen_s / 60.0:.3g} min"


def _room(short: Sequence[Profile]) -> str:
    """Return what was left for growth, in words; empty where nothing was."""
    grown = [one for one in short if memory_growth(one) > 1.0]
    if not grown:
        return ""
    most = max(memory_growth(one) for one in grown)
    return (
        f"; room was left as other services grew beyond such a recording (memory x {most:.2g}): "
        "record a whole day to pack by what is measured"
    )


def _has_peak(profile: Profile) -> bool:
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), SHARES[-1])
    return any(one.p95 is not None for one in profile.readings(slot))


def _of_interval(placement: Placement) -> Iterator[str]:
    worst = min(placement.jobs, key=lambda name: placement.speed[name].low)
    low, mid = placement.speed[worst].low, placement.speed[worst].mid
    yield (
        f"speed: {worst} is expected at {mid:.2f} of its speed alone; the interval (90 %) reaches "
        f"down to {low:.2f}."
    )


def roll_back(fleet: Fleet) -> str | None:
    """Return how to go back to a machine for each job; None where nothing is shared."""
    if all(len(one.jobs) == 1 for one in fleet.placements):
        return None
    return (
        "Keep today's machines until every job has run through a busy hour on its shared GPU. To "
        "go back, start the job on its own machine again as today (o0), then end it here; what it "
        "keeps on disk is the same."
    )
