"""Turns the samples of one job into its profile."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs
from numpy.typing import NDArray

from planner.profile import model
from planner.profile.codec import possible
from planner.profile.join import OTHERS_WORK, device_of
from planner.profile.kinds import GPU_OUT_OF_MEMORY, SLOTS, JobKind, Parallelism, kind_named
from pricing import hardware
from pricing.errors import InputError
from pricing.message import Message
from telemetry.profiling.doubts import RAN_OUT, Readings, doubts_of, lost
from telemetry.profiling.fill import labels_not_used
from telemetry.profiling.merge import hardware_of, slice_of
from telemetry.profiling.phases import HOST_WORKS, phases
from telemetry.profiling.steps import (
    server_of,
    step_of,
    window_of_steps,
    window_served,
    work_of,
    work_served,
)
from telemetry.profiling.window import (
    ActiveWindow,
    Columns,
    Points,
    Span,
    by_gpu,
    columns_of,
    durations,
    main_times,
    points_of,
    span_of,
    statistics,
    use_by_hour,
    window_over,
)
from telemetry.readers.hints import Hints
from telemetry.readers.payload import stem
from telemetry.readers.recording_builder import left_out
from telemetry.readers.units import HOST_UNITS
from telemetry.recording.observed import Observed
from telemetry.recording.recording import JobLabels, Recording, Served

_TIME, _GPU, _UTIL = "t_s", "gpu", "util.kernel_time"
_ENERGY, _ENERGY_COUNTER, _POWER = "energy.total_j", "counter.energy_j", "power.board_w"
_OF_MACHINE = "machine."
_CROWDED = 0.9  # of all cores: who wants one more waits for it
_THIRDS, _FEWEST_IN_THIRD = 3, 3
_LEAST_GROWTH = 0.01  # from third to third
_MEMORY_OVER_TOTAL = 1.05  # tools round, and count what the driver holds back
_MINOR = 0.5  # of what is in use: below this, most of it is others'


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the readings of a job's GPUs come to.

    Attributes:
        window: where statistics were taken.
        coverage: the share of it that samples cover.
        gpus: statistics of each GPU, in the order of the job's devices.
        phases: what the time went to.
        by_hour: how busy the GPUs were in each hour; None where that is not known.
        doubts: what is odd about the readings.
    """

    window: ActiveWindow
    coverage: float | None
    gpus: tuple[model.GpuReadings, ...]
    phases: tuple[model.Phase, ...] = ()
    by_hour: model.UseByHour | None = None
    doubts: tuple[str, ...] = ()


def build(merged: Recording, label: str | None, hints: Hints) -> model.Profile:
    """Return the profile of one job.

    Statistics are weighted by time over the active window; GPUs come in the order of
    `merged.gpus`. A single instant gives mean, min and max only, and a window without a duration.

    Args:
        merged: the job's readings.
        label: the job's name in the data, None where it has none.
        hints: what the sources do not say; the sources win.

    Raises:
        InputError: there is no reading of any GPU, host or server, and no step.
    """
    server = server_of(merged.served, label)
    merged = _without_impossible(_without_doubles(merged), hints)
    spans, about, points = [], Readings(), list[Points]()
    for key, rows in by_gpu(merged.samples):
        about.look_at(key, rows, merged.gpus)
        spans.append(span_of(rows))
        points.append(points_of(rows))
    has_work = merged.host is not None or server is not None or _steps_times(merged) is not None
    if not has_work and not about.slots:
        return _of_memory_error(merged, label, hints)
    window, clock = _active(merged, server, spans)
    gpus, shares = _gpus(merged, window, label, hints)
    shares = shares or ([] if clock is None else [_share(columns_of(clock), window)])
    has_shares = window.interval_s is not None and window.duration_s > 0 and shares
    coverage = round(float(np.mean(shares)), 6) if has_shares else None
    readings = Taken(
        window=window,
        coverage=coverage,
        gpus=gpus,
        phases=phases(merged) if merged.timed or hints.interval_s is not None else (),
        by_hour=use_by_hour(points) if merged.absolute else None,
        doubts=tuple(doubts_of(merged, (window, coverage), hints.interval_s, about)),
    )
    merged = replace(merged, health=(*merged.health, *lost(merged, about.gpus)))
    return assembled(merged, readings, label, hints)


