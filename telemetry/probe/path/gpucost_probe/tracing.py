"""Some steps under PyTorch's own profiler: the operators that take most, and where nothing runs.

The lengths of these steps are not the program's own, and are left out of what is told of steps.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from .foreign import Foreign
    from .steps import Reporter

WARM_UP = 10  # steps before: the first ones compile, allocate and fill caches
_OPERATORS, _GAPS = 5, 3
_SHORTEST_US = 20.0  # a gap; below it is the cost of a launch, and of looking
_NAME = 80
_ANNOTATIONS = ("enumerate(DataLoader)", "Optimizer.")  # spans around operators, not operators


class Trace:
    """The trace of one process.

    Args:
        probe: of this process.
        steps: how many to trace.
    """

    def __init__(self, probe: Reporter, steps: int) -> None:
        self._probe, self._steps = probe, steps
        self._count = 0
        self._profiler: Foreign | None = None
        self._begin_s = 0.0

    def stepped(self, _length_s: float | None) -> None:
        """Take a step that ended."""
        self._count += 1
        try:
            if self._count == WARM_UP and os.environ.get("LOCAL_RANK", "0") == "0":
                self._begin()
            elif self._count == WARM_UP + self._steps:
                self.end()
        except Exception as error:
            self._profiler, self._probe.steps.traced = None, False
            self._probe.events.odd("PyTorch's profiler could not be used: %r" % (error,))

    def _begin(self) -> None:
        torch = sys.modules["torch"]
        module = import_module("torch.profiler")
        kinds = [module.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            kinds.append(module.ProfilerActivity.CUDA)
        profiler = module.profile(activities=kinds)
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else it writes to standard error
        profiler.start()
        self._profiler, self._probe.steps.traced = profiler, True
        self._begin_s = perf_counter()

    def end(self) -> None:
        """Tell what was traced, also where the program ends before all steps were."""
        profiler, self._profiler = self._profiler, None
        self._probe.steps.traced = False
        steps, seconds = self._count - WARM_UP, perf_counter() - self._begin_s
        if profiler is None or steps < 1:
            return
        profiler.stop()
        summary = _Seen(profiler.events())
        self._probe.events.write(
            "trace",
            steps=steps,
            s=round(seconds, 6),
            device=summary.device,
            idle_s=round(summary.idle_us / 1e6, 6),
            rows=[[kind, name, n, round(us / 1e6, 6)] for kind, name, n, us in summary.rows],
        )


class _Seen:
    """What the profiler saw.

    Attributes:
        device: `gpu` where it ran anything, else `cpu`.
        idle_us: time between its first operator and its last in which it ran none.
        rows: operator or idle, its name, how often, and microseconds.
    """

    def __init__(self, events: list[Foreign]) -> None:
        on_device = [e for e in events if not _is_on_cpu(e)]
        spans = [e for e in events if _is_on_cpu(e)]
        operators = [e for e in spans if not e.name.startswith(_ANNOTATIONS)]
        self.device = "gpu" if on_device else "cpu"
        sums: dict[str, list[float]] = {}
        for event in operators:
            self_us = _device_us(event) if on_device else event.self_cpu_time_total
            _count(sums, event.name, self_us)
        gaps: dict[str, list[float]] = {}
        self.idle_us = 0.0
        self._spans = sorted(spans, key=lambda e: e.time_range.start)
        for begin_us, end_us, following in _gaps(on_device or operators):
            self.idle_us += end_us - begin_us
            if end_us - begin_us >= _SHORTEST_US:
                name = self._during(begin_us, end_us) or "before %s" % following
                _count(gaps, name, end_us - begin_us)
        self.rows = [("operator", *row) for row in _largest(sums, _OPERATORS)]
        self.rows += [("idle", *row) for row in _largest(gaps, _GAPS)]

    def _during(self, begin_us: float, end_us: float) -> str:
        """Return the shortest span of the host that lies around a gap."""
        around = ("", float("inf"))
        for event in self._spans:
            begin, end = event.time_range.start, event.time_range.end
            if begin > begin_us:
                break
            if end >= end_us and end - begin < around[1]:
                around = (event.name, end - begin)
        return "in %s" % around[0].partition("#")[0] if around[0] else ""


def _is_on_cpu(event: Foreign) -> bool:
    return str(event.device_type).endswith("CPU")


def _device_us(event: Foreign) -> float:
    for name in ("self_device_time_total", "self_cuda_time_total"):  # the second until 2.3
        if hasattr(event, name):
            return float(getattr(event, name))
    return 0.0


def _count(sums: dict[str, list[float]], name: str, us: float) -> None:
    entry = sums.setdefault(name[:_NAME], [0, 0.0])
    entry[0] += 1
    entry[1] += us


def _largest(sums: dict[str, list[float]], count: int) -> list[tuple[str, int, float]]:
    ranked = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    return [(name, int(n), us) for name, (n, us) in ranked[:count] if us > 0.0]


def _gaps(events: list[Foreign]) -> Iterator[tuple[float, float, str]]:
    """Yield begin and end of each stretch without an event, and the event that ends it."""
    until: float | None = None
    for event in sorted(events, key=lambda e: e.time_range.start):
        begin, end = event.time_range.start, event.time_range.end
        if until is not None and begin > until:
            yield until, begin, event.name
        until = end if until is None else max(until, end)
