"""The GPUs, asked in a thread of their own: a call of the driver that hangs holds nothing up."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

from telemetry.measure.nvml.reader import GpuUnavailableError, NvmlReader

if TYPE_CHECKING:
    from collections.abc import Collection

    from telemetry.measure.nvml.device import DeviceRow
    from telemetry.recording.recording import GpuIdentity

PATIENCE_S = 0.05  # a tick waits so long for its answer; a later one comes with the next tick
LAST_PATIENCE_S = 0.3
_LONG_S = 5.0  # an answer that takes longer is said


class GpuThread:
    """What `NvmlReader` reads, opened and read in a thread.

    Until the driver is opened there are no devices; `problems` says why it could not be.

    Args:
        gpus: the driver's indices, None for all.

    Attributes:
        identities: of the devices, as `NvmlReader` has them.
        facts: of the machine: `interconnect` and `driver`, once they are known.
        problems: why no device can be read.
    """

    def __init__(self, gpus: tuple[int, ...] | None) -> None:
        self.identities: tuple[GpuIdentity, ...] = ()
        self.facts: dict[str, str | None] = {}
        self.problems: tuple[str, ...] = ()
        self._gpus = gpus
        self._notes: list[str] = []
        self._asked: queue.SimpleQueue[tuple[Collection[int], bool]] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[tuple[float, list[DeviceRow]]] = queue.SimpleQueue()
        self._since_s: float | None = time.monotonic()  # opening is the first thing asked
        self._longest_s = 0.0
        threading.Thread(target=self._serve, name="nvml", daemon=True).start()

    @property
    def notes(self) -> list[str]:
        """What a reader of the profile should know, as far as it is known now."""
        silent_s = 0.0 if self._since_s is None else time.monotonic() - self._since_s
        notes = [*self.problems, *self._notes]
        if silent_s > _LONG_S:
            notes.append("the NVIDIA driver stopped answering: GPU readings end before the job.")
        elif self._longest_s > _LONG_S:
            notes.append(
                f"the NVIDIA driver once took {self._longest_s:.0f} s to answer; GPU readings have "
                "a hole there."
            )
        return notes

    def read(
        self, pids: Collection[int] = (), *, everything: bool = False
    ) -> list[tuple[float, list[DeviceRow]]]:
        """Return what has been read since the last call: seconds of `time.monotonic`, and rows.

        Mostly that is the answer to this call. While the driver takes its time it is nothing, and
        what was asked last comes with a later call.

        Args:
            pids: the processes of the job.
            everything: as in `NvmlReader.read`; waits a little longer.
        """
        patience_s = LAST_PATIENCE_S if everything else PATIENCE_S
        found = self._heard(patience_s)  # of what was asked before
        if self._since_s is None and not self.problems:
            self._since_s = time.monotonic()
            self._asked.put((frozenset(pids), everything))
            found += self._heard(patience_s)
        return found

    def _heard(self, patience_s: float) -> list[tuple[float, list[DeviceRow]]]:
        if self._since_s is None:
            return []
        try:
            taken_s, rows = self._told.get(timeout=patience_s)
        except queue.Empty:
            return []
        self._longest_s = max(self._longest_s, time.monotonic() - self._since_s)
        self._since_s = None
        return [(taken_s, rows)] if rows else []

    def _serve(self) -> None:
        try:
            reader = NvmlReader(self._gpus)
        except GpuUnavailableError as error:
            self.problems = error.problems
            self._told.put((time.monotonic(), []))
            return
        self._notes = reader.notes
        self.identities = reader.identities
        self.facts = {"interconnect": reader.interconnect, "driver": reader.driver}
        self._told.put((time.monotonic(), []))
        while True:
            pids, everything = self._asked.get()
            taken_s = time.monotonic()
            rows = reader.read(pids, everything=everything)
            self._notes = reader.notes
            self._told.put((taken_s, rows))