def assembled(merged: Recording, readings: Taken, label: str | None, hints: Hints) -> model.Profile:
    """Return the profile of one job whose GPU readings have been worked on."""
    server, window = server_of(merged.served, label), readings.window
    hardware, notes = hardware_of(merged, hints)
    piece, of_slices = slice_of(merged.gpus, readings.gpus)
    measured = _window(merged, window, readings.coverage, hints)
    rated_s = window.whole_s - measured.idle_around_s
    own = merged.labels.get(label or "", JobLabels())
    hardware = structs.replace(hardware, slice=piece)
    work = _work(merged, window, hints, rated_s)
    if work is None and own.is_complete and window.whole_s > 0:
        work = model.Work(unit=model.RUN, done=1.0, total=1.0, rate_per_s=1.0 / window.whole_s)
    observed = merged.observed or Observed()
    host, machine = _host(merged, window), _machine(merged, window)
    profile = model.Profile(
        job=_job(merged, server, label, hints, readings.doubts),
        hardware=hardware,
        window=measured,
        work=work or work_served(server) or work_of(merged.observed, window),
        step=_step(merged, window),
        phases=readings.phases,
        by_hour=readings.by_hour,
        waits=observed.places,
        ranks=observed.ranks,
        changes=observed.changes,
        trace=observed.trace,
        run=observed.run,
        gpus=readings.gpus,
        health=merged.health,
        host=host,
        machine=machine,
        provenance=model.Provenance(
            sources=merged.sources,
            notes=(
                *merged.notes,
                *observed.notes,
                *(server.notes if server else ()),
                *notes,
                *of_slices,
                *([window.note] if window.note else []),
                *([Message("read.no-zone")] if merged.local_time and hints.tz is None else []),
                *readings.doubts,
                *_work_note(work, window, rated_s),
                *labels_not_used(own, hints),
                *_crowd_note(host, machine, hardware.cpu_cores),
            ),
        ),
    )
    return possible(profile)


def _of_memory_error(merged: Recording, label: str | None, hints: Hints) -> model.Profile:
    """Return the profile of a run of which only the error is left that memory ended it with.

    Raises:
        InputError: it is another source without readings, or the machine is not stated.
    """
    observed = merged.observed or Observed()
    if observed.ended is None or not (hints.machine or hints.gpu):
        raise InputError(nothing_left(merged.sources, merged.observed))
    in_use_gib, total_gib = observed.memory_at_end_gib or (None, None)
    gpu = model.GpuReadings(
        metrics={"mem.used_gib": model.Statistics(max=in_use_gib)} if in_use_gib else {}
    )
    return model.Profile(
        job=_job(merged, None, label, hints, ()),
        hardware=model.Hardware(gpu=hints.gpu, gpu_memory_gib=total_gib),
        gpus=(gpu,),
        provenance=model.Provenance(sources=merged.sources, notes=merged.notes),
    )


def _active(
    merged: Recording, server: Served | None, spans: Sequence[Span]
) -> tuple[ActiveWindow, pd.DataFrame | None]:
    """Return the active window, and the clock of a job without GPUs."""
    if server is not None and merged.host is None and not spans:
        return window_served(server), None
    clock = None if spans else _host_clock(merged)
    by_load = window_over(spans or [span_of(columns_of(_host_clock(merged)))], active=merged.active)
    times = merged.samples if clock is None else clock
    return window_of_steps(merged.observed, by_load, times[_TIME].to_numpy(float)), clock


def _job(
    merged: Recording, server: Served | None, label: str | None, hints: Hints, doubts: Sequence[str]
) -> model.Job:
    """Return the job: what was seen of it goes before what was said."""
    observed = merged.observed or Observed()
    served = server or Served()
    labels, job_labels = hints.job_labels, merged.labels.get(label or "", JobLabels())
    codes = {doubt.code for doubt in doubts if isinstance(doubt, Message)}
    ran_out = "gpu-out-of-memory-likely" if codes & RAN_OUT else None
    return model.Job(
        name=hints.name or label or observed.name or stem(str(merged.sources[0].path)),
        kind=JobKind(hints.kind or served.kind or observed.kind or kind_named(label)),
        framework=served.framework or observed.framework,
        precision=observed.precision or merged.settings.precision or hints.precision,
        batch_per_gpu=observed.batch_per_gpu or merged.settings.batch_per_gpu or hints.batch,
        parallelism=None if observed.parallelism is None else Parallelism(observed.parallelism),
        parameters=observed.parameters,
        ended=observed.ended or job_labels.ended or ran_out,
        serving=served.serving,
        latency_ms=served.latency_ms,
        requests_per_s=served.requests_per_s,
        team=job_labels.team or labels.get("team"),
        owner=job_labels.owner or labels.get("owner"),
        cost_center=job_labels.cost_center or labels.get("cost_center"),
    )


