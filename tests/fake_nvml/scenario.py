"""What the fake NVML says: devices, a trace, errors; and the truth that a measurement must find.

A device is a table of what it states. Keys are slots of a profile, in their units, and

    name, uuid             as the driver writes them
    memory.total_gib, memory.reserved_gib
    throttle.reasons       bit mask of nvmlClocksEventReasons
    process.PID            GiB that a process holds; `process.children`: that each child of the
                           measuring process holds, or of who started the sampler; below 0:
                           it is not there, nan: not said. Programs that take part say
                           themselves where they are: job.py
    pcie.lanes, pcie.most_lanes, pcie.gen, pcie.most_gen
                           its link now, and at most
    mig.mode               1 where it is split; instances are devices "0:1", "0:2"
    nvlink.peers           devices that it is joined with, "1,2"
    offers.energy, offers.power_instant, offers.pcie_throughput, offers.gpm
                           calls that it answers
    busy_s.FUNCTION        seconds of the processor that a call takes
    offers.nvlink_counters, offers.pcie_counters
                           their bits, 64 or 32

A slot that is not stated is one that the device does not offer. The trace is a table of rows
`{"t_s": 2.0, "gpu": "0", "util.kernel_time": 0.35, ...}`: values hold until the device's next row
that names them. NVML gives whole percents, degrees and MHz: state such, or allow for it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MACHINE = "*"
HANGS, CRASHES = -1, -2
THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # nvmlClocksEventReasons: power cap, slowdowns, brake
Value = str | float
_STATED = ("offers.", "busy_s.", "nvlink.", "mig.", "pcie.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A function that fails.

    Attributes:
        function: of NVML, "*" for every one of the device.
        code: what it returns; HANGS: it does not, until `until_s`; CRASHES: the process ends.
        device: "0"; "*" for functions of the machine, as nvmlInitWithFlags.
        from_s: trace time from which it fails.
        until_s: trace time until which it fails, None for ever.
    """

    function: str
    code: int
    device: str = MACHINE
    from_s: float = 0.0
    until_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A machine as NVML shows it.

    Attributes:
        devices: what each states, by name.
        rows: the trace.
        failures: functions that fail.
        without: symbols that the library lacks, as one of an old driver; "nvmlGpm*" for several.
        speed: trace seconds a second, from the first tick on. Rates stay rates: a counter counts
            the trace's rate in real seconds.
        period_s: after which the trace repeats; None holds the last row for ever.
        driver: version.
    """

    devices: Mapping[str, Mapping[str, Value]]
    rows: Sequence[Mapping[str, Value]] = ()
    failures: Sequence[Failure] = ()
    without: tuple[str, ...] = ()
    speed: float = 1.0
    period_s: float | None = None
    driver: str = "570.86.15"

    def text(self) -> str:
        """Return the file that nvml.c reads."""
        lines = [(0.0, MACHINE, "driver", self.driver), (0.0, MACHINE, "speed", self.speed)]
        if self.period_s is not None:
            lines.append((0.0, MACHINE, "period_s", self.period_s))
        for device, stated in self.devices.items():
            lines += [(0.0, device, key, value) for key, value in stated.items()]
        for row in sorted(self.rows, key=lambda row: float(row["t_s"])):
            at = (float(row["t_s"]), str(row["gpu"]))
            lines += [(*at, k, v) for k, v in row.items() if k not in ("t_s", "gpu")]
        for one in sorted(self.failures, key=lambda one: one.from_s):
            lines.append((one.from_s, one.device, f"error.{one.function}", one.code))
            if one.until_s is not None:
                lines.append((one.until_s, one.device, f"error.{one.function}", 0))
        return "".join(f"{t:.9g}|{device}|{key}|{value}\n" for t, device, key, value in lines)

    def means(
        self, device: str, start_s: float = 0.0, end_s: float | None = None
    ) -> dict[str, float]:
        """Return a device's time-weighted means over a part of the trace, by slot.

        Args:
            device: its name.
            start_s: trace time.
            end_s: trace time; the end of the period, or the last row, if None.
        """
        end_s = end_s if end_s is not None else self.period_s
        end_s = end_s if end_s is not None else max(float(row["t_s"]) for row in self.rows)
        found = {}
        for key, steps in self._steps(device).items():
            area = sum(
                value * max(0.0, min(until, end_s) - max(since, start_s))
                for (since, value), (until, _) in pairwise(
                    [*self._laps(steps, end_s), (end_s, 0.0)]
                )
            )
            found[key] = area / (end_s - start_s)
        return found

    def _steps(self, device: str) -> dict[str, list[tuple[float, float]]]:
        steps: dict[str, list[tuple[float, float]]] = defaultdict(list)
        stated = [{"t_s": 0.0, "gpu": device, **self.devices[device]}]
        for row in [*stated, *sorted(self.rows, key=lambda row: float(row["t_s"]))]:
            if row["gpu"] != device:
                continue
            for key, value in row.items():
                if key == "throttle.reasons":
                    held = float(bool(int(value) & THROTTLED))
                    steps["throttle.fraction"].append((float(row["t_s"]), held))
                elif "." in key and not key.startswith(_STATED):
                    steps[key].append((float(row["t_s"]), float(value)))
        return steps

    def _laps(self, steps: list[tuple[float, float]], end_s: float) -> list[tuple[float, float]]:
        if self.period_s is None:
            return steps
        laps = int(end_s // self.period_s) + 1
        return [(lap * self.period_s + t, value) for lap in range(laps) for t, value in steps]


def rows(device: str, *steps: tuple[float, Mapping[str, Value]]) -> list[dict[str, Value]]:
    """Return the rows of one device from (seconds, values) in order."""
    found: list[dict[str, Value]] = []
    at_s = 0.0
    for lasts_s, values in steps:
        found.append({"t_s": at_s, "gpu": device, **values})
        at_s += lasts_s
    return found
