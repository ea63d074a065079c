"""The processes on a device, as the driver lists them: what memory and time the job takes."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from telemetry.measure.capture_file import Notes
from telemetry.measure.driver import Code, CodeVerdict, Handle, Nvml, code_of, failures, verdict
from telemetry.readers.units import GIB

# Kinds of processes, and the calls that list them, the newest first. A process may be of two kinds:
# clients of MPS and its server are listed as computing, too (seen on an H200, driver 580).
_COMPUTE, _GRAPHICS, _MPS = "Compute", "Graphics", "MPSCompute"
_CALLS = ("nvmlDeviceGet{}RunningProcesses_v3", "nvmlDeviceGet{}RunningProcesses_v2")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on a device.

    Attributes:
        gib: memory of the device that it holds; None where the driver does not say.
        computes: whether it does more than draw.
        by_server: whether MPS's server computes for it: what it does counts as the server's.
    """

    gib: float | None
    computes: bool
    by_server: bool = False


class ProcessMemory:
    """The processes on any device, and the memory of the job's.

    In a container the driver may name processes by other numbers than the job has there. So until
    one of the job's processes was found on some device, nothing is known; after that, none is 0.

    Args:
        nvml: the module `pynvml`, initialised.
        notes: where it is said that others use a device too.

    Attributes:
        met: the keys of devices on which a process of the job was seen.
    """

    def __init__(self, nvml: Nvml, notes: Notes) -> None:
        self._nvml = nvml
        self._notes = notes
        self.met: set[str] = set()
        self._left_out: set[tuple[str, str]] = set()

    def holders(self, key: str, handle: Handle) -> dict[int, Holder]:
        """Return the processes on a device, by the driver's numbers.

        Raises:
            pynvml.NVMLError: the device is gone, or does not answer now.
        """
        holders = dict[int, Holder]()
        for kind in (_COMPUTE, _GRAPHICS, _MPS):
            for pid, used in self._listed(key, handle, kind):
                before = holders.get(pid, Holder(0.0, computes=False))
                holders[pid] = Holder(
                    None if used is None else max(used / GIB, before.gib or 0.0),
                    kind != _GRAPHICS or before.computes,
                    kind == _MPS or before.by_server,
                )
        return holders

    def of_job(
        self, key: str, holders: Mapping[int, Holder], pids: Collection[int]
    ) -> dict[str, float]:
        """Return the GiB that the job holds on a device, by slot; empty where it is unknown."""
        own = [holder.gib for pid, holder in holders.items() if pid in pids]
        foreign = [h.gib for pid, h in holders.items() if pid not in pids and h.gib]
        if own:
            self.met |= {key, key.partition(":")[0]}
        if not self.met or None in own:
            return {}
        if own and foreign:
            self._notes.say(
                f"GPU {key} is shared: processes outside this job hold memory on it too "
                f"({sum(foreign):.1f} GiB when first seen); power is of all, and so is activity of "
                "SMs, tensor cores and memory, which is left out where the driver tells that they "
                "compute."
            )
        return {"mem.process_gib": sum(gib for gib in own if gib is not None)}

    def _listed(self, key: str, handle: Handle, kind: str) -> Iterator[tuple[int, int | None]]:
        for call in (form.format(kind) for form in _CALLS):
            if (key, call) in self._left_out:
                continue
            try:
                listed = getattr(self._nvml, call)(handle)
            except failures(self._nvml) as error:
                if verdict(code_of(error)) is CodeVerdict.NEVER:
                    self._left_out.add((key, call))
                    continue
                if code_of(error) != Code.NOT_FOUND:  # which is said where no process runs
                    raise
                listed = []
            yield from ((process.pid, process.usedGpuMemory) for process in listed)
            return


# The driver takes its samples up to a second apart; asked earlier, it has none.
EVERY_S = 1.0
_SUCCESS = 0  # raised by pynvml where no process did anything


class ProcessUtilisation:
    """The share of time in which the SMs ran kernels of the job.

    Args:
        nvml: the module `pynvml`, initialised.

    Attributes:
        others_ran: whether kernels of other processes ran since the question before; true until
            the driver has answered.
    """

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._since_us = 0
        self._asked_s = float("-inf")
        self._own: float | None = None
        self.others_ran = True

    def share(
        self, handle: Handle, pids: Collection[int], now_s: float, total: float
    ) -> float | None:
        """Return the job's part of a device's `util.kernel_time`; None before it is known.

        Args:
            handle: of the device.
            pids: the job's processes.
            now_s: seconds, steady.
            total: the device's, of all processes.

        Raises:
            pynvml.NVMLError: the device or the driver does not say it.
        """
        if now_s - self._asked_s >= EVERY_S:
            self._asked_s = now_s
            self._ask(handle, pids)
        return None if self._own is None else min(self._own, total)

    def _ask(self, handle: Handle, pids: Collection[int]) -> None:
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(handle, self._since_us)
        except failures(self._nvml) as error:
            if code_of(error) not in {_SUCCESS, Code.NOT_FOUND}:
                raise
            return  # nothing new; what ran a moment ago is the best that is known
        self.others_ran = any(sample.smUtil and sample.pid not in pids for sample in samples)
        shares: dict[int, list[float]] = defaultdict(list)
        for sample in samples:
            self._since_us = max(self._since_us, sample.timeStamp)
            if sample.pid in pids:
                shares[sample.pid].append(sample.smUtil / 100)
        self._own = min(1.0, sum(sum(parts) / len(parts) for parts in shares.values()))
