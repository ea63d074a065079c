"""Device memory of the job's processes, as the driver counts it per process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.telemetry.measure.nvml_codes import Code, Verdict, code_of, failures, verdict
from planner.telemetry.units import GIB

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from planner.telemetry.measure.notes import Notes
    from planner.telemetry.measure.nvml_codes import Handle, Nvml

# Kinds of processes, each with the calls that list them, the newest first. A process may be of two.
_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
)


class ProcessMemory:
    """The memory of a job's processes on any device.

    In a container the driver may name processes by other numbers than the job has there. So until
    one of the job's processes was found on some device, nothing is known; after that, none is 0.

    Args:
        nvml: the module `pynvml`, initialised.
        notes: where it is said that others use a device too.
    """

    def __init__(self, nvml: Nvml, notes: Notes) -> None:
        self._nvml = nvml
        self._notes = notes
        self._met = False
        self._left_out: set[tuple[str, str]] = set()

    def read(self, key: str, handle: Handle, pids: Collection[int]) -> dict[str, float]:
        """Return the GiB that the job holds on a device, by slot; empty where it is unknown.

        Raises:
            pynvml.NVMLError: the device is gone, or does not answer now.
        """
        held = dict[int, int | None]()
        for calls in _LISTS:
            for pid, used in self._listed(key, handle, calls):
                held[pid] = max(used, held.get(pid) or 0) if used is not None else None
        ours = [used for pid, used in held.items() if pid in pids]
        others = [used for pid, used in held.items() if pid not in pids and used]
        self._met = self._met or bool(ours)
        if not self._met or None in ours:
            return {}
        if ours and others:
            self._notes.say(
                f"GPU {key} is shared: processes outside this job hold memory on it too "
                f"({sum(others) / GIB:.1f} GiB when first seen), and its readings are of all."
            )
        return {"mem.process_gib": sum(used for used in ours if used is not None) / GIB}

    def _listed(
        self,
        key: str,
        handle: Handle,
        calls: tuple[str, ...],
    ) -> Iterator[tuple[int, int | None]]:
        for call in calls:
            if (key, call) in self._left_out:
                continue
            try:
                found = getattr(self._nvml, call)(handle)
            except failures(self._nvml) as error:
                if verdict(code_of(error)) is Verdict.NEVER:
                    self._left_out.add((key, call))
                    continue
                if code_of(error) != Code.NOT_FOUND:  # which is said where no process runs
                    raise
                found = []
            yield from ((process.pid, process.usedGpuMemory) for process in found)
            return