def _step(merged: Recording, window: ActiveWindow) -> model.Step | None:
    """Return where a step's time goes, with the loader's workers as the run was configured."""
    step, workers = step_of(merged.observed, window), merged.settings.loader_workers
    if workers is None or (step is not None and step.loader_workers is not None):
        return step
    return structs.replace(step or model.Step(), loader_workers=workers)


def nothing_left(sources: Iterable[model.Source], observed: Observed | None = None) -> str:
    """Return the sentence for sources of which no reading is left, but perhaps how it ended."""
    sources = tuple(sources)
    if observed is not None and observed.ended is not None:
        single = observed.batch_per_gpu == 1  # nothing to halve
        of_gpu = "gradient-checkpointing" if single else "smaller-batch"
        cure = of_gpu if observed.ended == GPU_OUT_OF_MEMORY else "less-host-memory"
        files = [str(source.path) for source in sources]
        return Message(f"read.only-{observed.ended}", files=files, cure=cure)
    reasons = sorted(
        f"{reason}: {count}"
        for source in sources
        if isinstance(source.dropped, dict)
        for reason, count in source.dropped.items()
    )
    names, why = [str(source.path) for source in sources], "; ".join(reasons)
    return Message("read.nothing-left", files=names, reasons=why or Message("read.no-rows"))


def _work_note(work: model.Work | None, window: ActiveWindow, rated_s: float) -> Iterator[str]:
    if work is not None and work.rate_per_s is not None and work.is_counted:
        code = "read.work-rate" if rated_s == window.whole_s else "read.work-rate-busy"
        yield Message(code, done=work.done or 0.0, unit=work.unit or "", whole=rated_s)


def _without_doubles(merged: Recording) -> Recording:
    """Return the readings without those of MIG instances that their device reports, too."""
    samples = merged.samples
    parts = {gpu.key: gpu for gpu in merged.gpus if gpu.partition is not None}
    if not parts:
        return merged
    samples, notes = samples.copy(), list(merged.notes)
    keys = samples[_GPU].astype(str)
    for part in sorted(key for key in parts if device_of(key) != key):
        full_device, own = samples[keys == device_of(part)], keys == part
        for slot in SLOTS:
            if slot in samples and full_device[slot].notna().any():
                busy = samples.loc[own, slot].mean() if slot == _UTIL else np.nan
                if np.isfinite(busy):
                    board = "" if parts[part].index is None else f"GPU {parts[part].index}, "
                    name = f"{board}{parts[part].partition}"
                    notes.append(f"{name}: busy {busy:.4g}; the whole GPU's own figure counts.")
                samples.loc[own, slot] = np.nan
    slots = [c for c in samples.columns if c not in (_TIME, _GPU, "job")]
    samples = samples.dropna(subset=slots, how="all").reset_index(drop=True)
    return replace(merged, samples=samples, notes=tuple(notes))


def _without_impossible(merged: Recording, hints: Hints) -> Recording:
    """Return the readings without memory that their GPU does not have: unknown, and told."""
    room_gib = {
        gpu.key: gpu.memory_gib or hardware.most_memory_gib(gpu.model or hints.gpu)
        for gpu in merged.gpus
        if gpu.partition is None
    }
    samples, notes = merged.samples, merged.notes
    for slot in sorted({"mem.used_gib", "mem.process_gib"} & {*samples}):
        read = samples[slot].astype(float)
        over = read > _MEMORY_OVER_TOTAL * samples[_GPU].map(room_gib).astype(float)
        if over.any():
            of, reason = int(read.notna().sum()), "above the device's memory"
            note = left_out(slot, int(over.sum()), of, reason)
            samples, notes = samples.assign(**{slot: read.mask(over)}), (*notes, note)
    return replace(merged, samples=samples, notes=notes)


