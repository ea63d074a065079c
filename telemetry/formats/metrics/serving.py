"""What the counts of servers of models say over a stretch of time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.profile.kinds import JobKind
from planner.profile.serving import Latency, Serving
from telemetry.profiling.window import durations, usual_interval
from telemetry.recording.recording import Served
from telemetry.serving.names import (
    FRAMEWORKS,
    NAMES,
    RANKS,
    MetricName,
    metric_of,
    stem,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from telemetry.readers.series import SampledSeries

_ASKED = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One series of a server."""

    name: str
    known: MetricName
    series: SampledSeries


def served(found: Iterable[SampledSeries], *, clocked: bool = True) -> tuple[Served, ...]:
    """Return what the servers among the series reported, one value a job, by its name.

    Counters count from one reading to the next (a restart begins at 0 again). A single reading says
    what is running and waiting now, and latencies since the server's start; it has no rates.

    Args:
        found: series of any metrics; those of no server are passed over.
        clocked: whether their times are known.
    """
    jobs: dict[tuple[str, str], list[_Member]] = defaultdict(list)
    for one in found:
        known = metric_of(one.name, one.labels)
        finite = np.isfinite(one.readings) & np.isfinite(one.t_s)
        if known is not None and finite.any():
            kept = replace(one, t_s=one.t_s[finite], readings=one.readings[finite])
            member = _Member(name=known[1], known=known[2], series=kept)
            jobs[known[0], _pod(kept)].append(member)
    return tuple(
        _one_server(server, job, members, clocked=clocked)
        for (server, job), members in sorted(jobs.items(), key=lambda item: item[0])
    )


def _pod(one: SampledSeries) -> str:
    """Return the pod of a server; the name of a scrape says nothing of the GPU's job."""
    return one.labels.get("exported_pod") or one.labels.get("pod") or ""


def _one_server(server: str, job: str, members: Sequence[_Member], *, clocked: bool) -> Served:
    parts = _by_part(server, members)
    times = np.concatenate([one.series.t_s for one in members])
    several = bool(times.max() > times.min())
    length = float(times.max() - times.min()) if clocked else 0.0
    notes: list[str] = []
    latency = {
        part: _latency(parts.get(part, ()), several=several, notes=notes)
        for part in ("latency", "queue", "first", "each")
    }
    answered = _counted(parts.get("answered") or _ending(parts.get("latency", ()), "_count"))
    generated = _counted(parts.get("generated", ()))
    for part in ("latency", "queue"):
        latency[part] = latency[part] or _mean_of(parts.get(f"{part}_total", ()), answered)

    def rate(part: str) -> float | None:
        return _rate(_counted(parts.get(part, ())), length)

    serving = Serving(
        kv_cache_fraction=_share(parts.get("cache", ())),
        requests_running=_together(parts.get("running", ())),
        requests_waiting=_together(parts.get("waiting", ())),
        preemptions_per_s=rate("preempted"),
        prompt_tokens_per_s=rate("prompt"),
        generated_tokens_per_s=rate("generated"),
        failures_per_s=rate("failed"),
        queue_ms=latency["queue"],
        first_token_ms=latency["first"],
        token_ms=latency["each"],
    )
    return Served(
        job=job or None,
        framework=FRAMEWORKS[server],
        kind=JobKind.INFERENCE_ONLINE,
        serving=None if serving == Serving() else serving,
        requests_per_s=_rate(answered, length),
        latency_ms=latency["latency"],
        unit="request" if generated is None else "token",
        done=(answered if generated is None else generated) if several else None,
        start_s=float(times.min()),
        length_s=length,
        interval_s=usual_interval(times) if length > 0 else None,
        points=len(times),
        notes=tuple(notes),
    )


def _by_part(server: str, members: Sequence[_Member]) -> dict[str, list[_Member]]:
    """Return the series of each part: those of the first of its names that is there."""
    stems = {stem(one.name) for one in members}
    chosen: dict[str, str] = {}
    for name, known in NAMES[server].items():
        if stem(name) in stems:
            chosen.setdefault(known.part, stem(name))
    parts: dict[str, list[_Member]] = defaultdict(list)
    for one in members:
        if chosen.get(one.known.part, stem(one.name)) == stem(one.name):
            parts[one.known.part].append(one)
    return dict(parts)


def _ending(members: Sequence[_Member], end: str) -> list[_Member]:
    return [one for one in members if one.name.endswith(end)]


def _rate(count: float | None, length_s: float) -> float | None:
    return None if count is None or length_s <= 0 else round(count / length_s, _DIGITS)


