"""What is read from a device through NVML: which call fills which slot, how often it is made.

Calls and units: NVIDIA's NVML API reference. Where two calls give the same, the better one comes
first; the next is tried when the device or the driver does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telemetry.parsing.units import GIB, MIB, THROTTLE_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from telemetry.measure.nvml.codes import Handle, Nvml

    # (pynvml, device handle) -> columns of samples
    Way = Callable[[Nvml, Handle], dict[str, float]]

KIB_PER_MIB = 1024
_ALL_LINKS = 0xFFFF_FFFF  # nvmlFieldValue_t.scopeId: the sum over a device's links
_UNSIGNED_INT = 1  # nvmlValueType_t


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlReading:
    """One thing that a device may be asked for.

    Attributes:
        what: its name in notes.
        ways: calls that give it, the best first.
        often: at every tick; else at most once a second.
        of_parts: whether a MIG instance answers it, instead of its device.
        quiet: whether its absence is worth no note, since it says nothing about the job.
    """

    what: str
    ways: tuple[Way, ...]
    often: bool = False
    of_parts: bool = False
    quiet: bool = False


def fields(nvml: Nvml, handle: Handle, ids: list[int | tuple[int, int]]) -> list[Nvml]:
    """Return the values of fields.

    Raises:
        pynvml.NVMLError: one of them is not to be had.
    """
    values = list(nvml.nvmlDeviceGetFieldValues(handle, ids))
    for value in values:
        if value.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(value.nvmlReturn)
    return values


def _utilisation(nvml: Nvml, handle: Handle) -> dict[str, float]:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return {"util.kernel_time": rates.gpu / 100, "util.mem_controller": rates.memory / 100}


def _memory(nvml: Nvml, handle: Handle) -> dict[str, float]:
    """Return memory in use without what the driver reserves, as nvidia-smi shows it."""
    return {"mem.used_gib": nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used / GIB}


def _memory_v1(nvml: Nvml, handle: Handle) -> dict[str, float]:
    return {"mem.used_gib": nvml.nvmlDeviceGetMemoryInfo(handle).used / GIB}


def _power_instant(nvml: Nvml, handle: Handle) -> dict[str, float]:
    """Return the power now: what a device that gives no mean over a second has."""
    (now,) = fields(nvml, handle, [nvml.NVML_FI_DEV_POWER_INSTANT])
    return {"power.board_w": now.value.uiVal / 1e3}


def _power(nvml: Nvml, handle: Handle) -> dict[str, float]:
    """Return the power that nvidia-smi shows: mostly the last second's mean, so no gap at 1 Hz."""
    return {"power.board_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1e3}


def _energy(nvml: Nvml, handle: Handle) -> dict[str, float]:
    return {"counter.energy_j": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3}


def _clock(nvml: Nvml, handle: Handle) -> dict[str, float]:
    return {"clock.sm_mhz": float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))}


def _throttle(nvml: Nvml, handle: Handle) -> dict[str, float]:
    bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    return {"throttle.fraction": float(bool(bits & THROTTLE_BITS))}


def _throttle_before_535(nvml: Nvml, handle: Handle) -> dict[str, float]:
    bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {"throttle.fraction": float(bool(bits & THROTTLE_BITS))}


def _limit(nvml: Nvml, handle: Handle) -> dict[str, float]:
    return {"power.limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3}


def _temperature(nvml: Nvml, handle: Handle) -> dict[str, float]:
    celsius = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
    return {"temp.core_c": float(celsius)}


def _encoder(nvml: Nvml, handle: Handle) -> dict[str, float]:
    return {"util.encoder": nvml.nvmlDeviceGetEncoderUtilization(handle)[0] / 100}


def _decoder(nvml: Nvml, handle: Handle) -> dict[str, float]:
    return {"util.decoder": nvml.nvmlDeviceGetDecoderUtilization(handle)[0] / 100}


def _pcie(nvml: Nvml, handle: Handle) -> dict[str, float]:
    """Return bytes, where the counter has 64 bits: one of 32 overflows in a second's traffic."""
    sent, received = fields(
        nvml, handle, [nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES]
    )
    if _UNSIGNED_INT in (sent.valueType, received.valueType):
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return {
        "counter.pcie_tx_mib": sent.value.ullVal / MIB,
        "counter.pcie_rx_mib": received.value.ullVal / MIB,
    }


def _nvlink(nvml: Nvml, handle: Handle) -> dict[str, float]:
    """Return the KiB of payload over all links."""
    sent, received = fields(
        nvml,
        handle,
        [
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS),
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS),
        ],
    )
    return {
        "counter.nvlink_tx_mib": sent.value.ullVal / KIB_PER_MIB,
        "counter.nvlink_rx_mib": received.value.ullVal / KIB_PER_MIB,
    }


UTILISATION = NvmlReading(what="utilisation", ways=(_utilisation,), often=True)
PCIE = NvmlReading(what="PCIe traffic counters", ways=(_pcie,), quiet=True)
NVLINK = NvmlReading(what="NVLink traffic counters", ways=(_nvlink,), quiet=True)
READINGS = (
    UTILISATION,
    NvmlReading(what="memory in use", ways=(_memory, _memory_v1), often=True, of_parts=True),
    NvmlReading(what="power draw", ways=(_power, _power_instant), often=True),
    # At every tick, so that the first and the last joule are inside the measured time.
    NvmlReading(what="energy counter", ways=(_energy,), often=True, quiet=True),
    NvmlReading(what="SM clock", ways=(_clock,), often=True),
    NvmlReading(what="throttle reasons", ways=(_throttle, _throttle_before_535), often=True),
    NvmlReading(what="power limit", ways=(_limit,)),
    NvmlReading(what="temperature", ways=(_temperature,)),
    NvmlReading(what="encoder utilisation", ways=(_encoder,), quiet=True),
    NvmlReading(what="decoder utilisation", ways=(_decoder,), quiet=True),
    PCIE,
    NVLINK,
)
