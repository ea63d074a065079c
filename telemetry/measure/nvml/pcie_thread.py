"""PCIe traffic of devices without byte counters, sampled beside the ticks: each call blocks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from telemetry.measure.nvml.codes import CodeVerdict, code_of, failures, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from telemetry.measure.nvml.codes import Handle, Nvml

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
        self._found: dict[str, dict[str, float]] = {}
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
            return self._found.pop(key, {})

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
            found = {
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
            self._found[key] = found