def _copies(members: Sequence[_Member]) -> list[list[SampledSeries]]:
    """Return the series by their labels without ranks."""
    copies: dict[tuple[tuple[str, str], ...], list[SampledSeries]] = defaultdict(list)
    for one in members:
        labels = ((k, v) for k, v in one.series.labels.items() if k not in RANKS)
        copies[tuple(sorted(labels))].append(one.series)
    return list(copies.values())


def _mean(one: SampledSeries) -> float:
    return float(np.average(one.readings, weights=durations(one.t_s)))


def _means(members: Sequence[_Member]) -> list[float]:
    """Return the mean over time of each copy; of its ranks the greatest."""
    return [max(_mean(one) for one in ranks) for ranks in _copies(members)]


def _together(members: Sequence[_Member]) -> float | None:
    return round(sum(_means(members)), _DIGITS) if members else None


def _share(members: Sequence[_Member]) -> float | None:
    means = [mean for mean in _means(members) if 0 <= mean <= 1]
    return round(sum(means) / len(means), _DIGITS) if means else None


def _increase(one: SampledSeries) -> float:
    """Return how far a counter counted; one that fell began at 0 again."""
    steps = np.diff(one.readings)
    return float(np.where(steps < 0, one.readings[1:], steps).sum())


def _counted(members: Sequence[_Member]) -> float | None:
    if not members:
        return None
    return sum(max(_increase(one) for one in ranks) for ranks in _copies(members))


def _latency(members: Sequence[_Member], *, several: bool, notes: list[str]) -> Latency | None:
    """Return a latency by its histogram, else by the quantiles that a server tells itself."""
    to_ms = members[0].known.to_ms if members else 1.0
    buckets = _ending(members, "_bucket")
    told = _by_histogram(buckets, several=several) if buckets else _by_quantile(members)
    timed, total = (_total(_ending(members, end), several=several) for end in ("_count", "_sum"))
    if timed and total is not None:
        told["mean"] = total / timed
    elif not told:
        return None
    if buckets and not all(name in told for name in _ASKED):
        longest = max(_bounds(buckets), default=0.0) * to_ms
        notes.append(
            f"{stem(buckets[0].name)}: some requests took longer than {longest:g} ms, the last "
            "bound of its histogram."
        )
    if not several:
        notes.append(f"{stem(members[0].name)}: since the server's start, as one reading is given.")
    return Latency(**{name: round(value * to_ms, _DIGITS) for name, value in told.items()})


def _mean_of(total: Sequence[_Member], answered: float | None) -> Latency | None:
    """Return the mean of what is told in sum; its quantiles are unknown."""
    spent = _counted(total)
    if spent is None or not answered:
        return None
    return Latency(mean=round(spent / answered * total[0].known.to_ms, _DIGITS))


def _total(members: Sequence[_Member], *, several: bool) -> float | None:
    if several or not members:
        return _counted(members)
    return float(sum(one.series.readings[-1] for one in members))


def _bounds(buckets: Sequence[_Member]) -> list[float]:
    found = (_number(one.series.labels.get("le", "")) for one in buckets)
    return sorted({bound for bound in found if bound is not None and np.isfinite(bound)})


def _by_histogram(buckets: Sequence[_Member], *, several: bool) -> dict[str, float]:
    """Return quantiles, straight lines inside a bucket as in Prometheus' `histogram_quantile`.

    A quantile beyond the last bound is left out.
    """
    count: dict[float, float] = defaultdict(float)
    for one in buckets:
        bound = _number(one.series.labels.get("le", ""))
        if bound is not None:
            count[bound] += _increase(one.series) if several else float(one.series.readings[-1])
    bounds = sorted(count)
    counts: list[float] = np.maximum.accumulate([count[bound] for bound in bounds]).tolist()
    if not counts or counts[-1] <= 0:
        return {}
    told = {name: _quantile(bounds, counts, share) for name, share in _ASKED.items()}
    return {name: value for name, value in told.items() if value is not None}


def _quantile(bounds: Sequence[float], counts: Sequence[float], share: float) -> float | None:
    rank = share * counts[-1]
    place = int(np.searchsorted(counts, rank))
    if not np.isfinite(bounds[place]):
        return None
    low = 0.0 if place == 0 else bounds[place - 1]
    below = 0.0 if place == 0 else counts[place - 1]
    within = counts[place] - below
    part = (rank - below) / within if within > 0 else 1.0
    return float(low + (bounds[place] - low) * part)


def _by_quantile(members: Sequence[_Member]) -> dict[str, float]:
    """Return the quantiles that a summary tells; of several models the greatest."""
    told: dict[str, float] = {}
    for one in members:
        share = _number(one.series.labels.get("quantile", ""))
        name = next((name for name, asked in _ASKED.items() if asked == share), None)
        if name is not None:
            told[name] = max(told.get(name, 0.0), _mean(one.series))
    return told


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