def _host_clock(merged: Recording) -> pd.DataFrame:
    steps = _steps_times(merged)
    otherwise = pd.DataFrame({_TIME: []}) if steps is None else steps
    host = merged.host if merged.host is not None else otherwise
    return host[[_TIME]]


def _steps_times(merged: Recording) -> pd.DataFrame | None:
    steps = merged.observed.steps if merged.observed is not None else None
    return None if steps is None or not len(steps) else steps[[_TIME]]


def _share(rows: Columns, window: ActiveWindow) -> float:
    """Return the share of the window that samples of one device cover."""
    times = main_times(rows)
    covered_s = float(durations(times)[window.holds(times)].sum())
    return min(1.0, covered_s / window.duration_s) if window.duration_s > 0 else 0.0


def _window(
    merged: Recording, window: ActiveWindow, coverage: float | None, hints: Hints
) -> model.Window:
    snapshot = window.interval_s is None
    timed = merged.timed or hints.interval_s is not None
    before_s, after_s = _idle_around(merged, window) if timed else (0.0, 0.0)
    return model.Window(
        start=_instant(window.start_s) if merged.absolute else None,
        duration_s=None if snapshot else round(window.duration_s, 6),
        interval_s=None if window.interval_s is None else round(window.interval_s, 6),
        coverage=coverage,
        idle_before_s=round(before_s, 6) or None,
        idle_after_s=round(after_s, 6) or None,
    )


def _idle_around(merged: Recording, window: ActiveWindow) -> tuple[float, float]:
    """Return how long nothing ran before and after the job, seconds.

    While the host is seen to work something does; what comes before the first step is start-up.
    """
    before_s, after_s = window.idle_s
    host = merged.host
    if host is not None and "cpu_util" in host:
        host = host[host["cpu_util"].notna()]
        times, quiet = host[_TIME].to_numpy(float), host["cpu_util"].to_numpy(float) < HOST_WORKS
        before, after = quiet[times < window.start_s], quiet[times > window.end_s]
        before_s *= float(before.mean()) if len(before) else 1.0
        after_s *= float(after.mean()) if len(after) else 1.0
    return (0.0 if _steps_times(merged) is not None else before_s), after_s


