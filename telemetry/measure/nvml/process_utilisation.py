"""How busy a shared device is with the job's own processes, as the driver counts it per process."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from telemetry.measure.nvml.codes import Code, code_of, failures

if TYPE_CHECKING:
    from collections.abc import Collection

    from telemetry.measure.nvml.codes import Handle, Nvml

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
        self, handle: Handle, pids: Collection[int], now_s: float, whole: float
    ) -> float | None:
        """Return the job's part of a device's `util.kernel_time`; None before it is known.

        Args:
            handle: of the device.
            pids: the job's processes.
            now_s: seconds, steady.
            whole: the device's, of all processes.

        Raises:
            pynvml.NVMLError: the device or the driver does not say it.
        """
        if now_s - self._asked_s >= EVERY_S:
            self._asked_s = now_s
            self._ask(handle, pids)
        return None if self._own is None else min(self._own, whole)

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
        self._own = min(1.0, sum(sum(each) / len(each) for each in shares.values()))
