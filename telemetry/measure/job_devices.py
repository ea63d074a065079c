"""Which GPUs of a machine are the job's.

The driver lists the processes on each device. A GPU is the job's, for the whole measurement, once
one of the job's processes was seen there. Where none ever was, it is what the job may use and
nobody else works on: the job may not have begun, or the driver may number its processes otherwise.

CUDA_VISIBLE_DEVICES is read as NVIDIA's CUDA programming guide describes it: indices, or prefixes
of UUIDs, MIG devices included; entries after the first that names no device are ignored. An empty
list, or one that begins with -1, is none. NVIDIA_VISIBLE_DEVICES is what the container toolkit was
told, and says which devices there are in a container.
"""

import os
import pwd
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pricing.tables import Json
from telemetry.measure.nvml_processes import Holder
from telemetry.measure.processes import ProcessTree, in_container, namespace
from telemetry.recording.recording import GPU_USERS, JOB_GPUS, GpuIdentity

CUDA, ORDER, TOOLKIT = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"
_BY_BUS = "PCI_BUS_ID"  # as the driver's own indices are ordered
_ALL, _NONE = "all", ("none", "void", "")


@dataclass(frozen=True, slots=True)
class Visible:
    """What an environment leaves to a process.

    Attributes:
        keys: of the devices, as `GpuIdentity` has them; None where it names none, so all.
        certain: False where CUDA numbers the devices in an order of its own, which is not known.
    """

    keys: tuple[str, ...] | None
    certain: bool = True


def variables(environment: bytes | None) -> dict[str, str]:
    """Return the variables that count here, from an environment as the kernel shows it."""
    values = {}
    for entry in (environment or b"").split(b"\0"):
        name, is_set, value = entry.decode(errors="replace").partition("=")
        if is_set and name in {CUDA, ORDER, TOOLKIT}:
            values[name] = value
    return values


def visible(
    variables: Mapping[str, str], devices: Sequence[GpuIdentity], *, in_container: bool = False
) -> Visible:
    """Return the devices that a process with these variables may use.

    Args:
        variables: of its environment.
        devices: all of the machine, in the driver's order.
        in_container: whether it runs in a container and we do not, so that its indices count from
            the first device of the container.
    """
    unsliced = [gpu for gpu in devices if gpu.partition is None]
    base: Sequence[GpuIdentity] = unsliced
    toolkit = variables.get(TOOLKIT)
    if in_container and toolkit is not None and toolkit.strip() != _ALL:
        listed = "" if toolkit.strip() in _NONE else toolkit
        base = [gpu for gpu in devices if gpu.key in _listed(listed, unsliced, devices)]
    text = variables.get(CUDA)
    if text is None:
        return Visible(None if base is unsliced else tuple(gpu.key for gpu in base))
    keys = _listed(text, base, devices)
    one_order = len({gpu.model for gpu in unsliced}) == 1 or variables.get(ORDER) == _BY_BUS
    by_index = any(entry.strip().isdecimal() for entry in text.split(","))
    if by_index and not one_order:
        return Visible(None, certain=False)
    return Visible(keys)


def together(sets: Iterable[Visible]) -> Visible:
    """Return what several processes of one job may use.

    A process that is told to use none, as loaders often are, takes nothing from the others; one
    that is told nothing, as launchers are not, adds nothing to those that are told.
    """
    all_sets = list(sets)
    keys = dict.fromkeys(key for entry in all_sets for key in entry.keys or ())
    certain = all(entry.certain for entry in all_sets)
    if keys:
        return Visible(tuple(keys), certain)
    open_to_all = any(entry.keys is None for entry in all_sets) or not all_sets
    return Visible(None if open_to_all else (), certain)


def _listed(
    text: str, base: Sequence[GpuIdentity], devices: Sequence[GpuIdentity]
) -> tuple[str, ...]:
    keys: dict[str, None] = {}
    for entry in text.split(","):
        gpu = _named(entry.strip(), base, devices)
        if gpu is None:
            break
        keys[gpu.key] = None
    return tuple(keys)


def _named(
    word: str, base: Sequence[GpuIdentity], devices: Sequence[GpuIdentity]
) -> GpuIdentity | None:
    if word.isdecimal():
        return base[int(word)] if int(word) < len(base) else None
    if word.startswith("MIG-GPU-"):  # before driver 470: the device, its instance, the part of it
        uuid, _, tail = word.removeprefix("MIG-").partition("/")
        instance = tail.partition("/")[0]
        parts = [gpu for gpu in devices if gpu.partition is not None and gpu.uuid == uuid]
        return next((p for p in parts if p.key.partition(":")[2].split(".")[0] == instance), None)
    names = [(gpu, gpu.mig_uuid if gpu.partition else gpu.uuid) for gpu in devices]
    same = [gpu for gpu, name in names if word and name and name.startswith(word)]
    return same[0] if len(same) == 1 and word.startswith(("GPU-", "MIG-")) else None


