"""What servers of models count over a stretch of time, and what benchmarks of servers report."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.profile.kinds import JobKind
from planner.profile.trials import Latency, Serving
from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.pods import pods
from telemetry.profiling.window import durations, usual_interval
from telemetry.readers import series
from telemetry.readers.column_names import csv_cells
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents, float_of, mapping_of, mappings_in, number_of
from telemetry.readers.series import SampledSeries
from telemetry.recording.recording import Recording, Served
from telemetry.serving_metrics import FRAMEWORKS, NAMES, RANKS, MetricName, metric_of, stem

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_DIGITS = 6


def recording_by_job(
    builder: RecordingBuilder,
    members: Iterable[SampledSeries],
    hints: Hints,
    *,
    clocked: bool = True,
    **more: Any,  # noqa: ANN401 - the other fields of a Recording
) -> Recording:
    """Return the recording of series by job in place of pod, with what servers among them reported.

    Args:
        builder: where rows and figures are counted.
        members: series of any metrics, in any order.
        hints: `map` names metrics that the table does not know.
        clocked: whether their times are known.
        **more: fields of `Recording`.

    Raises:
        InputError: none of the series is a GPU metric, and none is of a server of models.
    """
    by_job, labels, notes = pods(members, hints.job_label)
    builder.notes += notes
    return series.recording(
        builder,
        by_job,
        hints,
        served=served(by_job, clocked=clocked),
        of_servers=frozenset(m.name for m in by_job if metric_of(m.name, m.labels)),
        labels=labels,
        **more,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One series of a server."""

    name: str
    metric: MetricName
    series: SampledSeries


def served(members: Iterable[SampledSeries], *, clocked: bool = True) -> tuple[Served, ...]:
    """Return what the servers among the series reported, one value a job, by its name.

    Counters count from one reading to the next (a restart begins at 0 again). A single reading says
    what is running and waiting now, and latencies since the server's start; it has no rates.

    Args:
        members: series of any metrics; those of no server are passed over.
        clocked: whether their times are metric.
    """
    jobs: dict[tuple[str, str], list[_Member]] = defaultdict(list)
    for member in members:
        named = metric_of(member.name, member.labels)
        finite = np.isfinite(member.readings) & np.isfinite(member.t_s)
        if named is not None and finite.any():
            server, name, metric = named
            points = replace(member, t_s=member.t_s[finite], readings=member.readings[finite])
            # The name of a scrape says nothing of the GPU's job.
            pod = member.labels.get("exported_pod") or member.labels.get("pod") or ""
            jobs[server, pod].append(_Member(name=name, metric=metric, series=points))
    return tuple(
        _server(server, job, series_of_job, clocked=clocked)
        for (server, job), series_of_job in sorted(jobs.items(), key=lambda item: item[0])
    )


