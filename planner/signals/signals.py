"""The numbers and words that the diagnosis looks at, each derived from a profile in one place.

A signal that was not measured is None, and no test on it can hold.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter, methodcaller
from types import MappingProxyType

from planner.models.communication import link_class
from planner.models.gpu_speed import serves_language_model
from planner.models.input_pipeline import MOST_WORKERS
from planner.profile.frameworks import decodes, family, preallocates, program
from planner.profile.model import Profile
from planner.profile.source import at_work, memory_room_gib, named_gpu, slice_named
from planner.serving.measured_service import fuller_batch
from planner.signals import program_places as places
from planner.signals import thresholds
from planner.signals.compute_share import arithmetic, cores_left, reading_cores
from planner.signals.condition import Signal, Value, named
from pricing import hardware
from pricing.hardware import is_consumer
from pricing.message import Message, save

# Share of the time in which a GPU must be idle at a quantile for that quantile to count as idle.
_IDLE_BELOW = 0.05
# A server that takes a fixed share of the memory takes 0.75 (JAX) to 0.95; it is constant then.
_PREALLOCATED, _STEADY = 0.7, 0.95
# Bytes of a weight; NVFP4 has an FP8 scale beside each 16 numbers of 4 bits.
_BYTES_A_WEIGHT = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.56}
_AT_LIMIT = 0.9  # of the power that is set: boards that run into it read a few percent less
_PEAK_OVER_MEAN = 2.0  # of the cache in use; our estimate
_RUNTIME_GIB = 2.0  # CUDA context, graphs and buffers of a server; our estimate
DAY_H, WEEK_H = 24, 168
_NIGHT_H = 8
_ONE_INSTANT = Message("cause.one-instant")
_OF_EVERY_GPU = (
    "gpus.",
    "hardware.gpu_count",
    "health.",
    "util.kernel_time.spread",
    "util.kernel_time.least",
    "util.kernel_time.most",
)
"""Beginnings of the names of signals that are read from GPUs at rest, too."""
_QUANTILES = (("p99", 0.99), ("p95", 0.95), ("p90", 0.90), ("p75", 0.75), ("p50", 0.50))


def read_signals(
    profile: Profile, machine: Mapping[str, Value] = MappingProxyType({})
) -> Mapping[str, Value]:
    """Return every signal of the profile by name; None where it was not measured.

    A GPU that rests beside others at work keeps nobody waiting: how busy a GPU is, and what it
    waits for, is of those that work. What compares the GPUs, and their health, is of all.

    Args:
        profile: what was measured.
        machine: signals of its machine and its bill that the profile cannot hold.
    """
    working = at_work(profile)
    read = {
        name: signal.read(profile if name.startswith(_OF_EVERY_GPU) else working)
        for name, signal in SIGNALS.items()
    }
    return MappingProxyType({**read, **machine})


def too_little_read(profile: Profile) -> Message | None:
    """Return why what was read is not enough for a verdict; None where it is.

    One instant, or fewer readings of the GPU (and steps) than a mean needs, in less time than a
    usual pause takes; or hardly more than a start.
    """
    window, step = profile.window, profile.step
    if window is not None and (share := places.start_up_alone(profile)) is not None:
        whole_min = window.recorded_s / 60.0
        return Message(
            "cause.mostly-start-up", share=share, start=share * whole_min, whole=whole_min
        )
    if not profile.provenance.sources:
        return None
    if window is None or window.duration_s is None:
        return _ONE_INSTANT
    recorded_s, is_counted = window.recorded_s, profile.job.serving is not None
    if is_counted or not window.interval_s or recorded_s >= thresholds.LONG_PAUSE_S:
        return None
    count = max(round(recorded_s / window.interval_s), (step and step.count) or 0)
    too_few = count < thresholds.FEWEST_READINGS
    return Message("cause.too-short", duration_s=recorded_s) if too_few else None


def verdict_doubt(profile: Profile) -> Message | None:
    """Return why no verdict is sure: too little read, or a service at rest for part of a day."""
    window, busy = profile.window, profile.busy_fraction
    if (why := too_little_read(profile)) is not None or window is None or busy is None:
        return why
    rests = profile.job.kind.answers and busy < thresholds.IDLE
    is_part = rests and window.recorded_s + (window.interval_s or 0.0) < thresholds.DAY_S
    return Message("cause.part-of-day", hours=window.recorded_s / 3600) if is_part else None


def saw_one_instant(profile: Profile) -> bool:
    """Return whether all that was read is one instant: it shows what is there, not how busy."""
    why = too_little_read(profile)
    return why is not None and why.code == _ONE_INSTANT.code


def saw_no_gpu(profile: Profile) -> bool:
    """Return whether the job was measured without a look at a GPU; it may have run on the CPU."""
    return bool(profile.provenance.sources) and not profile.gpus


def _is_noted(profile: Profile, code: str) -> bool:
    """Return whether a note on the data, or a part of one, has a code."""
    notes = save(note for note in profile.provenance.notes if isinstance(note, Message))
    return any(message.code == code for message in notes.values())


def _share(part: float | None, total: float | None) -> float | None:
    return None if part is None or not total else part / total


def _ratio(
    part: Callable[[Profile], float | None], total: Callable[[Profile], float | None]
) -> Callable[[Profile], float | None]:
    return lambda p: _share(part(p), total(p))


def _memory_held_gib(profile: Profile) -> float | None:
    """Return the most that the job held on one GPU; where that is not told apart, that all held."""
    own = profile.peak("mem.process_gib")
    return own if own is not None else profile.peak("mem.used_gib")


_memory_share = _ratio(_memory_held_gib, memory_room_gib)


def _memory_claimed(profile: Profile) -> float | None:
    """Return the memory that the job keeps from others, of its GPU's; None where it hardly runs."""
    mean, peak = profile.busy_fraction, _quantile("p95")(profile)
    if (mean is not None and mean < _IDLE_BELOW) or (peak is not None and peak < thresholds.LOW):
        return None
    return _share(memory_need_gib(profile) or _memory_held_gib(profile), memory_room_gib(profile))