_UNKNOWN = "unknown"
# The server of NVIDIA's multi-process service works for its clients, which are listed themselves.
_SERVERS = ("nvidia-cuda-mps", "nvidia-persiste")


class JobDevices:
    """The devices of one job; told what is seen, asked for what follows from it.

    Args:
        tree: the job's processes.
        chosen: whether the user has chosen the devices, so that all that are read are the job's.
    """

    def __init__(self, tree: ProcessTree, *, chosen: bool = False) -> None:
        self._tree = tree
        self._chosen = chosen
        self._mine: dict[str, None] = {}
        self._users: dict[str, set[str]] = {}
        self._worked_on: set[str] = set()
        self._known: dict[int, str | None] = {}
        self._may = Visible(None)

    def saw(self, key: str, holders: Mapping[int, Holder]) -> None:
        """Take in the processes that the driver lists on a device."""
        for pid, holder in holders.items():
            user = self._user(pid)
            if user is None:
                self._mine[key] = None
                self._mine[key.partition(":")[0]] = None  # an instance's device goes with it
            elif user:
                self._users.setdefault(key, set()).add(user)
                if holder.computes:
                    self._worked_on.add(key)

    def look(self, devices: Sequence[GpuIdentity]) -> None:
        """Find out which devices the job's processes may use, until one of them was seen on one."""
        self._known = {}  # a number may be another process's by now
        if self._mine or self._chosen:
            return
        own_namespace = namespace()
        # A process that has just ended, or begins another program, shows an empty environment: what
        # it may use is unknown, and not all.
        environments = {
            pid: text for pid in self._tree.members if (text := self._tree.table.environment(pid))
        }
        allowed = [
            visible(
                variables(text), devices, in_container=namespace(pid) not in {own_namespace, None}
            )
            for pid, text in environments.items()
        ]
        if allowed:
            self._may = together(allowed)

    def keys(self, devices: Sequence[GpuIdentity]) -> list[str]:
        """Return the keys of the job's devices, in the driver's order."""
        everyone = [gpu.key for gpu in devices]
        if self._chosen:
            return everyone
        if self._mine:
            return [key for key in everyone if key in self._mine]
        may = everyone if self._may.keys is None else [k for k in everyone if k in self._may.keys]
        free = [key for key in may if key not in self._worked_on]
        return free or (may if in_container() else [])  # where its numbers may be others

    def facts(self, devices: Sequence[GpuIdentity]) -> dict[str, Json]:
        """Return what a capture says of it."""
        job_keys = set(self.keys(devices))
        users = {
            key: sorted(self._users.get(key, ())) for key in self._users if key not in job_keys
        }
        return {JOB_GPUS: self.keys(devices), GPU_USERS: users}

    def notes(self, devices: Sequence[GpuIdentity]) -> list[str]:
        """Return what a reader of the profile should know."""
        unsliced = [gpu for gpu in devices if gpu.partition is None]
        job_keys = self.keys(devices)
        notes = []
        if not self._chosen and not self._mine and devices:
            notes.append(self._unseen(_in_words([gpu for gpu in unsliced if gpu.key in job_keys])))
        if other_gpus := [gpu for gpu in unsliced if gpu.key not in job_keys]:
            users = sorted({user for gpu in other_gpus for user in self._users.get(gpu.key, ())})
            holders = (
                f"with processes of {', '.join(users)} on them" if users else "nobody was there"
            )
            notes.append(
                f"{_in_words(other_gpus)} of this machine: not this job's, so not counted "
                f"({holders})."
            )
        return notes

    def _unseen(self, counted: str) -> str:
        sentence = "the driver listed no process of this job on a GPU"
        if in_container():
            sentence += " (in a container it knows them by other numbers)"
        if not self._may.certain:
            sentence += (
                ", and CUDA_VISIBLE_DEVICES counts GPUs of different models in an order of CUDA's "
                "own (CUDA_DEVICE_ORDER=PCI_BUS_ID makes it the driver's)"
            )
        if not counted:
            return f"{sentence}, so none is counted. --gpu-index 0,1 says which are the job's."
        return f"{sentence}; counted is what it may use: {counted}. --gpu-index 0,1 says it better."

    def _user(self, pid: int) -> str | None:
        """Return whose a process is; None the job's, "" nobody's."""
        if pid not in self._known:
            self._known[pid] = None if self._tree.holds(pid) else owner(pid)
        return self._known[pid]


def owner(pid: int) -> str:
    """Return whose a process is; "" for a service of the driver, "unknown" where it is not seen."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - one call
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _UNKNOWN
    if name.startswith(_SERVERS):
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _in_words(devices: Sequence[GpuIdentity]) -> str:
    return f"GPU {', '.join(str(gpu.index) for gpu in devices)}" if devices else ""