def _server(server: str, job: str, members: Sequence[_Member], *, clocked: bool) -> Served:
    parts = _by_part(server, members)
    times = np.concatenate([member.series.t_s for member in members])
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

    models = {member.series.labels.get("model_name") for member in members} - {None}
    serving = Serving(
        model=models.pop() if len(models) == 1 else None,
        kv_cache_fraction=_share(parts.get("cache", ())),
        requests_running=_sum_of_means(parts.get("running", ())),
        requests_waiting=_sum_of_means(parts.get("waiting", ())),
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
    stems = {stem(member.name) for member in members}
    chosen: dict[str, str] = {}
    for name, metric in NAMES[server].items():
        if stem(name) in stems:
            chosen.setdefault(metric.part, stem(name))
    parts: dict[str, list[_Member]] = defaultdict(list)
    for member in members:
        if chosen.get(member.metric.part, stem(member.name)) == stem(member.name):
            parts[member.metric.part].append(member)
    return dict(parts)


def _ending(members: Sequence[_Member], end: str) -> list[_Member]:
    return [member for member in members if member.name.endswith(end)]


def _rate(count: float | None, length_s: float) -> float | None:
    return None if count is None or length_s <= 0 else round(count / length_s, _DIGITS)


def _copies(members: Sequence[_Member], inner: Sequence[str] = RANKS) -> list[list[SampledSeries]]:
    """Return the series by their labels without those of parts of one server."""
    copies: dict[tuple[tuple[str, str], ...], list[SampledSeries]] = defaultdict(list)
    for member in members:
        labels = ((k, v) for k, v in member.series.labels.items() if k not in inner)
        copies[tuple(sorted(labels))].append(member.series)
    return list(copies.values())


def _mean(member: SampledSeries) -> float:
    return float(np.average(member.readings, weights=durations(member.t_s)))


def _means(members: Sequence[_Member]) -> list[float]:
    """Return the mean over time of each copy; of its ranks and processes the greatest.

    Of the processes of one vLLM (`--api-server-count`) one holds a gauge; the others say 0.
    """
    return [max(_mean(member) for member in parts) for parts in _copies(members, (*RANKS, "pid"))]


def _sum_of_means(members: Sequence[_Member]) -> float | None:
    return round(sum(_means(members)), _DIGITS) if members else None


def _share(members: Sequence[_Member]) -> float | None:
    means = [mean for mean in _means(members) if 0 <= mean <= 1]
    return round(sum(means) / len(means), _DIGITS) if means else None


def _increase(member: SampledSeries) -> float:
    """Return how far a counter counted; member that fell began at 0 again."""
    steps = np.diff(member.readings)
    return float(np.where(steps < 0, member.readings[1:], steps).sum())


def _counted(members: Sequence[_Member]) -> float | None:
    if not members:
        return None
    return sum(max(_increase(member) for member in ranks) for ranks in _copies(members))


def _latency(members: Sequence[_Member], *, several: bool, notes: list[str]) -> Latency | None:
    """Return a latency by its histogram, else by the quantiles that a server tells itself."""
    to_ms = members[0].metric.to_ms if members else 1.0
    buckets = _ending(members, "_bucket")
    quantiles, edges = (
        _by_histogram(buckets, several=several) if buckets else (_by_quantile(members), [])
    )
    timed, total = (_total(_ending(members, end), several=several) for end in ("_count", "_sum"))
    if timed and total is not None:
        quantiles["mean"] = total / timed
    elif not quantiles:
        return None
    if buckets and not all(name in quantiles for name in _QUANTILES):
        longest = max(_bounds(buckets), default=0.0) * to_ms
        metric = stem(buckets[0].name)
        notes.append(Message("read.longer-than-histogram", metric=metric, ms=longest))
    if not several:
        notes.append(Message("read.since-start", metric=stem(members[0].name)))
    figures = {name: round(value * to_ms, _DIGITS) for name, value in quantiles.items()}
    return Latency.of(figures, tuple(round(edge * to_ms, _DIGITS) for edge in edges))


def _mean_of(total: Sequence[_Member], answered: float | None) -> Latency | None:
    """Return the mean of what is told in sum; its quantiles are unmetric."""
    spent = _counted(total)
    if spent is None or not answered:
        return None
    return Latency(mean=round(spent / answered * total[0].metric.to_ms, _DIGITS))


def _total(members: Sequence[_Member], *, several: bool) -> float | None:
    if several or not members:
        return _counted(members)
    return float(sum(member.series.readings[-1] for member in members))


def _bounds(buckets: Sequence[_Member]) -> list[float]:
    bounds = (float_of(member.series.labels.get("le", "")) for member in buckets)
    return sorted({bound for bound in bounds if bound is not None and np.isfinite(bound)})


def _by_histogram(
    buckets: Sequence[_Member], *, several: bool
) -> tuple[dict[str, float], list[float]]:
    """Return quantiles, and the bounds of the buckets that they are in.

    Inside a bucket they are on a straight line as in Prometheus' `histogram_quantile`; one beyond
    the last bound is left out.
    """
    count: dict[float, float] = defaultdict(float)
    for member in buckets:
        bound = float_of(member.series.labels.get("le", ""))
        if bound is not None:
            count[bound] += (
                _increase(member.series) if several else float(member.series.readings[-1])
            )
    bounds = sorted(count)
    counts: list[float] = np.maximum.accumulate([count[bound] for bound in bounds]).tolist()
    if not counts or counts[-1] <= 0:
        return {}, []
    quantiles, edges = dict[str, float](), set[float]()
    for name, share in _QUANTILES.items():
        bucket = int(np.searchsorted(counts, share * counts[-1]))
        if np.isfinite(bounds[bucket]):
            low, below = (bounds[bucket - 1], counts[bucket - 1]) if bucket else (0.0, 0.0)
            within = counts[bucket] - below
            part = (share * counts[-1] - below) / within if within > 0 else 1.0
            quantiles[name] = float(low + (bounds[bucket] - low) * part)
            edges |= {low, bounds[bucket]}
    return quantiles, sorted(edges)


def _by_quantile(members: Sequence[_Member]) -> dict[str, float]:
    """Return the quantiles that a summary tells; of several models the greatest."""
    quantiles: dict[str, float] = {}
    for member in members:
        share = float_of(member.series.labels.get("quantile", ""))
        name = next((name for name, quantile in _QUANTILES.items() if quantile == share), None)
        if name is not None:
            quantiles[name] = max(quantiles.get(name, 0.0), _mean(member.series))
    return quantiles


_LOAD = "the load is a benchmark's ({load}): what it takes to serve your users may differ."
_P = {"mean": ("mean", "avg"), "p50": ("median", "p50"), "p95": ("p95",), "p99": ("p99",)}
_MS_A_S = 1000.0


def read_benchmark(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the last result of `vllm bench` (serve, throughput, latency) or `bench_serving`.

    Names are those of vLLM 0.6 to 0.11 and SGLang 0.5; vLLM appends results to one file. The load
    is the benchmark's: what users will ask for is another matter, and a note says so.

    Raises:
        InputError: no result of a benchmark is in it, or its length is missing.
    """
    results = documents(builder)
    builder.rows_read += len(results)
    if len(results) > 1:
        builder.dropped["result before the last one"] += len(results) - 1
        builder.notes.append(f"{len(results)} results are in it; the last one is read.")
    result = results[-1]
    if guide := mappings_in(result.get("benchmarks")):
        runs = [run for item in guide if (run := _guidellm_run(item)) is not None]
        if len(runs) > 1:
            builder.notes.append(f"{len(runs)} loads are in it; the last one is read.")
        run = runs[-1] if runs else None
    else:
        run = _latency_run(result) or _throughput_run(result) or _serve_run(result)
    if run is None:
        raise builder.empty_error()
    return builder.recording(series.no_samples(), (), served=(run,), absolute=False)


def _guidellm_run(item: Mapping[str, object]) -> Served | None:
    """Return one load of GuideLLM (0.3 to 0.5); figures of requests that succeeded."""
    metrics = mapping_of(item.get("metrics"))

    def figures(name: str) -> Mapping[str, object]:
        figure = mapping_of(metrics.get(name))
        return mapping_of(figure.get("successful", figure))

    def latency(name: str, scale: float = 1.0) -> Latency | None:
        return _latency_of({**figures(name), **mapping_of(figures(name).get("percentiles"))}, scale)

    rate, tokens = (
        _figure(figures(name), "mean")
        for name in ("requests_per_second", "output_tokens_per_second")
    )
    if rate is None and tokens is None:
        return None
    length, done = _figure(item, "duration") or 0.0, rate if tokens is None else tokens
    strategy = mapping_of(mapping_of(item.get("config")).get("strategy"))
    model = mapping_of(item.get("worker")).get("backend_model")
    prompt, answer = (
        _figure(figures(f"{side}_token_count"), "mean") for side in ("prompt", "output")
    )
    if rate is not None and answer is not None:
        tokens = rate * answer  # of requests that ended; the figure a second is of the whole run
    load = " ".join(str(value) for value in strategy.values()) or "not told"
    return replace(
        _run(length),
        serving=Serving(
            model=model if isinstance(model, str) else None,
            prompt_tokens_per_s=None if None in (rate, prompt) else (rate or 0.0) * (prompt or 0.0),
            generated_tokens_per_s=tokens,
            all_at_once=strategy.get("type_") == "throughput" or None,
            first_token_ms=latency("time_to_first_token_ms"),
            token_ms=latency("inter_token_latency_ms"),
        ),
        requests_per_s=rate,
        latency_ms=latency("request_latency", _MS_A_S),
        unit="request" if tokens is None else "token",
        done=round(length * done, _DIGITS) if length and done is not None else None,
        notes=(_LOAD.format(load=load),),
    )


def read_genai_perf(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the figures of GenAI-Perf and AIPerf: their tables, or their JSON.

    Raises:
        InputError: no rate of requests or tokens is in it.
    """
    result = documents(builder)[0] if builder.text.lstrip().startswith("{") else {}
    figures = _figures_of_table(builder) | {name: mapping_of(v) for name, v in result.items()}
    mean = {name: _figure(row, "avg") for name, row in figures.items()}
    tokens, answered = mean.get("output_token_throughput"), mean.get("request_throughput")
    if tokens is None and answered is None:
        raise InputError(f"{builder.name}: {builder.empty}")

    def latency(name: str) -> Latency | None:
        row = figures.get(name, {})
        return _latency_of(row, 1e-6 if row.get("unit") == "ns" else 1.0)

    prompt, config = mean.get("input_sequence_length"), figures.get("input_config", {})
    models = mapping_of(config.get("endpoint")).get("model_names", config.get("model"))
    model = models[0] if isinstance(models, list) and models else models
    run = replace(
        _run(),
        serving=Serving(
            model=model if isinstance(model, str) else None,
            prompt_tokens_per_s=prompt * answered if prompt and answered else None,
            generated_tokens_per_s=tokens,
            first_token_ms=latency("time_to_first_token"),
            token_ms=latency("inter_token_latency"),
        ),
        requests_per_s=answered,
        latency_ms=latency("request_latency"),
        notes=(_LOAD.format(load="see its command"),),
    )
    return builder.recording(series.no_samples(), (), served=(run,), absolute=False)


def _figures_of_table(builder: RecordingBuilder) -> dict[str, dict[str, object]]:
    """Return the rows of tables of metrics, named as in their JSON; a single value as the mean."""
    figures: dict[str, dict[str, object]] = {}
    header: list[str] = []
    for line in builder.text.splitlines():
        metric, *cells = [cell.lower() for cell in csv_cells(line)] or [""]
        if metric == "metric":
            header = ["avg" if cell == "value" else cell for cell in cells]
        elif metric and cells and header:
            builder.rows_read += 1
            name, unit = metric.rstrip(")").partition(" (")[::2]
            numbers = (float_of(cell.replace(",", "")) for cell in cells)
            row = dict(zip(header, numbers, strict=False))
            figures[name.replace(" ", "_")] = {**row, "unit": unit}
    return figures


def _serve_run(result: Mapping[str, object]) -> Served | None:
    length, answered = _figure(result, "duration"), _figure(result, "completed")
    if length is None or answered is None or length <= 0:
        return None
    generated = _figure(result, "total_output_tokens")
    rate, at_a_time = result.get("request_rate"), _figure(result, "max_concurrency")
    model = result.get("model_id")
    load = f"{rate} requests a second" if rate not in (None, "inf") else "all requests at once"
    load += "" if at_a_time is None else f", at most {at_a_time:g} at a time"
    failed = _figure(result, "failed")
    return replace(
        _run(length, result),
        serving=Serving(
            model=model if isinstance(model, str) and model else None,
            prompt_tokens_per_s=_rate(_figure(result, "total_input_tokens"), length),
            generated_tokens_per_s=_rate(generated, length),
            failures_per_s=_rate(failed, length),
            all_at_once=(str(rate) == "inf" and at_a_time is None) or None,
            first_token_ms=_latency_of(result, form="{}_ttft_ms")
            or _measured(_numbers(result.get("ttfts"))),
            token_ms=_latency_of(result, form="{}_tpot_ms")
            or _latency_of(result, form="{}_itl_ms"),
        ),
        requests_per_s=_rate(answered, length),
        latency_ms=_latency_of(result, form="{}_e2el_ms")
        or _latency_of(result, form="{}_e2e_latency_ms")
        or _measured(_e2e_ms(result)),
        unit="request" if generated is None else "token",
        done=answered if generated is None else generated,
        notes=(_LOAD.format(load=load),),
    )


def _throughput_run(result: Mapping[str, object]) -> Served | None:
    length, tokens = _figure(result, "elapsed_time"), _figure(result, "total_num_tokens")
    if length is None or tokens is None or length <= 0:
        return None
    return replace(
        _run(length, result),
        kind=JobKind.INFERENCE_OFFLINE,
        requests_per_s=_rate(_figure(result, "num_requests"), length),
        done=tokens,
        notes=("tokens are those of prompts and answers together.",),
    )


def _latency_run(result: Mapping[str, object]) -> Served | None:
    latencies = _numbers(result.get("latencies"))
    if not latencies or _figure(result, "avg_latency") is None:
        return None
    return replace(
        _run(sum(latencies), result),
        latency_ms=_measured(latencies),
        unit="request",
        notes=("latency is of a whole batch, one batch at a time (`vllm bench latency`).",),
    )


def _run(length_s: float = 0.0, result: Mapping[str, object] | None = None) -> Served:
    """Return what is known of a run of so many seconds whose figures come once."""
    server = "" if result is None else f"{result.get('backend')} {result.get('endpoint_type')}"
    named = next((name for name in ("sglang", "tgi", "lmdeploy") if name in server), "vllm")
    return Served(
        framework=None if result is None else named,
        kind=JobKind.INFERENCE_ONLINE,
        length_s=length_s,
        interval_s=length_s or None,
        points=1,
    )


def _latency_of(
    result: Mapping[str, object], to_ms: float = 1.0, *, form: str = "{}"
) -> Latency | None:
    """Return mean and percentiles under names such as `p99` or, by a form, `p99_ttft_ms`."""
    named = {
        part: value * to_ms
        for part, words in _P.items()
        for word in words
        if (value := _figure(result, form.format(word))) is not None
    }
    return Latency.of(named) if any(named.values()) else None


def _e2e_ms(result: Mapping[str, object]) -> list[float]:
    """Return how long each request took: its first token, and the pauses between the others."""
    pauses, firsts = result.get("itls"), _numbers(result.get("ttfts"))
    if not isinstance(pauses, list) or len(pauses) != len(firsts):
        return []
    totals = [first + sum(_numbers(waits)) for first, waits in zip(firsts, pauses, strict=True)]
    return [total for total in totals if total > 0]


def _measured(seconds: Iterable[float]) -> Latency | None:
    values = np.array([value for value in seconds if value > 0]) * _MS_A_S
    if not len(values):
        return None
    percentiles = {
        "mean": values.mean(),
        **{f"p{p}": np.percentile(values, p) for p in (50, 95, 99)},
    }
    return Latency.of({part: round(float(value), _DIGITS) for part, value in percentiles.items()})


def _numbers(values: object) -> list[float]:
    """Return the numbers of a JSON array; none for anything else."""
    listed = values if isinstance(values, list) else []
    return [number for value in listed if (number := number_of(value)) is not None]


def _figure(result: Mapping[str, object], name: str) -> float | None:
    value = number_of(result.get(name))
    return value if value is not None and value >= 0 else None