def _instant(t_s: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(round(t_s, 3), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _work(
    merged: Recording, window: ActiveWindow, hints: Hints, rated_s: float
) -> model.Work | None:
    work = hints.work or merged.work
    if work is None:
        return None
    is_timed = window.interval_s is not None and (merged.timed or hints.interval_s is not None)
    rate = work[1] / rated_s if is_timed and rated_s > 0 else None
    return model.Work(
        unit=work[0], done=work[1], rate_per_s=None if rate is None else round(rate, 9)
    )


def _gpus(
    merged: Recording, window: ActiveWindow, label: str | None, hints: Hints
) -> tuple[tuple[model.GpuReadings, ...], list[float]]:
    """Return each GPU's statistics, and the shares of the window that their samples cover."""
    energy_known, summaries = merged.timed or hints.interval_s is not None, merged.summaries
    measured: dict[str, dict[str, model.Statistics]] = {}
    shares = []
    for key, rows in by_gpu(merged.samples):
        shares.append(_share(rows, window))
        stood = durations(rows[_TIME])
        measured[key] = metrics = {
            slot: figures
            for slot in SLOTS
            if slot in rows and slot != _ENERGY
            if (figures := _measured(rows[_TIME], rows[slot], window, stood)) is not None
        }
        energy = _energy(rows, window) if energy_known and window.interval_s is not None else None
        if energy is not None:
            metrics[_ENERGY] = model.Statistics(mean=energy, max=energy)
    return tuple(
        model.GpuReadings(
            index=gpu.index,
            uuid=gpu.uuid if gpu.partition is None or gpu.uuid is None else gpu.key,
            metrics={slot: own[slot] for slot in SLOTS if slot in own},
        )
        for gpu in merged.gpus
        for own in [measured.get(gpu.key, {}) | {**summaries.get((label or "", gpu.key), {})}]
    ), shares


def _measured(
    t_s: NDArray[np.float64],
    read: NDArray[np.float64],
    window: ActiveWindow,
    stood: NDArray[np.float64],
) -> model.Statistics | None:
    """Return statistics of one slot over the window, by the times at which it was read."""
    finite = np.isfinite(read)
    if not finite.all():
        t_s, read = t_s[finite], read[finite]
        stood = durations(t_s)
    if window.interval_s is not None:
        inside = window.holds(t_s)
        read, stood = read[inside], stood[inside]
    measured = statistics(read, stood)
    if measured is None or window.interval_s is not None:
        return measured
    return model.Statistics(mean=measured.mean, min=measured.min, max=measured.max)


def _energy(rows: Columns, window: ActiveWindow) -> float | None:
    """Return joules over the window: by the device's counter, else power times its time."""
    times = rows[_TIME]
    inside = window.holds(times)
    if _ENERGY_COUNTER in rows:
        count = rows[_ENERGY_COUNTER][inside]
        count = count[np.isfinite(count)]
        if len(count) > 1:
            steps = np.diff(count)
            # A counter that fell was reset with the driver: it counts from 0 again.
            return round(float(np.where(steps < 0, count[1:], steps).sum()), 3)
    if _POWER not in rows:
        return None
    power = rows[_POWER]
    finite = np.isfinite(power)
    joules = (power[finite] * durations(times[finite]))[inside[finite]]
    return round(float(joules.sum()), 3) if len(joules) else None


def _host(merged: Recording, window: ActiveWindow) -> model.Host | None:
    figures = _of_host(merged, window, "", (name.removeprefix("host.") for name in HOST_UNITS))
    if not any(figures.values()):
        return None
    return model.Host(**figures, ram_growth_gib_per_h=_growth(merged.host, window))


def _growth(host: pd.DataFrame | None, window: ActiveWindow) -> model.Statistics | None:
    """Return how fast host memory grows, GiB an hour; None where it does not, or levels off.

    It must grow in each third of the window, by more than readings scatter, and in the last third
    at least half as fast as in the middle one: a cache that fills does not.
    """
    if host is None or "ram_used_gib" not in host:
        return None
    rows = host[host["ram_used_gib"].notna() & window.holds(host[_TIME].to_numpy(dtype=float))]
    parts = np.array_split(rows[[_TIME, "ram_used_gib"]].to_numpy(dtype=float), _THIRDS)
    if min(map(len, parts)) < _FEWEST_IN_THIRD or not all(np.ptp(part[:, 0]) for part in parts):
        return None
    lines = [np.polyfit(part[:, 0] - part[0, 0], part[:, 1], 1) for part in parts]
    scatter = max(
        float(np.std(part[:, 1] - np.polyval(line, part[:, 0] - part[0, 0])))
        for part, line in zip(parts, lines, strict=True)
    )
    means = [float(part[:, 1].mean()) for part in parts]
    threshold = max(3.0 * scatter, _LEAST_GROWTH * means[0])
    grows = all(later - earlier > threshold for earlier, later in pairwise(means))
    if not grows or lines[-1][0] < 0.5 * lines[1][0]:
        return None
    return model.Statistics(mean=round(float(lines[-1][0]) * 3600.0, 3))


def _machine(merged: Recording, window: ActiveWindow) -> model.Machine | None:
    names = ("cpu_util", "ram_used_gib", "net_rx_mib_s", "net_tx_mib_s")
    figures = _of_host(merged, window, _OF_MACHINE, names)
    machine = merged.observed.machine if merged.observed else None
    if machine is None and not any(figures.values()):
        return None
    return structs.replace(machine or model.Machine(), **figures)


def _of_host(
    merged: Recording, window: ActiveWindow, prefix: str, names: Iterable[str]
) -> dict[str, Any]:
    host = merged.host
    if host is None:
        return {}
    columns = columns_of(host)
    stood = durations(columns[_TIME])
    return {
        name: _measured(columns[_TIME], columns[f"{prefix}{name}"], window, stood)
        for name in names
        if f"{prefix}{name}" in columns
    }


def _crowd_note(
    host: model.Host | None, machine: model.Machine | None, cores: float | None
) -> Iterator[str]:
    """Yield a note on others' work: not a cause in the job, but it slows what is measured."""
    total = machine.cpu_util.typical if machine and machine.cpu_util else None
    own = host.cpu_util.typical if host and host.cpu_util else None
    if total is None or own is None or machine is None or not machine.cpu_cores or not cores:
        return
    share = own * cores / machine.cpu_cores
    if total >= _CROWDED and share < _MINOR * total:
        yield (
            f"the machine's cores were {total:.0%} busy, {share:.0%} with this job: {OTHERS_WORK}"
        )