def _memory_change_gib(profile: Profile) -> float | None:
    """Return by how much the memory held on a GPU changed, at most, GiB; its ends left out."""
    bounds = [(s.p05, s.p95) for s in profile.readings("mem.used_gib")]
    return max((b - a for a, b in bounds if a is not None and b is not None), default=None)


def _power_share(profile: Profile) -> float | None:
    gpu = named_gpu(profile)
    limit = profile.mean("power.limit_w") or (gpu.tdp_w if gpu else None)
    return _share(profile.mean("power.board_w"), limit)


def _power_over_rest(profile: Profile) -> float | None:
    """Return the power over that of a board whose context is open and runs no kernel.

    None where utilization reads above 0: kernels that were seen draw power, too. Where nobody has
    published that power it is taken as high as any board's: `thresholds.CONTEXT_OVER_IDLE` times
    its idle power, else `thresholds.IDLE_POWER` of its limit.
    """
    busiest, gpu = max(_busy_by_gpu(profile), default=1.0), named_gpu(profile)
    if busiest >= thresholds.NEVER or gpu is None:
        return None
    rest_w = gpu.context_idle_w or (gpu.idle_w or 0.0) * thresholds.CONTEXT_OVER_IDLE
    highest = _power_share(profile)
    if not rest_w:
        return highest and highest / thresholds.IDLE_POWER
    return _share(profile.mean("power.board_w"), rest_w)


def _gpu(figure: str) -> Callable[[Profile], float | None]:
    """Return what the table says of the GPU."""
    return lambda p: getattr(named_gpu(p), figure, None)


def weights_gib(profile: Profile) -> float | None:
    """Return what a copy of the model's weights takes; None where its size is not stated."""
    size, parameters = _BYTES_A_WEIGHT.get(profile.job.precision or ""), profile.job.parameters
    return None if size is None or parameters is None else parameters * size / 2.0**30


def _weights_of_gpu(profile: Profile) -> float | None:
    gpu, weights = named_gpu(profile), weights_gib(profile)
    return _share(weights, profile.hardware.gpu_memory_gib or (gpu.memory_gib if gpu else None))


