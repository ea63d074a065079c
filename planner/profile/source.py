"""The GPU that a profile was measured on."""

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from planner.profile.codec import dump
from planner.profile.model import GpuReadings, OtherGpu, Profile, Statistics
from pricing import hardware
from pricing.catalog.offer import Offer
from pricing.errors import InputError, UnknownGpuError
from pricing.hardware import Gpu, MigProfile
from pricing.message import Message


def source_gpu(profile: Profile) -> Gpu:
    """Return the GPU that was profiled; a card that the table lacks has a name and memory alone.

    Raises:
        InputError: the profile names none.
        UnknownGpuError: neither its model nor its memory is known, or several cards are called so.
    """
    return measured_gpu(profile) or listed_gpu(profile)


def measured_gpu(profile: Profile) -> Gpu | None:
    """Return the GPU that was profiled as `source_gpu`; None where that refuses it."""
    gpu, name, memory_gib = named_gpu(profile), profile.hardware.gpu, shown_memory_gib(profile)
    if gpu is None and name and memory_gib and not hardware.means_no_card(name):
        return hardware.unlisted(name, memory_gib)
    return gpu


def listed_gpu(profile: Profile) -> Gpu:
    """Return the GPU that was profiled, as the hardware table has it.

    Raises:
        InputError: the profile names none.
        UnknownGpuError: it is not in the hardware table; the nearest are named.
    """
    if profile.hardware.gpu is None:
        scrapes = " Two scrapes of a server: `gpucost serve copies`." if profile.job.serving else ""
        lacks = "its readings name no GPU model" if profile.gpus else "no GPU was read in it"
        is_jetson = any(source.format == "tegrastats" for source in profile.provenance.sources)
        code = "job.jetson" if is_jetson else "job.no-gpu"
        raise InputError(Message(code, job=profile.job.name, lacks=lacks, scrapes=scrapes))
    try:
        return named_gpu(profile) or hardware.resolve(profile.hardware.gpu)
    except UnknownGpuError as error:
        clear = hardware.means_no_card(profile.hardware.gpu) or shown_memory_gib(profile)
        more = "" if clear else " Nor is its memory read: with hardware.gpu_memory_gib it passes."
        raise UnknownGpuError(
            f"{profile.job.name}: hardware.gpu: {problem}{more}" for problem in error.problems
        ) from error


_MEMORY_ROUNDING = 1.02  # nominal GB, and GiB as the driver tells them


def named_gpu(profile: Profile) -> Gpu | None:
    """Return the model that the recording names; None where it names none that is known.

    Of a name of several sizes (a100) it is one that holds what the recording shows in use.
    """
    total_gib, shown_gib = profile.hardware.gpu_memory_gib, shown_memory_gib(profile) or 0.0
    name, gpu = profile.hardware.gpu, hardware.find(profile.hardware.gpu, memory_gib=total_gib)
    if name is None or gpu is None or total_gib or shown_gib <= gpu.memory_gib * _MEMORY_ROUNDING:
        return gpu
    holding = (g for g in hardware.matching(name) if g.memory_gib * _MEMORY_ROUNDING >= shown_gib)
    return min(holding, key=lambda model: model.memory_gib, default=gpu)


def shown_memory_gib(profile: Profile) -> float | None:
    """Return the most memory of one GPU that the recording shows, in all or in use."""
    used = (reading.metrics.get("mem.used_gib") for reading in profile.gpus)
    peaks = [statistics.peak for statistics in used if statistics and statistics.peak]
    return max((*peaks, profile.hardware.gpu_memory_gib or 0.0)) or None


def contradiction(profile: Profile, offer: Offer) -> str | None:
    """Return what the recording shows that the GPUs of a machine cannot have; None if nothing.

    A model in another form (PCIe, SXM) with the same memory is none: price lists mix these up.
    """
    gpu, shown_gib = named_gpu(profile), shown_memory_gib(profile)
    named = profile.hardware.gpu or ""
    if hardware.is_other_chip(named) or (gpu and _model(gpu.name) != _model(offer.gpu)):
        return f"names {gpu.name if gpu else named}"
    sold = hardware.find(offer.gpu) if offer.gpu_count >= 1 else None
    of_model = (sold.memory_gib, sold.usable_memory_gib or 0.0) if sold else ()
    most_gib = max((offer.gpu_memory_gib, *of_model))
    if shown_gib is None or shown_gib <= most_gib * _MEMORY_ROUNDING:
        return None
    total_gib = profile.hardware.gpu_memory_gib or 0.0
    what = "in all" if total_gib >= shown_gib else "in use"
    return f"shows {shown_gib:.4g} GiB of memory {what} on one GPU"


def _model(gpu: str) -> tuple[str, ...]:
    """Return a GPU's name without its form."""
    return tuple(part for part in gpu.lower().split("-") if part not in {"sxm", "pcie"})


_IDLE, _IDLE_GIB = 0.05, 2.0  # of the time; memory that a context alone holds


def at_work(profile: Profile) -> Profile:
    """Return the profile of the GPUs that work alone, where others of its one machine never do."""
    busy = tuple(reading for reading in profile.gpus if not _rests(reading))
    has_every_gpu, nodes = len(profile.gpus) == profile.gpu_count, profile.hardware.nodes or 1
    if not has_every_gpu or nodes > 1 or profile.job.splits_the_model:
        return profile
    if not busy or len(busy) == len(profile.gpus):
        return profile
    hardware = replace(profile.hardware, gpu_count=len(busy))
    return replace(profile, gpus=busy, hardware=hardware)


