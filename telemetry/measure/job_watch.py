"""The job on its machine: its processes, what they use of the host, and which GPUs they are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telemetry.measure.job_devices import JobDevices
from telemetry.measure.machine.host import EVERY_S, HostReader
from telemetry.measure.machine.identity import MachineIdentityReader
from telemetry.measure.machine.process_tree import ProcessTree, own_number

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pricing.json_value import Json
    from telemetry.measure.nvml.device import DeviceRow
    from telemetry.recording.recording import GpuIdentity


class JobWatch:
    """Follows a job, or the whole machine where no job is named.

    Args:
        pid: the process at the job's top, None for the whole machine.
        mark: NAME=VALUE that stands in the environment of the job's processes alone.
        chosen: whether the user has said which GPUs are the job's.
        clock_s: seconds between readings where the host is all that is read; None beside GPUs.
        metadata: whether the metadata service of a cloud may be asked which machine this is.
    """

    def __init__(
        self,
        pid: int | None,
        mark: bytes | None = None,
        *,
        chosen: bool = False,
        clock_s: float | None = None,
        metadata: bool = True,
    ) -> None:
        self._identity = MachineIdentityReader(metadata=metadata)
        tree = None if pid is None else ProcessTree(own_number(pid), mark)
        self._tree = tree
        self._chosen = chosen
        self._devices = None if tree is None else JobDevices(tree, chosen=chosen)
        self._host = HostReader(tree, EVERY_S if clock_s is None else min(EVERY_S, clock_s))

    @property
    def pids(self) -> Collection[int]:
        """The job's processes at the last reading of the host."""
        return frozenset() if self._tree is None else frozenset(self._tree.members)

    def read_host(self, now_s: float, *, last: bool = False) -> dict[str, float]:
        """Return what `HostReader.read` does; it finds the job's processes, too."""
        return self._host.read(now_s, last=last)

    def saw(self, row: DeviceRow) -> None:
        """Look at the processes on a device, where they were asked for."""
        if self._devices is not None and row.holders:
            self._devices.saw(row.key, row.holders)

    def facts(self, devices: Sequence[GpuIdentity]) -> dict[str, Json]:
        """Return what a capture says of job and machine, as far as it is known now.

        Args:
            devices: those that are read.
        """
        found: dict[str, Json] = {
            **self._identity.known(),
            "cpu_cores": self._host.cpu_cores,
            "ram_gib": self._host.ram_gib,
            "machine_cores": self._host.machine_cores,
            "machine_ram_gib": round(self._host.machine_ram_gib, 3),
        }
        if devices and not self._chosen:
            found["machine_gpus"] = sum(gpu.partition is None for gpu in devices)
        if devices and self._devices is not None:
            self._devices.look(devices)
            found |= self._devices.facts(devices)
        return found

    @property
    def killed_for_memory(self) -> int:
        """How many processes of the job's control group the kernel killed for want of memory."""
        return self._host.killed_for_memory

    def notes(self, devices: Sequence[GpuIdentity]) -> list[str]:
        """Return what a reader of the profile should know, at the end."""
        notes = [] if self._devices is None else self._devices.notes(devices)
        if killed := self.killed_for_memory:
            which = "a process" if killed == 1 else f"{killed} processes"
            notes.append(
                f"the kernel killed {which} of the job's control group for want of memory."
            )
        return notes