def _weights_of_part(profile: Profile) -> float | None:
    """Return the same where a split model leaves each GPU its part."""
    parts = profile.gpu_count if profile.job.splits_the_model else 1
    return _share(_weights_of_gpu(profile), float(parts))


def _loader_filled(profile: Profile) -> float | None:
    """Return the loader's workers over the most that its cores are good for."""
    workers = profile.step.loader_workers if profile.step else None
    good = max(1.0, min(MOST_WORKERS, (_cores_per_gpu(profile) or 0.0) - 1.0))
    return None if workers is None or profile.hardware.cpu_cores is None else workers / good


def _step(part: str) -> Callable[[Profile], float | None]:
    def signal(profile: Profile) -> float | None:
        step = profile.step
        share = None if step is None else _share(getattr(step, part), step.mean_s)
        return None if share is None else min(1.0, round(share, 9))

    return signal


def _exposed(part: Callable[[Profile], float | None]) -> Callable[[Profile], float | None]:
    """Return the share of a step in which a part keeps the GPU waiting.

    A part that runs beside kernels costs nothing, so it is at most the share without kernels.
    """

    def signal(profile: Profile) -> float | None:
        share, busy = part(profile), profile.mean("util.kernel_time")
        return share if share is None or busy is None else min(share, round(1.0 - busy, 9))

    return signal


_PARTS = ("data_wait_s", "h2d_s", "compute_s", "comm_s", "optimizer_s", "checkpoint_s")


def _untimed(profile: Profile) -> float | None:
    """Return the share of a step in no timed part; None unless waiting and computing were timed."""
    step = profile.step
    if step is None or not step.mean_s or step.data_wait_s is None or step.compute_s is None:
        return None
    timed = sum(getattr(step, part) or 0.0 for part in _PARTS)
    return max(0.0, 1.0 - timed / step.mean_s)


def _field(path: str) -> Callable[[Profile], float | None]:
    """Return the signal of what a profile holds at a dotted path; None where a part is missing."""
    read = attrgetter(path)

    def signal(profile: Profile) -> float | None:
        try:
            value: float | None = read(profile)
        except AttributeError:  # of None
            return None
        return value

    return signal


def _host(part: str) -> Callable[[Profile], float | None]:
    return _field(f"host.{part}.typical")


_cores_per_gpu = _ratio(_field("hardware.cpu_cores"), _field("gpu_count"))


def _typicals(profile: Profile, slot: str) -> list[float]:
    return [value for s in profile.readings(slot) if (value := s.typical) is not None]


def _busy_by_gpu(profile: Profile) -> list[float]:
    return _typicals(profile, "util.kernel_time") or _typicals(profile, "util.sm_active")


def _spread(profile: Profile) -> float | None:
    busy = _busy_by_gpu(profile)
    # More readings than GPUs are of parts of one, and parts do not share their work.
    return max(busy) - min(busy) if 1 < len(busy) <= profile.gpu_count else None


def _constant(profile: Profile) -> float | None:
    """Return 1.0 where every sample of every GPU reads exactly 0 or exactly 1, else 0.0."""
    readings = profile.readings("util.kernel_time")
    if not readings or any(s.min is None or s.max is None for s in readings):
        return None
    return float(all(s.min == s.max and s.min in {0.0, 1.0} for s in readings))


def _video(profile: Profile) -> float | None:
    engines = (profile.mean("util.encoder"), profile.mean("util.decoder"))
    return max((busy for busy in engines if busy is not None), default=None)


# One direction of a 16-lane link, GB/s after encoding (PCI-SIG).
_PCIE_GB_S = {3: 15.75, 4: 31.5, 5: 63.0, 6: 121.0}
_MIB = 2**20


def pcie_share(profile: Profile) -> float | None:
    """Return the share of the PCIe link, inwards, that is in use."""
    rate_mib_s, link = profile.mean("io.pcie_rx_mib_s"), pcie_gb_s(named_gpu(profile))
    return _share(rate_mib_s * _MIB / 1e9 if rate_mib_s is not None else None, link)


