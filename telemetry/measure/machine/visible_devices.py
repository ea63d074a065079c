"""Which GPUs a process may use, by the environment that it was started with.

CUDA_VISIBLE_DEVICES as NVIDIA's CUDA programming guide describes it: indices, or beginnings of
UUIDs, MIG devices included; what stands behind the first entry that names no device is not read. An
empty list, or one that begins with -1, is none. NVIDIA_VISIBLE_DEVICES is what the container
toolkit was told, and says which devices there are in a container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from telemetry.recording.recording import GpuIdentity

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
    found = {}
    for entry in (environment or b"").split(b"\0"):
        name, is_set, value = entry.decode(errors="replace").partition("=")
        if is_set and name in {CUDA, ORDER, TOOLKIT}:
            found[name] = value
    return found


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
    whole = [gpu for gpu in devices if gpu.partition is None]
    base: Sequence[GpuIdentity] = whole
    told = variables.get(TOOLKIT)
    if in_container and told is not None and told.strip() != _ALL:
        given = "" if told.strip() in _NONE else told
        base = [gpu for gpu in devices if gpu.key in _listed(given, whole, devices)]
    text = variables.get(CUDA)
    if text is None:
        return Visible(None if base is whole else tuple(gpu.key for gpu in base))
    keys = _listed(text, base, devices)
    one_order = len({gpu.model for gpu in whole}) == 1 or variables.get(ORDER) == _BY_BUS
    by_index = any(entry.strip().isdecimal() for entry in text.split(","))
    if by_index and not one_order:
        return Visible(None, certain=False)
    return Visible(keys)


def together(each: Iterable[Visible]) -> Visible:
    """Return what several processes of one job may use.

    A process that is told to use none, as loaders often are, takes nothing from the others; one
    that is told nothing, as launchers are not, adds nothing to those that are told.
    """
    found = list(each)
    keys = dict.fromkeys(key for one in found for key in one.keys or ())
    certain = all(one.certain for one in found)
    if keys:
        return Visible(tuple(keys), certain)
    open_to_all = any(one.keys is None for one in found) or not found
    return Visible(None if open_to_all else (), certain)


def _listed(
    text: str, base: Sequence[GpuIdentity], devices: Sequence[GpuIdentity]
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for entry in text.split(","):
        gpu = _named(entry.strip(), base, devices)
        if gpu is None:
            break
        found[gpu.key] = None
    return tuple(found)


def _named(
    word: str, base: Sequence[GpuIdentity], devices: Sequence[GpuIdentity]
) -> GpuIdentity | None:
    if word.isdecimal():
        return base[int(word)] if int(word) < len(base) else None
    if word.startswith("MIG-GPU-"):  # before driver 470: the device, its instance, the part of it
        uuid, _, rest = word.removeprefix("MIG-").partition("/")
        instance = rest.partition("/")[0]
        parts = [gpu for gpu in devices if gpu.partition is not None and gpu.uuid == uuid]
        return next((p for p in parts if p.key.partition(":")[2].split(".")[0] == instance), None)
    names = [(gpu, gpu.mig_uuid if gpu.partition else gpu.uuid) for gpu in devices]
    same = [gpu for gpu, name in names if word and name and name.startswith(word)]
    return same[0] if len(same) == 1 and word.startswith(("GPU-", "MIG-")) else None
