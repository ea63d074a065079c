"""The names under which servers of models count, and what their counts say over a stretch of time.

Names are those of the documentation of vLLM 0.3 to 0.11, SGLang 0.5, Triton 2.60 and TGI 3. A
prefix in front of them (`ray_`, `kserve_`) and `_` in place of `:` are known, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.profile.kinds import JobKind
from planner.profile.serving import Latency, Serving
from planner.telemetry.profiling.statistics import durations, usual_interval
from planner.telemetry.recording.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.telemetry.parsing.series import SampledSeries

FRAMEWORKS = {"vllm": "vllm", "sglang": "sglang", "nv_inference": "triton", "tgi": "tgi"}
_SERVER = re.compile(rf"(?:^|[_:])({'|'.join(FRAMEWORKS)})[:_](\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """What a name holds: a part of what is served, and the factor to milliseconds of a time."""

    part: str
    to_ms: float = 1.0


_S, _US = 1e3, 1e-3
_ENDS = ("_bucket", "_sum", "_count")


def _gauges(**parts: str) -> dict[str, _Name]:
    """Return rows for parts and their names, words."""
    return {name: _Name(part=part) for part, names in parts.items() for name in names.split()}


def _times(to_ms: float, **parts: str) -> dict[str, _Name]:
    """Return rows for histograms and summaries, with the endings that their series have."""
    return {
        name + end: _Name(part=part, to_ms=to_ms)
        for part, names in parts.items()
        for name in names.split()
        for end in ("", *_ENDS)
    }


# A share of the cache counts to 1 though its name ends in `perc`. Of names that mean one part, as
# those of older versions, the first that is there counts.
NAMES: Mapping[str, Mapping[str, _Name]] = {
    "vllm": {
        **_gauges(
            running="num_requests_running",
            waiting="num_requests_waiting",
            cache="kv_cache_usage_perc gpu_cache_usage_perc",
            preempted="num_preemptions_total num_preemptions",
            answered="request_success_total request_success",
            prompt="prompt_tokens_total prompt_tokens",
            generated="generation_tokens_total generation_tokens",
        ),
        **_times(
            _S,
            latency="e2e_request_latency_seconds",
            queue="request_queue_time_seconds",
            first="time_to_first_token_seconds",
            each="inter_token_latency_seconds time_per_output_token_seconds",
        ),
    },
    "sglang": {
        **_gauges(
            running="num_running_reqs",
            waiting="num_queue_reqs",
            cache="token_usage",
            answered="num_requests_total",
            failed="num_aborted_requests_total",
            prompt="prompt_tokens_total",
            generated="generation_tokens_total",
        ),
        **_times(
            _S,
            latency="e2e_request_latency_seconds",
            queue="queue_time_seconds",
            first="time_to_first_token_seconds",
            each="inter_token_latency_seconds time_per_output_token_seconds",
        ),
    },
    "nv_inference": {
        **_gauges(
            waiting="pending_request_count", answered="request_success", failed="request_failure"
        ),
        **_times(_US, latency="request_summary_us", queue="queue_summary_us"),
    },
    "tgi": {
        **_gauges(
            running="batch_current_size",
            waiting="queue_size",
            answered="request_success_total request_success",
            failed="request_failure_total request_failure",
            generated="request_generated_tokens_sum",
            prompt="request_input_length_sum",
        ),
        **_times(
            _S,
            latency="request_duration",
            queue="request_queue_duration",
            each="request_mean_time_per_token_duration",
        ),
    },
}
# Ranks of one engine tell the same figure; copies of a server add up.
_RANKS = ("tp_rank", "pp_rank", "dp_rank", "moe_ep_rank")
_ASKED = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One series of a server."""

    name: str
    known: _Name
    series: SampledSeries


def server_of(name: str) -> tuple[str, str] | None:
    """Return the server and the name that a metric has there, None for a metric of no server."""
    found = _SERVER.search(name.lower())
    if found is None or found[2] not in NAMES[found[1]]:
        return None
    return found[1], found[2]


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
        known = server_of(one.name)
        finite = np.isfinite(one.readings) & np.isfinite(one.t_s)
        if known is not None and finite.any():
            kept = replace(one, t_s=one.t_s[finite], readings=one.readings[finite])
            member = _Member(name=known[1], known=NAMES[known[0]][known[1]], series=kept)
            jobs[known[0], one.job or ""].append(member)
    return tuple(
        _one_server(server, job, members, clocked=clocked)
        for (server, job), members in sorted(jobs.items(), key=lambda item: item[0])
    )


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
    stems = {_stem(one.name) for one in members}
    chosen: dict[str, str] = {}
    for name, known in NAMES[server].items():
        if _stem(name) in stems:
            chosen.setdefault(known.part, _stem(name))
    parts: dict[str, list[_Member]] = defaultdict(list)
    for one in members:
        if chosen[one.known.part] == _stem(one.name):
            parts[one.known.part].append(one)
    return dict(parts)


def _stem(name: str) -> str:
    end = next((end for end in _ENDS if name.endswith(end)), "")
    return name.removesuffix(end)


def _ending(members: Sequence[_Member], end: str) -> list[_Member]:
    return [one for one in members if one.name.endswith(end)]


def _rate(count: float | None, length_s: float) -> float | None:
    return None if count is None or length_s <= 0 else round(count / length_s, _DIGITS)


def _copies(members: Sequence[_Member]) -> list[list[SampledSeries]]:
    """Return the series by their labels without ranks."""
    copies: dict[tuple[tuple[str, str], ...], list[SampledSeries]] = defaultdict(list)
    for one in members:
        labels = ((k, v) for k, v in one.series.labels.items() if k not in _RANKS)
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
            f"{_stem(buckets[0].name)}: some requests took longer than {longest:g} ms, the last "
            "bound of its histogram."
        )
    if not several:
        notes.append(
            f"{_stem(members[0].name)}: since the server's start, as one reading is given."
        )
    return Latency(**{name: round(value * to_ms, _DIGITS) for name, value in told.items()})


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