def pcie_gb_s(gpu: hardware.Gpu | None) -> float | None:
    """Return the rate of a GPU's host link, one direction, GB/s; None = unknown."""
    return _PCIE_GB_S.get(gpu.pcie_gen or 0) if gpu else None


def _network_share(profile: Profile) -> float | None:
    """Return the share of the network between machines in use, in the busier direction."""
    sides = (_host("net_rx_mib_s")(profile), _host("net_tx_mib_s")(profile))
    rate_mib_s = max((side for side in sides if side is not None), default=None)
    gbps = rate_mib_s * _MIB * 8 / 1e9 if rate_mib_s is not None else None
    return _share(gbps, profile.hardware.network_gbps)


def _power_where(slot: str, minimum: float) -> Callable[[Profile], float | None]:
    """Return the power, of its limit, that the hungriest GPU draws of those with such a reading."""

    def signal(profile: Profile) -> float | None:
        own_w = getattr(named_gpu(profile), "tdp_w", None)
        shares = []
        for metrics in (gpu.metrics for gpu in profile.gpus):
            power, limit, reading = map(metrics.get, ("power.board_w", "power.limit_w", slot))
            if power and reading and (reading.typical or 0.0) >= minimum:
                drawn_w = power.typical if power.p95 is None else power.p95
                shares.append(_share(drawn_w, limit.typical if limit else own_w))
        return max((share for share in shares if share is not None), default=None)

    return signal


_power_held = _power_where("throttle.fraction", thresholds.LOW)


def _power_cap(profile: Profile) -> float | None:
    """Return what the board may draw over its own limit: as set, less where it is held below it."""
    limit = _ratio(methodcaller("mean", "power.limit_w"), _gpu("tdp_w"))(profile)
    drawn = _power_held(profile)
    return limit if drawn is None or drawn >= _AT_LIMIT else (limit or 1.0) * drawn


def _held_at(profile: Profile) -> Message | None:
    """Return the sentence with the clock and the power of GPUs that are held down."""
    mhz, drawn = profile.mean("clock.sm_mhz"), _power_held(profile)
    if not mhz or not drawn:
        return None
    return Message("cause.held-at", mhz=mhz, share=drawn, lost=1.0 - drawn)


def _quantile(name: str) -> Callable[[Profile], float | None]:
    def signal(profile: Profile) -> float | None:
        values = [getattr(s, name) for s in profile.readings("util.kernel_time")]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if present else None

    return signal


def idle_share(profile: Profile) -> float | None:
    """Return the share of paid time with the GPU idle: by phases, or the greatest idle quantile.

    So it is a floor, to which idle time before and after the job is added. None when GPU use was
    not measured.
    """
    phases, around = places.idle_phases(profile) or 0.0, profile.idle_around_fraction
    floor = _idle_floor(profile)
    if not phases and floor is None:
        return None
    return around + (1.0 - around) * max(phases, floor or 0.0)


def idle_pause_s(profile: Profile) -> float | None:
    """Return how long an idle pause is on average, s: by its phases, else between requests."""
    total_s, count = places.pauses(profile)
    if total_s and count > 0:
        return total_s / count
    rate = profile.job.requests_per_s if profile.job.kind.answers else None
    return 1.0 / rate if rate else None


def _pauses_named(profile: Profile) -> Message | None:
    """Return the sentence that says how often the GPU pauses, and for how long."""
    total_s, count = places.pauses(profile)
    busy = places.busy_between(profile)
    if count <= 1 or busy is None:
        return None
    return Message("cause.pauses", count=count, minutes=total_s / count / 60.0, busy=busy)


def nights_between(profile: Profile) -> float:
    """Return the share of the job's window in pauses of eight hours or more, 0-1: no work at all.

    0 where pauses are shorter on average, and where the host or the video engines work on.
    """
    used = profile.cpu_fraction or 0.0, _video(profile) or 0.0
    is_night = (
        (idle_pause_s(profile) or 0.0) >= thresholds.NIGHT_S
        and used[0] < thresholds.LOW
        and used[1] < _IDLE_BELOW
    )
    return (places.idle_phases(profile) or 0.0) if is_night else 0.0


