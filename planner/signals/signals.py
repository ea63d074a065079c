"""The numbers and words that the diagnosis looks at, each derived from a profile in one place.

A signal that was not measured is None, and no test on it can hold.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.profile.frameworks import decodes, family, preallocates
from planner.profile.model import Profile, Statistics
from planner.signals import program_places as places
from pricing import hardware

Value = float | str | None

# Share of the time in which a GPU must be idle at a quantile for that quantile to count as idle.
_IDLE_BELOW = 0.05
# A server that takes a fixed share of the memory takes 0.75 (JAX) to 0.95; it is constant then.
_PREALLOCATED, _STEADY = 0.7, 0.95
_QUANTILES = (("p99", 0.99), ("p95", 0.95), ("p90", 0.90), ("p75", 0.75), ("p50", 0.50))


def measure(profile: Profile) -> Mapping[str, Value]:
    """Return every signal of the profile by name; None where it was not measured."""
    return MappingProxyType({name: signal(profile) for name, (signal, _) in SIGNALS.items()})


def is_snapshot(profile: Profile) -> bool:
    """Return whether the profile was read from files that hold one instant only."""
    window = profile.window
    return bool(profile.provenance.sources) and (window is None or window.duration_s is None)


def saw_no_gpu(profile: Profile) -> bool:
    """Return whether the job was measured without a look at a GPU; it may have run on the CPU."""
    return bool(profile.provenance.sources) and not profile.gpus


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _gpu_memory(profile: Profile) -> float | None:
    gpu = _known_gpu(profile)
    return profile.hardware.gpu_memory_gib or (gpu.memory_gib if gpu else None)


def _memory_share(profile: Profile) -> float | None:
    return _share(_memory_held_gib(profile), _gpu_memory(profile))


def _memory_held_gib(profile: Profile) -> float | None:
    """The most that the job held on one GPU; where that is not told apart, that all held."""
    own = profile.peak("mem.process_gib")
    return own if own is not None else profile.peak("mem.used_gib")


def _power_share(profile: Profile) -> float | None:
    gpu = _known_gpu(profile)
    limit = profile.mean("power.limit_w") or (gpu.tdp_w if gpu else None)
    return _share(profile.mean("power.board_w"), limit)


def _power_over_idle(profile: Profile) -> float | None:
    gpu = _known_gpu(profile)
    return _share(profile.mean("power.board_w"), gpu.idle_w if gpu else None)


def _cap(profile: Profile) -> float | None:
    gpu = _known_gpu(profile)
    return _share(profile.mean("power.limit_w"), gpu.tdp_w if gpu else None)


def _step(part: str) -> Callable[[Profile], float | None]:
    def signal(profile: Profile) -> float | None:
        step = profile.step
        share = None if step is None else _share(getattr(step, part), step.mean_s)
        return None if share is None else min(1.0, share)

    return signal


def _known_gpu(profile: Profile) -> hardware.Gpu | None:
    return hardware.find(profile.hardware.gpu, memory_gib=profile.hardware.gpu_memory_gib)


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
    """Share of a step that belongs to no timed part; None unless waiting and computing were."""
    step = profile.step
    if step is None or not step.mean_s or step.data_wait_s is None or step.compute_s is None:
        return None
    timed = sum(getattr(step, part) or 0.0 for part in _PARTS)
    return max(0.0, 1.0 - timed / step.mean_s)


def _host(part: str) -> Callable[[Profile], float | None]:
    def signal(profile: Profile) -> float | None:
        statistics: Statistics | None = getattr(profile.host, part) if profile.host else None
        return statistics.typical if statistics else None

    return signal


def _busy(profile: Profile) -> float | None:
    """Mean kernel time; SM activity stands in where utilisation cannot be reported (MIG)."""
    busy = profile.mean("util.kernel_time")
    return busy if busy is not None else profile.mean("util.sm_active")


def _busy_by_gpu(profile: Profile) -> list[float]:
    readings = profile.readings("util.kernel_time") or profile.readings("util.sm_active")
    return [value for value in (s.typical for s in readings) if value is not None]


def _spread(profile: Profile) -> float | None:
    busy = _busy_by_gpu(profile)
    return max(busy) - min(busy) if len(busy) > 1 else None


def _least_busy(profile: Profile) -> float | None:
    return min(_busy_by_gpu(profile), default=None)


def _most_busy(profile: Profile) -> float | None:
    return max(_busy_by_gpu(profile), default=None)


def _constant(profile: Profile) -> float | None:
    """1.0 where every sample of every GPU reads exactly 0 or exactly 1, else 0.0."""
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


def _pcie_share(profile: Profile) -> float | None:
    gpu, rate_mib_s = _known_gpu(profile), profile.mean("io.pcie_rx_mib_s")
    link = _PCIE_GB_S.get(gpu.pcie_gen) if gpu and gpu.pcie_gen else None
    return _share(rate_mib_s * _MIB / 1e9 if rate_mib_s is not None else None, link)


def _network_share(profile: Profile) -> float | None:
    """Share of the network between machines that is in use, in the busier direction."""
    sides = (_host("net_rx_mib_s")(profile), _host("net_tx_mib_s")(profile))
    rate_mib_s = max((side for side in sides if side is not None), default=None)
    gbps = rate_mib_s * _MIB * 8 / 1e9 if rate_mib_s is not None else None
    return _share(gbps, profile.hardware.network_gbps)


def _worst_throttled(profile: Profile) -> float | None:
    """The most throttled GPU: those that work together wait for it."""
    values = (s.typical for s in profile.readings("throttle.fraction"))
    return max((value for value in values if value is not None), default=None)


def _quantile(name: str) -> Callable[[Profile], float | None]:
    def signal(profile: Profile) -> float | None:
        values = [getattr(s, name) for s in profile.readings("util.kernel_time")]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    return signal


def idle_share(profile: Profile) -> float | None:
    """Return the share of time with the GPU idle: the greatest quantile that still reads idle.

    So it is a floor; None when GPU use was not measured.
    """
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


def _one_core(profile: Profile) -> float | None:
    """CPU use in cores: about 1.0 on a many-core host is single-threaded code."""
    cpu, cores = _host("cpu_util")(profile), profile.hardware.cpu_cores
    return None if cpu is None or cores is None else cpu * cores


def _cores_per_gpu(profile: Profile) -> float | None:
    return _share(profile.hardware.cpu_cores, profile.gpu_count)


def _ram_share(profile: Profile) -> float | None:
    used = profile.host.ram_used_gib if profile.host else None
    return _share(used.peak if used else None, profile.hardware.ram_gib)


def _capability(profile: Profile) -> float | None:
    return capability(_known_gpu(profile))


def capability(gpu: hardware.Gpu | None) -> float | None:
    """Return NVIDIA's compute capability as a number, 8.9; None for other vendors."""
    try:
        return float(gpu.compute_capability) if gpu and gpu.compute_capability else None
    except ValueError:  # AMD's gfx names
        return None


