"""Reads NVIDIA GPUs while a job runs, through the driver's own library (NVML).

`NvmlReader` is opened once: which GPUs there are, which MIG instances they are cut into and how
they are linked is asked then. Each `read` returns what every device says at that tick. A reading
that a device or a driver does not have is dropped after its first answer and named once in `notes`,
one that failed is tried again, and a device that is lost ends alone.
"""

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import cast

from pricing.errors import InputError
from telemetry.measure.capture_file import Notes
from telemetry.measure.driver import LACKING, LOST, WITHOUT, Code, Handle, Nvml, failures, refusal
from telemetry.measure.nvml_counters import PcieThread
from telemetry.measure.nvml_device import Device, DeviceRow, Shared
from telemetry.measure.nvml_processes import ProcessMemory
from telemetry.readers.units import GIB
from telemetry.recording.recording import GpuIdentity

# "NVIDIA H100 80GB HBM3 MIG 1g.10gb", and "... MIG 1c.3g.40gb" where a compute instance is a part
_MIG_NAME = re.compile(r"\bMIG\s+(\S+)\s*$")
# Cards that are joined in pairs by a bridge, if at all; others through the board.
_CARD = re.compile(r"\b(PCIe|NVL)\b", re.IGNORECASE)


def identity_of(nvml: Nvml, handle: Handle, index: int) -> GpuIdentity:
    """Return who a whole device is; what it does not say is None."""
    return GpuIdentity(
        key=str(index),
        index=index,
        uuid=_text(nvml, nvml.nvmlDeviceGetUUID, handle),
        model=_text(nvml, nvml.nvmlDeviceGetName, handle),
        memory_gib=_total_gib(nvml, handle),
    )


def instances(
    nvml: Nvml, device: GpuIdentity, handle: Handle
) -> Iterator[tuple[GpuIdentity, Handle, int]]:
    """Yield identity, handle and GPU instance of every MIG device of a device, in their order.

    Raises:
        pynvml.NVMLError: the device has no MIG mode.
    """
    if nvml.nvmlDeviceGetMigMode(handle)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            gpu_instance = nvml.nvmlDeviceGetGpuInstanceId(part)
            compute_instance = nvml.nvmlDeviceGetComputeInstanceId(part)
        except failures(nvml):  # no instance at this place
            continue
        match = _MIG_NAME.search(_text(nvml, nvml.nvmlDeviceGetName, part) or "")
        profile = match[1] if match else "instance"
        shares = "c." in profile
        slice_id = f"{gpu_instance}.{compute_instance}" if shares else str(gpu_instance)
        who = GpuIdentity(
            key=f"{device.key}:{slice_id}",
            index=device.index,
            uuid=device.uuid,
            model=device.model,
            memory_gib=_total_gib(nvml, part),
            partition=f"{profile} {slice_id}",
            mig_uuid=_text(nvml, nvml.nvmlDeviceGetUUID, part),
        )
        yield who, part, gpu_instance