def open_hours(profile: Profile) -> tuple[int, int, int, float] | None:
    """Return the hours in which people work on it, those between two pieces of work among them.

    They are the days of a week, the hours of the day at which work begins and ends, UTC, and the
    share of the week that this is. None where it has no night of its own: eight hours of the day in
    which nothing ever ran.
    """
    use = profile.by_hour.mean if profile.by_hour else ()
    used = sorted({hour % DAY_H for hour, share in enumerate(use) if share > 0})
    if len(use) != WEEK_H or not used or profile.job.kind not in {"interactive", "unknown"}:
        return None
    following = (*used[1:], used[0])
    night_h, last = max(
        ((after - h - 1) % DAY_H, h) for h, after in zip(used, following, strict=True)
    )
    if night_h < _NIGHT_H:
        return None
    begin, open_h = (last + 1 + night_h) % DAY_H, DAY_H - night_h
    days = len({(hour - begin) % WEEK_H // DAY_H for hour, share in enumerate(use) if share > 0})
    return days, begin, (last + 1) % DAY_H or DAY_H, days * open_h / WEEK_H


def turn_hours(profile: Profile) -> tuple[int, ...]:
    """Return the hours in which people hold a session, pauses shorter than a night among them.

    They count from Monday 0 h UTC, 0-167. None of them where it is not an interactive session, its
    week was not recorded, or it has no night in which others could hold the GPU.
    """
    use = profile.by_hour.mean if profile.by_hour else ()
    used = [hour for hour, share in enumerate(use) if share > 0]
    if len(use) != WEEK_H or not used or profile.job.kind != "interactive":
        return ()
    hours = set[int]()
    for hour, after in zip(used, (*used[1:], used[0] + WEEK_H), strict=True):
        end = after if after - hour - 1 < _NIGHT_H else hour + 1
        hours.update(at % WEEK_H for at in range(hour, end))
    return tuple(sorted(hours)) if len(hours) < WEEK_H else ()


def _idle_floor(profile: Profile) -> float | None:
    readings = profile.readings("util.kernel_time")
    floors = []
    for statistics in readings:
        idle = (
            q
            for name, q in _QUANTILES
            if (v := getattr(statistics, name)) is not None and v < _IDLE_BELOW
        )
        floors.append(next(idle, 0.0))
    return min(floors, default=None)


_GROWTH = _host("ram_growth_gib_per_h")


def _sentence(
    read: Callable[[Profile], float | None], code: str
) -> Callable[[Profile], Message | None]:
    """Return the signal of the sentence that says a rate or a share."""
    return lambda profile: Message(code, rate=rate) if (rate := read(profile)) else None


def _ram_share(profile: Profile) -> float | None:
    used = profile.host.ram_used_gib if profile.host else None
    return _share(used.peak if used else None, profile.hardware.ram_gib)


def _ram_full_in(profile: Profile) -> Message | None:
    """Return the sentence that says when host memory is full, as fast as it grows."""
    share, total, rate = _ram_share(profile), profile.hardware.ram_gib, _GROWTH(profile)
    if share is None or not total or not rate:
        return None
    free = max(0.0, total * (1.0 - share))
    return Message("cause.memory-full-in", free=free, rate=rate, hours=free / rate)


def capability(gpu: hardware.Gpu | None) -> float | None:
    """Return NVIDIA's compute capability as a number, 8.9; None for other vendors."""
    try:
        return float(gpu.compute_capability) if gpu and gpu.compute_capability else None
    except ValueError:  # AMD's gfx names
        return None


def _latency_and_target(profile: Profile) -> Message | None:
    """Return the sentence that says how long requests take, and how long they may."""
    target, latency = profile.job.latency_slo_ms, profile.job.latency_ms
    if target is None or latency is None or latency.strictest is None:
        return None
    percent, ms = latency.strictest
    low, high = latency.bucket(ms)
    code = "cause.latency-in-bucket" if low < high else "cause.latency-is"
    return Message(code, at=f"p{percent:.0f}", ms=ms, low=low, high=high, target=target)


def _latency_of_target(profile: Profile) -> float | None:
    latency, is_known = profile.job.latency_ms, profile.job.misses_target is not None
    ms = latency.strictest[1] if latency and latency.strictest else None
    return _share(ms, profile.job.latency_slo_ms) if is_known else None


def _target_in_bucket(profile: Profile) -> float | None:
    """Return 1 where the bucket of the percentile holds the target, too."""
    sentence = _latency_and_target(profile)
    return 1.0 if sentence and profile.job.misses_target is None else None


def memory_need_gib(profile: Profile) -> float | None:
    """Return the memory that the job needs of one GPU, GiB; None where need is not known.

    A caching allocator holds more than it needs, so the most held is an upper bound of the need. Of
    a server that preallocates it is its weights, twice the cache of keys and values that requests
    used on average, and its runtime; work that waits in a queue fills its batch at any time, so
    its average is its peak.
    """
    used_gib = _memory_held_gib(profile)
    if not holds_in_advance(profile):
        return used_gib
    serving, model_gib = profile.job.serving, weights_gib(profile)
    used = None if serving is None else serving.kv_cache_fraction
    if used_gib is None or used is None or model_gib is None:
        return None
    weights = model_gib / profile.gpu_count
    cache = max(0.0, used_gib - weights)
    peak = min(1.0, used * (_PEAK_OVER_MEAN if profile.job.kind.answers else 1.0))
    return min(used_gib, weights + peak * cache + _RUNTIME_GIB)


def holds_in_advance(profile: Profile) -> bool:
    """Return whether the memory held is what a program takes when it starts, needed or not.

    So the need of the job is not known: most of the GPU's memory is held by a framework that
    preallocates, and it hardly moved where that was seen.
    """
    share = _memory_share(profile)
    if share is None or share < _PREALLOCATED or not preallocates(profile.job.framework):
        return False
    bounds = [(s.min, s.max) for s in profile.readings("mem.used_gib")]
    return all(low >= _STEADY * high for low, high in bounds if low is not None and high)


def _purchase(profile: Profile) -> str | None:
    """Return how the machine is paid for; a GeForce board of no stated one is its user's own."""
    hardware, gpu = profile.hardware, named_gpu(profile)
    is_stated = hardware.provider or hardware.instance_type
    is_own = not is_stated and is_consumer(gpu.name if gpu else hardware.gpu or "")
    owned = hardware.owned or (hardware.owned is None and is_own)
    return "owned" if owned else hardware.purchase


# Compute capabilities: NVIDIA, CUDA C++ Programming Guide, throughput of arithmetic instructions.
_BF16_FROM, _FP16_FROM = 8.0, 7.0
_FP16_BEFORE = (5.3, 6.0, 6.2)  # 6.1 does it at 1/64 of fp32, the others not at all


def _emulated(profile: Profile) -> float | None:
    """Return 1 where the precision has no arithmetic on the GPU; None where it has, or unknown."""
    level = capability(named_gpu(profile))
    numbers = (_precision(profile) or "").removeprefix("amp-")
    if level is None or numbers not in {"bf16", "fp16"}:
        return None
    has_fp16 = level >= _FP16_FROM or level in _FP16_BEFORE
    return None if (level >= _BF16_FROM if numbers == "bf16" else has_fp16) else 1.0


def _precision(profile: Profile) -> str | None:
    """Return the precision: double where it is seen, or usual of the program, else as named."""
    return "fp64" if arithmetic(profile) == "double" else profile.job.precision


def _family(profile: Profile) -> str | None:
    job, places_ = profile.job, (wait.place for wait in profile.waits if wait.place)
    if not job.framework and job.kind.serves and job.serving and job.serving.makes_tokens:
        return "llm-server"  # nothing else has these counters
    unit = profile.work.unit if profile.work else None
    stated = family(job.framework, unit, places_, name=job.name)
    return stated or ("simulation" if job.kind == "simulation" else None)


def _stream(profile: Profile) -> float | None:
    """Return the prompts that a language model answers at a time by a batch; None of other work."""
    answers_batches = profile.job.kind.serves and not profile.job.kind.answers
    writes = answers_batches and serves_language_model(profile)
    return profile.job.batch_per_gpu if writes else None


def _input(profile: Profile) -> str | None:
    if _family(profile) == "reinforcement":
        return "none"
    unit = profile.work.unit if profile.work else None
    places = [wait.place for wait in profile.waits if wait.place]
    return decodes(unit, profile.job.framework, profile.mean("util.decoder"), places)


def _rate(profile: Profile) -> float | None:
    return profile.work.rate_per_s if profile.work and profile.work.is_counted else None


_JOB = ("kind", "batch_per_gpu", "parallelism", "parameters", "latency_slo_ms", "ended")
_PLAIN = ("hardware.interconnect", "hardware.network_gbps", "host.cpu_util.max")
_SERVING = ("kv_cache_fraction", "requests_running", "requests_waiting", "preemptions_per_s")
_UTIL = ("sm_active", "sm_occupancy", "fp32_active", "fp64_active", "tensor_active", "dram_active")
_WAITED_FOR = ("input", "host", "python", "logging", "network", "lock", "device", "model")
_HOST = ("cpu_util", "cpu_busiest_core", "disk_read_mib_s", "net_rx_mib_s")
_OF_MACHINE = ("bill.egress", "serving.spare_copies", "network.of_offered", "data.of_scratch")
_OF_PROBES = ("scaling.fewer", "scaling.fewer_speed", "scaling.fewer_saves")
_WAITS = ("data_wait", "h2d", "optimizer", "checkpoint")

SIGNALS: dict[str, Signal] = {
    **named(
        {
            **{f"job.{name}": _field(f"job.{name}") for name in _JOB},
            **{name: _field(name) for name in _PLAIN},
            "work.rate_per_s": _rate,
            **{f"serving.{part}": _field(f"job.serving.{part}") for part in _SERVING},
            **{f"host.{part}.mean": _host(part) for part in _HOST},
            **{f"util.{name}.mean": methodcaller("mean", f"util.{name}") for name in _UTIL},
            "util.mem_controller.mean": methodcaller("mean", "util.mem_controller"),
            "io.pcie_rx_mib_s.mean": methodcaller("mean", "io.pcie_rx_mib_s"),
            **{f"step.{part}_exposed": _exposed(_step(f"{part}_s")) for part in _WAITS},
            **{f"util.kernel_time.{q}": _quantile(q) for q in ("p05", "p50", "p95")},
            "optimizer.step_s": _field("step.optimizer_s"),
            "optimizer.name": _field("step.optimizer"),
            "stalls.longest_s": _field("step.stalls.longest_s"),
            **dict.fromkeys((*_OF_MACHINE, *_OF_PROBES), lambda _: None),
            "weights.of_gpu": _weights_of_gpu,
            "loader.filled": _loader_filled,
            "weights.of_part": _weights_of_part,
            "job.precision": _precision,
            "precision.emulated": _emulated,
            "job.family": _family,
            "job.stream": _stream,
            "job.program": lambda p: program(p.job.framework),
            "hardware.slice": slice_named,
            "hardware.mig": lambda p: _is_noted(p, "doubt.no-load-mig") or None,
            "window.one_instant": lambda p: _ONE_INSTANT if saw_one_instant(p) else None,
            "job.input": _input,
            "serving.fuller_batch": fuller_batch,
            "hardware.gpu_count": lambda p: float(p.gpu_count),
            "hardware.cpu_cores_per_gpu": _cores_per_gpu,
            "hardware.purchase": _purchase,
            "hardware.nodes": lambda p: float(p.hardware.nodes or 1),
            "hardware.compute_capability": lambda p: capability(named_gpu(p)),
            "hardware.tf32_over_fp32": _ratio(_gpu("tf32_tflops"), _gpu("fp32_tflops")),
            "hardware.fp64_over_fp32": _ratio(_gpu("fp64_tflops"), _gpu("fp32_tflops")),
            "util.kernel_time.mean": lambda p: p.busy_fraction,
            # The part of the job's GPUs that the other signals are of.
            "gpus.at_work_share": lambda p: len(at_work(p).gpus) / len(p.gpus) if p.gpus else 1.0,
            "util.kernel_time.spread": _spread,
            "util.kernel_time.least": lambda p: min(_busy_by_gpu(p), default=None),
            "util.kernel_time.most": lambda p: max(_busy_by_gpu(p), default=None),
            "util.kernel_time.idle_share": idle_share,
            "util.kernel_time.constant": _constant,
            "util.video.mean": _video,
            "mem.used_fraction.max": _memory_share,
            "mem.claimed_fraction": _memory_claimed,
            "mem.used_gib.max": _memory_held_gib,
            "mem.change_gib": _memory_change_gib,
            "power.fraction.mean": _power_share,
            "phases.pause_s": idle_pause_s,
            "phases.pauses": lambda p: places.pauses(p)[1] or None,
            "phases.between": places.busy_between,
            "phases.named": _pauses_named,
            "power.drawn": _sentence(_power_share, "cause.power-drawn"),
            "hardware.link_class": lambda p: link_class(None, getattr(named_gpu(p), "name", None)),
            "phases.nights": nights_between,
            "power.over_idle": _ratio(methodcaller("mean", "power.board_w"), _gpu("idle_w")),
            "power.over_rest": _power_over_rest,
            "power.cap_fraction": _power_cap,
            "power.held": _power_held,
            "power.held_at": _held_at,
            "power.busiest": _power_where("util.kernel_time", thresholds.BUSY_NOW),
            # Those that work together wait for the most throttled.
            "throttle.fraction.most": lambda p: max(
                _typicals(p, "throttle.fraction"), default=None
            ),
            "temp.core_c.max": lambda p: p.peak("temp.core_c"),
            "io.pcie_rx_fraction": pcie_share,
            "host.unseen": lambda p: (
                Message("cause.cpu-unseen") if p.cpu_fraction is None else None
            ),
            "host.cpu_cores_used": places.cores_used,
            "host.ram_growth_gib_per_h": _GROWTH,
            "host.ram_full_in": _ram_full_in,
            "host.ram_fraction.max": _ram_share,
            "host.reads_mib_s": lambda p: max(
                filter(None, (_host("disk_read_mib_s")(p), _host("net_rx_mib_s")(p))), default=None
            ),
            "host.disk_rate": _sentence(_host("disk_read_mib_s"), "cause.disk-rate"),
            "host.net_rate": _sentence(_host("net_rx_mib_s"), "cause.net-rate"),
            "host.net_fraction": _network_share,
            "loader.workers": lambda p: (
                p.step.loader_workers if p.step and p.step.data_wait_s is None else None
            ),
            "step.data_wait_fraction": _step("data_wait_s"),
            "host.cores_left": cores_left,
            "host.reading_cores": reading_cores,
            "step.optimizer_fraction": _step("optimizer_s"),
            "step.untimed_exposed": _exposed(_untimed),
            "step.comm_fraction": _step("comm_s"),
            "latency.of_target": _latency_of_target,
            "latency.target_in_bucket": _target_in_bucket,
            "latency.and_target": _latency_and_target,
            "evaluation.data_wait_exposed": _exposed(places.evaluation_waits),
            "stalls.exposed": _exposed(places.stalled),
            **{f"waits.{of}.exposed": _exposed(places.waiting_share(of)) for of in _WAITED_FOR},
        }
    ),
    **places.SIGNALS,
}


PARTS: tuple[tuple[str, Callable[[Profile], float | None]], ...] = (
    ("memory bandwidth", lambda profile: profile.mean("util.dram_active")),
    ("PCIe link", pcie_share),
    ("video encoder", lambda profile: profile.mean("util.encoder")),
    ("video decoder", lambda profile: profile.mean("util.decoder")),
)
"""Each with the share of it that a job uses, 0 to 1; what was not measured is unused."""