def with_unused_gpus(profile: Profile) -> Profile:
    """Return a job that is alone on its one machine with all of the machine's GPUs as its own.

    It is alone where each of the others was seen to rest, with no process of anybody.
    """
    machine, count = profile.machine, profile.gpu_count
    idle = machine.others if machine else ()
    has_every_gpu = machine is not None and machine.gpu_count == count + len(idle)
    if not idle or not has_every_gpu or len(profile.gpus) != count:
        return profile
    readings = tuple(map(_unused, idle))
    if not all(reading and _rests(reading) for reading in readings):
        return profile
    hardware = replace(profile.hardware, gpu_count=count + len(idle))
    return replace(profile, gpus=(*profile.gpus, *filter(None, readings)), hardware=hardware)


def _unused(gpu: OtherGpu) -> GpuReadings | None:
    """Return a GPU that no process was seen on as one of the job's; None where any was."""
    if gpu.users or gpu.kernel_time is None:
        return None
    metrics = {
        "util.kernel_time": Statistics(mean=gpu.kernel_time),
        "mem.used_gib": Statistics(mean=gpu.used_gib or 0.0),
    }
    return GpuReadings(index=gpu.index, uuid=gpu.uuid, metrics=metrics)


def _rests(reading: GpuReadings) -> bool:
    kernels, used_gib = (reading.metrics.get(slot) for slot in ("util.kernel_time", "mem.used_gib"))
    if kernels is None or used_gib is None or kernels.typical is None:
        return False
    if not (kernels.typical or kernels.p95 or kernels.max):
        return True  # what a process holds there nobody computes with
    is_idle = kernels.typical == 0.0 or kernels.typical < _IDLE > (kernels.p95 or 0.0)
    return is_idle and (used_gib.peak or 0.0) < _IDLE_GIB


def source_slice(profile: Profile) -> MigProfile | None:
    """Return the slice that was profiled; None for whole GPUs, and where it is not known.

    A slice of all of the compute and memory is the whole GPU.
    """
    named = slice_named(profile)
    if named is None:
        return None
    gpu = named_gpu(profile)
    mig_slice = gpu.slice_called(named) if gpu is not None else None
    if gpu is None or mig_slice is None or mig_slice.compute_slices == _compute_slices(gpu):
        return None
    return mig_slice


def slice_named(profile: Profile) -> str | None:
    """Return what the profile, or the name of its GPU, calls the slice; None: no slice."""
    return profile.hardware.slice or hardware.slice_in_name(profile.hardware.gpu)


def unknown_slice(profile: Profile) -> str | None:
    """Return why nothing is known of the slice that a profile names; None where it is known."""
    named = slice_named(profile)
    if named is None:
        return None
    gpu = named_gpu(profile)
    if gpu is None or gpu.slice_called(named) is not None:
        return None
    slices = tuple(piece.profile for piece in gpu.mig)
    code = "slice.unknown" if slices else "slice.of-none"
    return Message(code, slice=named, gpu=gpu.name, slices=slices)


def part_measured(profile: Profile) -> float:
    """Return the share of each GPU's compute that was measured, above 0; 1 = all, or unknown."""
    piece = source_slice(profile)
    return 1.0 if piece is None else piece.compute_slices / _compute_slices(source_gpu(profile))


def memory_measured(profile: Profile) -> float:
    """Return the share of each GPU's memory that was measured, above 0; 1 = all, or unknown."""
    piece = source_slice(profile)
    if piece is None:
        return 1.0
    return piece.memory_gib / max(size.memory_gib for size in source_gpu(profile).mig)


def memory_room_gib(profile: Profile) -> float | None:
    """Return the memory that the job had on one GPU, its slice's; None where it is unknown."""
    piece = source_slice(profile)
    if piece is not None:
        return piece.memory_gib
    gpu = named_gpu(profile)
    stated = profile.hardware.gpu_memory_gib
    return stated or (gpu.usable_memory_gib or gpu.memory_gib if gpu else None)


def _compute_slices(gpu: Gpu) -> int:
    return max(piece.compute_slices for piece in gpu.mig)


def name_apart(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """Return the profiles sorted by name; the second of a name is called `name-2`, and so on.

    Profiles of one name are told apart by their content, so the order of the inputs does not show.
    """
    several = tuple(profiles)
    names = Counter(p.job.name for p in several)
    ordered = sorted(
        several, key=lambda p: (p.job.name, dump((p,)) if names[p.job.name] > 1 else "")
    )
    numbers: Counter[str] = Counter()
    named = []
    for profile in ordered:
        name = profile.job.name
        numbers[name] += 1
        while numbers[name] > 1 and f"{name}-{numbers[name]}" in names:
            numbers[name] += 1
        named.append(_rename(profile, name if numbers[name] == 1 else f"{name}-{numbers[name]}"))
    return tuple(named)


def _rename(profile: Profile, name: str) -> Profile:
    if name == profile.job.name:
        return profile
    return replace(profile, job=replace(profile.job, name=name))