def _tf32_over_fp32(profile: Profile) -> float | None:
    gpu = _known_gpu(profile)
    return _share(gpu.tf32_tflops, gpu.fp32_tflops) if gpu else None


def _latency_share(profile: Profile) -> float | None:
    return _share(worst_latency_ms(profile), profile.job.latency_slo_ms)


def worst_latency_ms(profile: Profile) -> float | None:
    """Return the strictest latency percentile that was measured, in milliseconds."""
    latency = profile.job.latency_ms
    if latency is None:
        return None
    return next((v for v in (latency.p99, latency.p95, latency.p50) if v is not None), None)


def memory_need_gib(profile: Profile) -> float | None:
    """Return the most memory that one GPU of the job held, GiB; None where need is not known.

    A caching allocator holds more than it needs, so this is an upper bound of the need. A server
    that preallocates says nothing of it.
    """
    return None if holds_in_advance(profile) else _memory_held_gib(profile)


def holds_in_advance(profile: Profile) -> bool:
    """Return whether the memory held is what a program takes when it starts, needed or not.

    So the need of the job is not known: most of the GPU's memory is held by a framework that
    preallocates, and it hardly moved where that was seen.
    """
    share = _memory_share(profile)
    if share is None or share < _PREALLOCATED or not preallocates(profile.job.framework):
        return False
    seen = [(s.min, s.max) for s in profile.readings("mem.used_gib")]
    return all(low >= _STEADY * high for low, high in seen if low is not None and high)


def _input(profile: Profile) -> str | None:
    unit = profile.work.unit if profile.work else None
    seen = [wait.place for wait in profile.waits if wait.place]
    return decodes(unit, profile.job.framework, profile.mean("util.decoder"), seen)


def _serving(part: str) -> Callable[[Profile], float | None]:
    def signal(profile: Profile) -> float | None:
        serving = profile.job.serving
        return None if serving is None else getattr(serving, part)

    return signal


_Signal = tuple[Callable[[Profile], Value], str]

