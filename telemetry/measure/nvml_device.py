"""One GPU, or one MIG instance: its readings at a tick, and what becomes of failed ones.

What it is asked is the table readings.toml.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import msgspec

from telemetry.measure import driver
from telemetry.measure.capture_file import Notes, Pace
from telemetry.measure.nvml_counters import LEAST_S, OF_ALL, Gpm, PcieThread
from telemetry.measure.nvml_processes import Holder, ProcessMemory, ProcessUtilisation
from telemetry.readers.units import THROTTLE_BITS
from telemetry.recording.recording import GpuIdentity

_ALL_LINKS = 0xFFFF_FFFF  # nvmlFieldValue_t.scopeId: the sum over a device's links
_UNSIGNED_INT = 1  # nvmlValueType_t


class _Way(msgspec.Struct, frozen=True, kw_only=True, eq=False, rename={"arguments": "with"}):
    """One way to a reading; its fields are explained in readings.toml."""

    call: str = ""
    arguments: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    links: bool = False
    of: tuple[str, ...] = ("",)
    fills: tuple[str, ...]
    per: float = 1.0

    def read(self, nvml: driver.Nvml, handle: driver.Handle) -> dict[str, float]:
        """Return what a device says, by slot or counter.

        Raises:
            pynvml.NVMLError: it is not to be had.
        """
        answers = self._of_fields(nvml, handle) if self.fields else self._called(nvml, handle)
        read = [getattr(answer, part) if part else answer for answer, part in answers]
        values = [value / self.per if self.per else bool(value & THROTTLE_BITS) for value in read]
        return dict(zip(self.fills, map(float, values), strict=True))

    def _called(
        self, nvml: driver.Nvml, handle: driver.Handle
    ) -> Iterator[tuple[driver.Nvml, str]]:
        answer = getattr(nvml, self.call)(handle, *(getattr(nvml, n) for n in self.arguments))
        return product([answer[0] if isinstance(answer, list) else answer], self.of)

    def _of_fields(
        self, nvml: driver.Nvml, handle: driver.Handle
    ) -> Iterator[tuple[driver.Nvml, str]]:
        ids = [getattr(nvml, name) for name in self.fields]
        fields = [(number, _ALL_LINKS) for number in ids] if self.links else ids
        for answer, part in zip(
            nvml.nvmlDeviceGetFieldValues(handle, fields), self.of, strict=True
        ):
            if answer.nvmlReturn != nvml.NVML_SUCCESS:
                raise nvml.NVMLError(answer.nvmlReturn)
            if answer.valueType == _UNSIGNED_INT and part != "uiVal":
                raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
            yield answer.value, part


class _NvmlReading(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One thing that a device may be asked for; its fields are explained in readings.toml."""

    name: str
    way: tuple[_Way, ...]
    often: bool = False
    of_parts: bool = False
    watched: bool = False
    quiet: bool = False
    by_gpm: str = ""


_TABLE = Path(__file__).with_name("readings.toml").read_text(encoding="utf-8")
READINGS = msgspec.convert(tomllib.loads(_TABLE)["reading"], tuple[_NvmlReading, ...])
_PCIE = "PCIe traffic counters"


# Of one core that a reading of all devices may take, at every tick and of what moves slowly; one
# that costs more comes less often.
OFTEN_SHARE = 0.02
SLOW_SHARE = 0.005
_EARLY_S = 0.05
FIRST_S = 0.25  # between two looks for the job, until it is seen on a device
_STUBBORN = 10  # failures in a row that are worth a note
_BUSY = "util.kernel_time"
GPM_SLOTS = "SM, tensor, FP32 and device memory activity"


@dataclass(slots=True, kw_only=True)
class DeviceRow:
    """What one device says at a tick.

    Attributes:
        key: of the device, as in `GpuIdentity`.
        values: what is known now: slots in slot units, and counters of `recording.COUNTERS`.
        holders: the processes on the device by the driver's numbers; None where not asked.
    """

    key: str
    values: dict[str, float] = field(default_factory=dict)
    holders: Mapping[int, Holder] | None = None


