"""Which devices there are, how they are split, and what joins them."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from telemetry.measure.nvml.codes import failures
from telemetry.parsing.units import GIB
from telemetry.recording.recording import GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from telemetry.measure.nvml.codes import Handle, Nvml

# "NVIDIA H100 80GB HBM3 MIG 1g.10gb", and "... MIG 1c.3g.40gb" where a compute instance is a part
_MIG_NAME = re.compile(r"\bMIG\s+(\S+)\s*$")
# Cards that are joined in pairs by a bridge, if at all; others through the board.
_CARD = re.compile(r"\b(PCIe|NVL)\b", re.IGNORECASE)


def identity(nvml: Nvml, handle: Handle, index: int) -> GpuIdentity:
    """Return who a whole device is; what it does not say is None."""
    return GpuIdentity(
        key=str(index),
        index=index,
        uuid=_text(nvml, nvml.nvmlDeviceGetUUID, handle),
        model=_text(nvml, nvml.nvmlDeviceGetName, handle),
        memory_gib=_total_gib(nvml, handle),
    )


def instances(
    nvml: Nvml, whole: GpuIdentity, handle: Handle
) -> Iterator[tuple[GpuIdentity, Handle, int]]:
    """Yield identity, handle and GPU instance of every MIG device of a device, in their order.

    Raises:
        pynvml.NVMLError: the device has no MIG mode.
    """
    if nvml.nvmlDeviceGetMigMode(handle)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return
    for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            gpu_instance = nvml.nvmlDeviceGetGpuInstanceId(part)
            compute_instance = nvml.nvmlDeviceGetComputeInstanceId(part)
        except failures(nvml):  # no instance at this place
            continue
        found = _MIG_NAME.search(_text(nvml, nvml.nvmlDeviceGetName, part) or "")
        profile = found[1] if found else "instance"
        shares = "c." in profile
        mine = f"{gpu_instance}.{compute_instance}" if shares else str(gpu_instance)
        who = GpuIdentity(
            key=f"{whole.key}:{mine}",
            index=whole.index,
            uuid=whole.uuid,
            model=whole.model,
            memory_gib=_total_gib(nvml, part),
            partition=f"{profile} {mine}",
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
    for (_, one), (_, other) in combinations(devices, 2):
        try:
            status = nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
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


def _text(nvml: Nvml, call: Callable[[Handle], object], handle: Handle) -> str | None:
    try:
        said = call(handle)
    except failures(nvml):
        return None
    except UnicodeDecodeError:  # of a device that is falling off the bus
        return None
    return str(said) or None