SIGNALS: dict[str, _Signal] = {
    "job.kind": (lambda p: p.job.kind, "kind of job"),
    "job.precision": (lambda p: p.job.precision, "precision"),
    "job.batch_per_gpu": (lambda p: p.job.batch_per_gpu, "batch per GPU"),
    "job.parallelism": (lambda p: p.job.parallelism, "parallelism"),
    "job.family": (lambda p: family(p.job.framework), "kind of framework"),
    "job.input": (_input, "what the input is"),
    "serving.kv_cache_fraction": (_serving("kv_cache_fraction"), "KV cache in use"),
    "serving.requests_waiting": (_serving("requests_waiting"), "requests waiting"),
    "serving.preemptions_per_s": (_serving("preemptions_per_s"), "requests preempted a second"),
    "job.latency_slo_ms": (lambda p: p.job.latency_slo_ms, "latency target, ms"),
    "hardware.gpu_count": (lambda p: float(p.gpu_count), "GPUs"),
    "hardware.cpu_cores_per_gpu": (_cores_per_gpu, "CPU cores a GPU"),
    "hardware.nodes": (lambda p: float(p.hardware.nodes or 1), "machines"),
    "hardware.network_gbps": (lambda p: p.hardware.network_gbps, "network, Gbit/s"),
    "job.parameters": (lambda p: p.job.parameters, "parameters"),
    "hardware.interconnect": (lambda p: p.hardware.interconnect, "interconnect"),
    "hardware.compute_capability": (_capability, "compute capability"),
    "hardware.tf32_over_fp32": (_tf32_over_fp32, "TF32 rate over FP32 rate"),
    "util.kernel_time.mean": (_busy, "GPU busy"),
    "util.kernel_time.p05": (_quantile("p05"), "GPU busy, p05"),
    "util.kernel_time.p50": (_quantile("p50"), "GPU busy, median"),
    "util.kernel_time.p95": (_quantile("p95"), "GPU busy, p95"),
    "util.kernel_time.spread": (_spread, "busiest less idlest GPU"),
    "util.kernel_time.least": (_least_busy, "idlest GPU"),
    "util.kernel_time.most": (_most_busy, "busiest GPU"),
    "util.kernel_time.idle_share": (idle_share, "time wholly idle, at least"),
    "util.kernel_time.constant": (_constant, "GPU busy, the same 0 or 100 % in every sample"),
    "util.video.mean": (_video, "video engine busy"),
    "util.sm_active.mean": (lambda p: p.mean("util.sm_active"), "SM active"),
    "util.sm_occupancy.mean": (lambda p: p.mean("util.sm_occupancy"), "SM occupancy"),
    "util.fp32_active.mean": (lambda p: p.mean("util.fp32_active"), "FP32 pipe active"),
    "util.tensor_active.mean": (lambda p: p.mean("util.tensor_active"), "tensor pipe active"),
    "util.dram_active.mean": (lambda p: p.mean("util.dram_active"), "DRAM active"),
    "util.mem_controller.mean": (lambda p: p.mean("util.mem_controller"), "memory controller busy"),
    "mem.used_fraction.max": (_memory_share, "GPU memory held"),
    "mem.used_gib.max": (_memory_held_gib, "GPU memory held, GiB"),
    "power.fraction.mean": (_power_share, "power of limit"),
    "power.over_idle": (_power_over_idle, "power over idle power"),
    "power.cap_fraction": (_cap, "power limit of the board's own"),
    "throttle.fraction.most": (_worst_throttled, "clocks held down"),
    "temp.core_c.max": (lambda p: p.peak("temp.core_c"), "hottest core, °C"),
    "io.pcie_rx_mib_s.mean": (lambda p: p.mean("io.pcie_rx_mib_s"), "PCIe in, MiB/s"),
    "io.pcie_rx_fraction": (_pcie_share, "PCIe link in, of its rate"),
    "host.cpu_util.mean": (_host("cpu_util"), "CPU"),
    "host.cpu_busiest_core.mean": (_host("cpu_busiest_core"), "busiest CPU core"),
    "host.cpu_cores_used": (_one_core, "CPU cores used"),
    "host.ram_fraction.max": (_ram_share, "host memory held"),
    "host.disk_read_mib_s.mean": (_host("disk_read_mib_s"), "disk reads, MiB/s"),
    "host.net_rx_mib_s.mean": (_host("net_rx_mib_s"), "network in, MiB/s"),
    "host.net_fraction": (_network_share, "network between machines in use"),
    "work.rate_per_s": (lambda p: p.work.rate_per_s if p.work else None, "work done per second"),
    "step.data_wait_fraction": (_step("data_wait_s"), "step spent waiting for data"),
    "step.data_wait_exposed": (
        _exposed(_step("data_wait_s")),
        "step with the GPU waiting for data",
    ),
    "step.h2d_exposed": (_exposed(_step("h2d_s")), "step with the GPU waiting for copies"),
    "step.optimizer_exposed": (
        _exposed(_step("optimizer_s")),
        "step with the GPU waiting for the optimiser",
    ),
    "step.checkpoint_exposed": (
        _exposed(_step("checkpoint_s")),
        "step with the GPU waiting for checkpoints",
    ),
    "step.untimed_exposed": (_exposed(_untimed), "step with the GPU waiting for other host code"),
    "step.comm_fraction": (_step("comm_s"), "step spent in exposed communication"),
    "latency.of_target": (_latency_share, "latency of target"),
    **places.SIGNALS,
    "evaluation.data_wait_exposed": (
        _exposed(places.evaluation_waits),
        "time with the GPU waiting for evaluation's data",
    ),
    "stalls.exposed": (_exposed(places.stalled), "time with the GPU waiting in stalls"),
    **{
        f"waits.{group}.exposed": (
            _exposed(places.seen(group)),
            f"time with the GPU waiting for {words}",
        )
        for group, words in (
            ("input", "input"),
            ("host", "the host's code"),
            ("model", "the code that launches its work"),
        )
    },
}