def interconnect(nvml: Nvml, devices: Sequence[tuple[GpuIdentity, Handle]]) -> str | None:
    """Return what joins the devices: single, pcie, nvlink-bridge, nvlink; None where none says.

    Devices are joined by NVLink when every pair is; where some pairs are, by bridges.
    """
    if len(devices) == 1:
        return "single"
    linked = []
    for (_, first), (_, second) in combinations(devices, 2):
        try:
            status = nvml.nvmlDeviceGetP2PStatus(first, second, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
        except failures(nvml):
            return None
        linked.append(status == nvml.NVML_P2P_STATUS_OK)
    if not any(linked):
        return "pcie"
    cards = any(_CARD.search(who.model or "") for who, _ in devices)
    return "nvlink" if all(linked) and not cards else "nvlink-bridge"


def _total_gib(nvml: Nvml, handle: Handle) -> float | None:
    for arguments in ((nvml.nvmlMemory_v2,), ()):
        try:
            return float(nvml.nvmlDeviceGetMemoryInfo(handle, *arguments).total) / GIB
        except failures(nvml):
            continue
    return None


def _text(nvml: Nvml, call: Callable[..., object], *handle: Handle) -> str | None:
    # Of a device that is falling off the bus.
    failed: tuple[type[Exception], ...] = (*failures(nvml), UnicodeDecodeError)
    try:
        return str(call(*handle)) or None
    except failed:
        return None


SLOW_S = 1.0  # between two readings of what moves slowly


class GpuUnavailableError(InputError):
    """No GPU, or not the ones asked for, can be read; says why and what to type next."""


class NvmlReader:
    """The GPUs of this machine, read through NVML.

    After a successful opening nothing raises: what fails is in `notes`.

    Args:
        gpus: the driver's indices of the devices to read, None for all.
        slow_s: seconds between two readings of what moves slowly (temperature, limits, process
            memory).
        clock: seconds, steady; for tests.

    Attributes:
        identities: one for each device, in the driver's order, each followed by its MIG instances.
        driver: the driver's version, None where it is not said.
        interconnect: between the devices: single, pcie, nvlink-bridge or nvlink; None where it
            is not said.

    Raises:
        GpuUnavailableError: no device, or not those asked for, can be read.
    """

    def __init__(
        self,
        gpus: tuple[int, ...] | None = None,
        *,
        slow_s: float = SLOW_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        import pynvml  # noqa: PLC0415 - 8,000 lines that only a measuring command needs

        self._nvml: Nvml = pynvml
        self._notes = Notes()
        self._clock, self._start_s = clock, clock()
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise GpuUnavailableError(refusal(error)) from error
        try:
            self._open(gpus, slow_s)
        except BaseException:
            pynvml.nvmlShutdown()
            raise

    def _open(self, gpus: tuple[int, ...] | None, slow_s: float) -> None:
        devices = list(self._devices_asked(gpus))
        self.driver = _text(self._nvml, self._nvml.nvmlSystemGetDriverVersion)
        self.interconnect = interconnect(self._nvml, devices)
        self._pcie = PcieThread(self._nvml, self._no_pcie)
        shared = Shared(
            devices=len(devices),
            slow_s=slow_s,
            notes=self._notes,
            processes=ProcessMemory(self._nvml, self._notes),
            pcie=self._pcie,
            elapsed_s=lambda: self._clock() - self._start_s,
            chosen=gpus is not None,
        )
        self._devices: list[Device] = []
        for who, handle in devices:
            parts = self._parts(who, handle)
            device = Device(self._nvml, who, handle, shared, split=bool(parts))
            self._devices.append(device)
            self._devices += [
                Device(self._nvml, part, part_handle, shared, of=device, instance=instance)
                for part, part_handle, instance in parts
            ]
        self.identities: tuple[GpuIdentity, ...] = tuple(d.identity for d in self._devices)

    def close(self) -> None:
        """Let go of the driver."""
        self._pcie.close()
        try:
            for device in self._devices:
                device.close()
            self._nvml.nvmlShutdown()
        except failures(self._nvml) as error:
            self._notes.say(f"The driver did not let go ({error}); nothing measured is lost.")

    @property
    def notes(self) -> list[str]:
        """What a reader of the profile should know; it grows while the job runs."""
        return self._notes.all()

    @property
    def lost(self) -> frozenset[str]:
        """The keys of devices that will answer nothing any more."""
        return frozenset(d.identity.key for d in self._devices if d.lost)

    def ask(self, call: str, key: str) -> object:
        """Return what a call of pynvml says of a device; None where it says nothing."""
        device = next(device for device in self._devices if device.identity.key == key)
        try:
            return cast("object", getattr(self._nvml, call)(device.handle))
        except failures(self._nvml):
            return None

    def read(self, pids: Collection[int] = (), *, full: bool = False) -> list[DeviceRow]:
        """Return a row for each device that says something.

        About one row a second has the processes on the device. Once the job was seen on some
        devices, the others are read that often, and little of them. What is not in a row is
        unknown at this tick; what moves slowly is in about one row a second.

        Args:
            pids: the processes of the job, for `mem.process_gib`.
            full: read what moves slowly too, whenever it was last read: at the end of a job, so
                that counters reach to its end. Only its processes' memory is not read then.
        """
        now_s = self._clock()
        rows = [device.read(now_s, pids, full=full) for device in self._devices]
        return [row for row in rows if row.values or row.holders is not None]

    def _devices_asked(self, gpus: tuple[int, ...] | None) -> Iterator[tuple[GpuIdentity, Handle]]:
        """Yield identity and handle of the devices asked for, in the driver's order."""
        nvml = self._nvml
        count = self._count()
        if not count:
            raise GpuUnavailableError(
                f"the NVIDIA driver is there, but it has no GPU that it can use. {WITHOUT}"
            )
        indices = range(count) if gpus is None else sorted(set(gpus))
        bad = [index for index in indices if not 0 <= index < count]
        if bad:
            available = "only GPU 0" if count == 1 else f"GPUs 0 to {count - 1}"
            listed = ", ".join(str(index) for index in bad)
            raise GpuUnavailableError(
                f"--gpus {listed}: this machine has {available}. `nvidia-smi -L` lists what each "
                "is."
            )
        failed: list[str] = []
        for index in indices:
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
            except nvml.NVMLError as error:
                failed.append(f"GPU {index} cannot be read: {_why(error)}.")
                continue
            yield identity_of(nvml, handle, index), handle
        if failed and (gpus is not None or len(failed) == count):
            raise GpuUnavailableError([*failed[:-1], f"{failed[-1]} {WITHOUT}"])
        for sentence in failed:
            self._notes.say(sentence)

    def _count(self) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetCount())
        except self._nvml.NVMLError as error:
            raise GpuUnavailableError(refusal(error)) from error

    def _parts(self, who: GpuIdentity, handle: Handle) -> list[tuple[GpuIdentity, Handle, int]]:
        try:
            parts = list(instances(self._nvml, who, handle))
        except failures(self._nvml):  # as most devices: no MIG
            return []
        if parts:
            self._notes.say(
                f"GPU {who.key} is split into {len(parts)} MIG instances: the driver gives no "
                "utilisation for them (util.kernel_time is unknown, not 0)."
            )
        return parts

    def _no_pcie(self, key: str, code: int) -> None:
        if code in LACKING:
            self._notes.lacks(f"GPU {key}", "PCIe traffic", LACKING[Code(code)])


def _why(error: Nvml) -> str:
    if error.value == Code.NO_PERMISSION:
        return "this user may not talk to it"
    reasons = {int(code): f"it {text}" for code, text in LOST.items()}
    return reasons.get(error.value, str(error))
