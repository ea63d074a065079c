"""Counters that are sampled: GPU performance monitoring (GPM), and PCIe traffic without a counter.

GPM tells what the SMs, pipes and links did, on Hopper and later. The driver counts; a metric is the
mean between two samples, so consecutive samples leave no gap. PCIe traffic of older devices is
sampled in a thread beside the ticks, because each call blocks.

Calls, identifiers and units: NVIDIA's NVML API reference, "GPM".
"""

import math
import threading
from collections.abc import Callable

from telemetry.measure.driver import CodeVerdict, Handle, Nvml, code_of, failures, verdict
from telemetry.recording.recording import COUNTERS

# What a sample reads is refreshed about every 100 ms; the reference asks for more than that between
# two samples.
LEAST_S = 0.11
# metric: slot, factor, most
_OF_PARTS = {
    "NVML_GPM_METRIC_SM_UTIL": ("util.sm_active", 0.01, 1.0),
    "NVML_GPM_METRIC_SM_OCCUPANCY": ("util.sm_occupancy", 0.01, 1.0),
    "NVML_GPM_METRIC_ANY_TENSOR_UTIL": ("util.tensor_active", 0.01, 1.0),
    "NVML_GPM_METRIC_FP32_UTIL": ("util.fp32_active", 0.01, 1.0),
    "NVML_GPM_METRIC_DRAM_BW_UTIL": ("util.dram_active", 0.01, 1.0),
}
_OF_DEVICES = {
    **_OF_PARTS,
    "NVML_GPM_METRIC_PCIE_TX_PER_SEC": ("io.pcie_tx_mib_s", 1.0, math.inf),
    "NVML_GPM_METRIC_PCIE_RX_PER_SEC": ("io.pcie_rx_mib_s", 1.0, math.inf),
    "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC": ("io.nvlink_tx_mib_s", 1.0, math.inf),
    "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC": ("io.nvlink_rx_mib_s", 1.0, math.inf),
}
_ACTIVITY = frozenset(slot for slot, _, _ in _OF_PARTS.values())
_COUNTER = {slot: name for name, slot in COUNTERS.items() if name.startswith("counter.gpm_")}

OF_ALL = _ACTIVITY | {_COUNTER[slot] for slot in _ACTIVITY}
"""What says nothing of a job whose device others use, too: all processes count together."""


class Gpm:
    """The metrics of one device, or of one GPU instance of it.

    Args:
        nvml: the module `pynvml`, initialised.
        device: handle of the whole device.
        instance: GPU instance, None for the whole device.

    Raises:
        pynvml.NVMLError: the device or the driver has no GPM.
    """

    def __init__(self, nvml: Nvml, device: Handle, instance: int | None) -> None:
        if not nvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        self._nvml, self._device, self._instance = nvml, device, instance
        table = _OF_DEVICES if instance is None else _OF_PARTS
        self._slots = list(table.values())
        self._asked = nvml.c_nvmlGpmMetricsGet_t()
        self._asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        self._asked.numMetrics = len(table)
        self._metrics = [self._asked.metrics[i] for i in range(len(table))]
        for metric, name in zip(self._metrics, table, strict=True):
            metric.metricId = getattr(nvml, name)
        self._first, self._second = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        self._taken_s: float | None = None
        self._totals: dict[str, float] = {}

    def read(self, now_s: float) -> dict[str, float]:
        """Return the means since the last call by slot, and their sums over time as counters.

        A mean belongs to the time before it. A counter says so: its rate from one row to the next
        is the mean between the two. The first row, as one after a failure, starts the counters.

        Raises:
            pynvml.NVMLError: the sample could not be taken; the next call starts anew.
        """
        nvml, before_s = self._nvml, self._taken_s
        self._taken_s = None
        if self._instance is None:
            nvml.nvmlGpmSampleGet(self._device, self._second)
        else:
            nvml.nvmlGpmMigSampleGet(self._device, self._instance, self._second)
        self._first, self._second = self._second, self._first
        self._taken_s = now_s
        if before_s is None:
            self._totals = {_COUNTER[slot]: 0.0 for slot, _, _ in self._slots}
            return dict(self._totals)
        self._asked.sample1, self._asked.sample2 = self._second, self._first
        nvml.nvmlGpmMetricsGet(self._asked)
        return self._mean_metrics(now_s - before_s)

    def _mean_metrics(self, lasted_s: float) -> dict[str, float]:
        row: dict[str, float] = {}
        for metric, (slot, factor, maximum) in zip(self._metrics, self._slots, strict=True):
            value = metric.value * factor
            if metric.nvmlReturn == self._nvml.NVML_SUCCESS and value >= 0:  # not NaN either
                row[slot] = min(value, maximum)  # counters of a moment apart can give 100.1 %
                self._totals[_COUNTER[slot]] += row[slot] * lasted_s
                row[_COUNTER[slot]] = self._totals[_COUNTER[slot]]
        return row

    def close(self) -> None:
        """Give the samples back."""
        for sample in (self._first, self._second):
            self._nvml.nvmlGpmSampleFree(sample)


KIB_PER_MIB = 1024
_EVERY_S = 0.25  # between two calls for one device
_LEAST_S = 0.125  # between two calls for any
_JOIN_S = 1.0
_GOLDEN = 0.618_034  # its multiples spread evenly between whole numbers
_SLOTS = {
    "NVML_PCIE_UTIL_TX_BYTES": "io.pcie_tx_mib_s",
    "NVML_PCIE_UTIL_RX_BYTES": "io.pcie_rx_mib_s",
}


class PcieThread:
    """Asks one device after the other for its traffic, four times a second each, eight in all.

    The driver counts for 20 ms and the call waits for it, so this is a sample: over a minute a fair
    one, over a second a rough one. The driver sleeps meanwhile, and so does the thread.

    Args:
        nvml: the module `pynvml`, initialised.
        lacking: called with key and code of a device that does not answer; it is not asked again.
    """

    def __init__(self, nvml: Nvml, lacking: Callable[[str, int], None]) -> None:
        self._nvml = nvml
        self._lacking = lacking
        self._handles: dict[str, Handle] = {}
        self._traffic: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, key: str, handle: Handle) -> None:
        """Watch a device too."""
        with self._lock:
            self._handles[key] = handle
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="pcie", daemon=True)
            self._thread.start()

    def take(self, key: str) -> dict[str, float]:
        """Return what was measured of a device since the last call, by slot."""
        with self._lock:
            return self._traffic.pop(key, {})

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def _watch(self) -> None:
        turn = 0
        while not self._end.is_set():
            with self._lock:
                handles = list(self._handles.items())
            for key, handle in handles:
                self._ask(key, handle)
                pause_s = max(_LEAST_S, _EVERY_S / len(handles))
                # Uneven, so as not to be in step with what the job does in a rhythm of its own.
                self._end.wait(pause_s * (0.5 + turn * _GOLDEN % 1.0))
                turn += 1
            if not handles:
                self._end.wait(_EVERY_S)

    def _ask(self, key: str, handle: Handle) -> None:
        nvml = self._nvml
        try:
            traffic = {
                slot: nvml.nvmlDeviceGetPcieThroughput(handle, getattr(nvml, name)) / KIB_PER_MIB
                for name, slot in _SLOTS.items()
            }
        except failures(nvml) as error:
            code = code_of(error)
            if verdict(code) is not CodeVerdict.LATER:
                with self._lock:
                    self._handles.pop(key, None)
                self._lacking(key, code)
            return
        with self._lock:
            self._traffic[key] = traffic