class Device:
    """What is read of one device at every tick.

    Args:
        nvml: the module `pynvml`, initialised.
        identity: what its rows are called.
        handle: of the device or MIG instance.
        split: whether it is a device with MIG instances, which answer for parts of it.
        of: the device that this is an instance of, None for a whole device.
        instance: the GPU instance, None for a whole device.
        shared: what all devices share.
    """

    def __init__(  # noqa: PLR0913 - what tells a device from an instance
        self,
        nvml: driver.Nvml,
        identity: GpuIdentity,
        handle: driver.Handle,
        shared: "Shared",
        *,
        split: bool = False,
        of: "Device | None" = None,
        instance: int | None = None,
    ) -> None:
        self.identity, self.handle, self.lost = identity, handle, False
        self._nvml, self._shared, self._of, self._instance = nvml, shared, of, instance
        self._split = split
        self._is_shared = self._is_listed = False
        early_s = min(_EARLY_S, shared.slow_s / 4)
        slow = (shared.slow_s, SLOW_SHARE / shared.devices, early_s)
        self._paces = {
            r: Pace(0.0, OFTEN_SHARE / shared.devices) if r.often else Pace(*slow)
            for r in READINGS
            if (r.of_parts or of is None) and not (split and r.watched)
        }
        self._way = {reading.name: 0 for reading in self._paces}
        self._failures: Counter[str] = Counter()
        self._process_pace = Pace(*slow)
        # Until the job is seen somewhere: it may live for a second.
        self._first_pace = Pace(min(FIRST_S, shared.slow_s), SLOW_SHARE / shared.devices)
        self._utilisation = ProcessUtilisation(nvml)
        self._has_utilisation = of is None
        self._gpm_pace = Pace(LEAST_S, OFTEN_SHARE / shared.devices)
        self._gpm: Gpm | None = None
        if not split:
            self._open_gpm()

    @property
    def label(self) -> str:
        """What notes call it."""
        return f"GPU {self.identity.key}"

    def read(self, now_s: float, pids: Collection[int], *, full: bool = False) -> DeviceRow:
        """Return what is known now; only the key where nothing is."""
        row = DeviceRow(key=self.identity.key)
        if self._of is not None and self._of.lost:
            self.lost = True
        if self.lost:
            return row
        unused = self._unused
        if unused and (full or not self._process_pace.due(now_s)):
            return row
        for reading, pace in tuple(self._paces.items()):
            if reading.watched if unused else (full or pace.due(now_s)):
                with pace.taking(now_s):
                    self._ask(reading, row)
        # At its end a job's processes are gone, and so is their memory.
        met = self._shared.processes.met
        pace = self._process_pace if met or not pids else self._first_pace
        if not full and pace.due(now_s):
            with pace.taking(now_s):
                self._try("processes", row, lambda: self._processes(row, pids))
        if unused:
            return row
        if self._is_shared:
            self._try("utilisation of processes", row, lambda: self._own_share(row, now_s, pids))
        self._read_gpm(row, now_s)
        row.values |= self._shared.pcie.take(self.identity.key)
        return row

    def close(self) -> None:
        """Give back what was allocated."""
        if self._gpm is not None:
            self._gpm.close()

    def _open_gpm(self) -> None:
        of = self._of or self
        try:
            self._gpm = Gpm(self._nvml, of.handle, self._instance)
        except driver.failures(self._nvml) as error:
            code = driver.code_of(error)
            why = (
                driver.LACKING[driver.Code(code)]
                if driver.verdict(code) is driver.CodeVerdict.NEVER
                else str(error)
            )
            self._shared.notes.lacks(self.label, GPM_SLOTS, why)

    def _read_gpm(self, row: DeviceRow, now_s: float) -> None:
        gpm = self._gpm
        if gpm is None or not self._gpm_pace.due(now_s):
            return
        with self._gpm_pace.taking(now_s):
            self._try(GPM_SLOTS, row, lambda: gpm.read(now_s))
        self._drop_counters(row)
        if self._is_shared and self._has_utilisation and self._utilisation.others_ran:
            row.values = {slot: v for slot, v in row.values.items() if slot not in OF_ALL}

    @property
    def _unused(self) -> bool:
        """Whether the job was seen on other devices, and not on this one."""
        met = self._shared.processes.met
        in_use = self.identity.key in met or not (self._is_listed or self._split)
        return bool(met) and not (in_use or self._shared.chosen)

    def _processes(self, row: DeviceRow, pids: Collection[int]) -> dict[str, float]:
        if self._split:
            return {}
        processes, key = self._shared.processes, self.identity.key
        self._is_listed = False
        holders = processes.holders(key, self.handle)
        self._is_listed = True
        readings = processes.of_job(key, holders, pids)
        row.holders = holders
        own = [holder for pid, holder in holders.items() if pid in pids]
        foreign = (holder for pid, holder in holders.items() if pid not in pids)
        self._is_shared = bool(own) and any(holder.computes for holder in foreign)
        if self._is_shared and any(holder.by_server for holder in own):
            self._cannot_tell_apart("under MPS the driver counts all work as the server's")
        return readings

    def _own_share(self, row: DeviceRow, now_s: float, pids: Collection[int]) -> dict[str, float]:
        """Return the job's own use of a device on which others compute too.

        All of it where unsaid.
        """
        total = row.values.get(_BUSY)
        if not self._has_utilisation or total is None:
            return {}
        try:
            own = self._utilisation.share(self.handle, pids, now_s, total)
        except driver.failures(self._nvml) as error:
            if driver.verdict(driver.code_of(error)) is not driver.CodeVerdict.NEVER:
                raise
            self._cannot_tell_apart("the driver does not tell the processes on it apart")
            return {}
        if own is None:
            del row.values[_BUSY]
            return {}
        return {_BUSY: own}

    def _cannot_tell_apart(self, why: str) -> None:
        if self._has_utilisation:
            self._has_utilisation = False
            self._shared.notes.say(f"{self.label}: {why}, so its utilisation is of all.")

    def _ask(self, reading: _NvmlReading, row: DeviceRow) -> None:
        nvml = self._nvml
        while not self.lost:
            way = reading.way[self._way[reading.name]]
            try:
                row.values.update(way.read(nvml, self.handle))
            except driver.failures(nvml) as error:
                code = driver.code_of(error)
                stuck = self._failures[reading.name] >= _STUBBORN - 1
                has_more = self._way[reading.name] + 1 < len(reading.way)
                if has_more and (stuck or driver.verdict(code) is driver.CodeVerdict.NEVER):
                    self._way[reading.name] += 1
                    continue
                self._fail(reading.name, code, reading)
            else:
                self._failures.pop(reading.name, None)
            return

    def _try(self, reading: str, row: DeviceRow, read: Callable[[], Mapping[str, float]]) -> None:
        if self.lost:
            return
        try:
            row.values.update(read())
        except driver.failures(self._nvml) as error:
            self._fail(reading, driver.code_of(error))
        else:
            self._failures.pop(reading, None)

    def _fail(self, name: str, code: int, reading: _NvmlReading | None = None) -> None:
        """Draw the consequence of a failed call."""
        outcome = driver.verdict(code)
        if outcome is driver.CodeVerdict.GONE:
            self._lose(code)
        elif outcome is driver.CodeVerdict.NEVER:
            self._drop(name, code, reading)
        else:
            self._failures[name] += 1
            if self._failures[name] == _STUBBORN:
                why = self._nvml.NVMLError(code)
                self._shared.notes.say(
                    f"{self.label}: {name} failed {_STUBBORN} times in a row ({why}); "
                    "it is still tried."
                )

    def _lose(self, code: int) -> None:
        self.lost = True
        after = self._shared.elapsed_s()
        how = driver.LOST[driver.Code(code)]
        self._shared.notes.say(
            f"{self.label} {how} {after:.0f} s after the start; its readings end there. "
            "Look for its Xid in `dmesg`."
        )

    def _drop(self, name: str, code: int, reading: _NvmlReading | None) -> None:
        if reading is not None:
            self._paces.pop(reading, None)
        elif name == GPM_SLOTS:
            self._gpm = None
        if name == _PCIE:
            self._shared.pcie.add(self.identity.key, self.handle)
        if reading is None or not reading.quiet:
            self._shared.notes.lacks(self.label, name, driver.LACKING[driver.Code(code)])

    def _drop_counters(self, row: DeviceRow) -> None:
        """Leave to GPM what it measures: it is exact between any two ticks."""
        for reading in READINGS:
            if reading.by_gpm in row.values:
                self._paces.pop(reading, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the devices of one reader share.

    Attributes:
        devices: how many there are.
        slow_s: between two readings of what moves slowly.
        notes: what a reader of the profile should know.
        processes: the memory of the job's processes.
        pcie: the traffic of devices without counters.
        chosen: whether the user has chosen the devices, so that none is set aside.
        elapsed_s: seconds since the start.
    """

    devices: int
    slow_s: float
    notes: Notes
    processes: ProcessMemory
    pcie: PcieThread
    elapsed_s: Callable[[], float]
    chosen: bool = False
