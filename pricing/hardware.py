"""The GPU table: what each model has, and every name people write for it."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from types import MappingProxyType

from pricing.errors import UnknownGpuError
from pricing.tables import from_row, number, read_csv

MIB_PER_GIB = 1024

_VENDOR_WORDS = frozenset(
    {"nvidia", "amd", "tesla", "geforce", "instinct", "corporation", "gpu", "shared"}
)
SLICE_NAME = r"([1-9]\d?c\.)?([1-9]\d?g\.[1-9]\d{0,3}gb)([+-][a-z0-9.]+)*"
"""NVIDIA's names of slices: 2g.20gb, with media engines 1g.10gb+me, a part of one 1c.3g.40gb."""
_MIG_SUFFIX = re.compile(rf"[\s_-]+mig[\s_-]+(?P<slice>{SLICE_NAME}).*$", re.IGNORECASE)
_MEMORY_SUFFIX = re.compile(r"(.*?\D)(\d+)(?:gib|gb|g)")
_WORDS = re.compile(r"[a-z0-9]+")
# Products report 2 to 9 % less than they are sold with (B300: 262 GiB of "288"); the closest real
# pair is 80 against 94.
_MEMORY_TOLERANCE = 0.1
_NEAREST = 3
_CLASS = re.compile(r"([a-z]+)[^a-z\d]*(\d+)")
_LAPTOP = re.compile(r"\b(l|laptop|mobile|notebook|max-?q)\b", re.IGNORECASE)
_MEMORY_SLICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """One way to slice a GPU.

    Attributes:
        profile: NVIDIA's name, "2g.20gb".
        max_instances: how many fit on one GPU.
        memory_gib: nominal, as in the name.
        compute_slices: sevenths of the GPU (of four on the RTX PRO 6000).
        source: where it was read.
    """

    profile: str
    max_instances: int
    memory_gib: float
    compute_slices: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU model; figures are dense (no sparsity) vendor peaks. None means unknown.

    Attributes:
        name: canonical, "H100-SXM-80GB".
        vendor: "NVIDIA" or "AMD".
        architecture: "Hopper", "CDNA3".
        compute_capability: "9.0"; None for AMD.
        host_architecture: "arm64" for models sold on Arm hosts only, else "x86_64".
        memory_gib: as sold.
        usable_memory_gib: as the driver reports it.
        memory_bandwidth_gb_s: peak, 10^9 bytes a second.
        fp64_tflops: double precision, without tensor cores.
        fp32_tflops: without tensor cores.
        tf32_tflops: tensor cores, as every rate below.
        fp16_tflops: with 32-bit accumulation.
        bf16_tflops: as fp16.
        fp8_tflops: as fp16.
        int8_tops: 10^12 operations a second.
        fp4_tflops: as fp16.
        tdp_w: board power limit.
        idle_w: measured with nothing running.
        context_idle_w: measured with a context open, as of a loaded model, and no kernel running.
        nvlink_gb_s: both directions together (Infinity Fabric for AMD); 0 where there is none.
        pcie_gen: of the host link.
        video_encoders: hardware encoders (NVENC); 0 where there is none.
        video_decoders: hardware decoders (NVDEC).
        ecc: whether device memory corrects errors.
        source: where the figures were read.
        notes: conflicts between sources and variants.
        mig: slices in table order; empty where the model has none or it is unknown.
    """

    name: str
    vendor: str
    architecture: str
    memory_gib: float
    source: str
    compute_capability: str | None = None
    host_architecture: str = "x86_64"
    usable_memory_gib: float | None = None
    memory_bandwidth_gb_s: float | None = None
    fp64_tflops: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    fp16_tflops: float | None = None
    bf16_tflops: float | None = None
    fp8_tflops: float | None = None
    int8_tops: float | None = None
    fp4_tflops: float | None = None
    tdp_w: float | None = None
    idle_w: float | None = None
    context_idle_w: float | None = None
    nvlink_gb_s: float | None = None
    pcie_gen: int | None = None
    video_encoders: int | None = None
    video_decoders: int | None = None
    ecc: bool | None = None
    notes: str = ""
    mig: tuple[MigProfile, ...] = ()

    @property
    def is_listed(self) -> bool:
        """Whether the table has it; of a card that it lacks only name and memory are known."""
        return bool(self.source)

    def __hash__(self) -> int:
        return hash(self.name)  # of thirty figures it takes longer than what it is looked up for

    def slice_called(self, name: str) -> MigProfile | None:
        """Return the slice that a driver calls so; None where the model has none, or it is unknown.

        Engines that come with it (`+me`) are left out. A part of a slice (`1c.3g.40gb`) has the
        memory of all of it.
        """
        match = re.fullmatch(SLICE_NAME, name)
        profiles = {profile.profile: profile for profile in self.mig}
        if match is None or match[2] not in profiles:
            return None
        profile = profiles[match[2]]
        part = int(match[1][:-2]) if match[1] else profile.compute_slices
        return replace(profile, compute_slices=part) if part <= profile.compute_slices else None

    def why_not_sliced(self, profiles: Sequence[str]) -> str:
        """Return why one GPU cannot be cut so, in a sentence; empty: it can.

        Memory is cut into eighths, of which a profile takes as many as its nominal size is nearest
        to: NVIDIA, Multi-Instance GPU User Guide, "Partitioning".

        Args:
            profiles: names, each of this model.
        """
        profile_of = {profile.profile: profile for profile in self.mig}
        for name in sorted(set(profiles)):
            if profiles.count(name) > profile_of[name].max_instances:
                return f"at most {profile_of[name].max_instances} of {name} fit on a {self.name}."
        computes = sum(profile_of[name].compute_slices for name in profiles)
        has = max(profile.compute_slices for profile in self.mig)
        if computes > has:
            return f"they take {computes} compute slices, and a {self.name} has {has}."
        eighth_gib = self.memory_gib / _MEMORY_SLICES
        memory = sum(max(1, round(profile_of[name].memory_gib / eighth_gib)) for name in profiles)
        if memory > _MEMORY_SLICES:
            return f"they take {memory} eighths of the memory of a {self.name}."
        return ""


@cache
def gpus() -> Mapping[str, Gpu]:
    """Return every known GPU by canonical name, in table order."""
    slices: dict[str, list[MigProfile]] = {}
    for row in read_csv("mig_profiles.csv"):
        slices.setdefault(row["gpu"], []).append(from_row(MigProfile, row))
    engines = {row["gpu"]: row for row in read_csv("gpu_engines.csv")}
    no_engines = dict.fromkeys(next(iter(engines.values())), "")
    table = (
        _gpu_from_row(engines.get(row["gpu"], no_engines) | row, slices.get(row["gpu"], ()))
        for row in read_csv("gpus.csv")
    )
    return MappingProxyType({gpu.name: gpu for gpu in table})


def _gpu_from_row(row: Mapping[str, str], slices: Iterable[MigProfile]) -> Gpu:
    usable_mib = number(row["usable_memory_mib"])
    return from_row(
        Gpu,
        row,
        name=row["gpu"],
        usable_memory_gib=None if usable_mib is None else usable_mib / MIB_PER_GIB,
        ecc=row["ecc"] == "yes" if row["ecc"] else None,
        mig=tuple(slices),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alias:
    """The models one written name may mean; `default` is None where only memory can tell."""

    models: tuple[Gpu, ...]
    default: Gpu | None


@cache
def _aliases() -> Mapping[str, _Alias]:
    rows: dict[str, list[tuple[Gpu, bool]]] = {
        _key(name): [(gpu, True)] for name, gpu in gpus().items()
    }
    for row in read_csv("gpu_aliases.csv"):
        meaning = (gpus()[row["gpu"]], row["default"] == "yes")
        rows.setdefault(_key(row["alias"]), []).append(meaning)
    return {
        key: _Alias(
            models=tuple(gpu for gpu, _ in meanings),
            default=next((gpu for gpu, is_default in meanings if is_default), None),
        )
        for key, meanings in rows.items()
    }


def _key(name: str) -> str:
    """Return the name without case, spaces, punctuation and vendor words."""
    name_parts = _WORDS.findall(_MIG_SUFFIX.sub("", name).lower())
    return "".join(word for word in name_parts if word not in _VENDOR_WORDS)


@cache
def find(name: str | None, *, memory_gib: float | None = None) -> Gpu | None:
    """Return the GPU model that a written name means; None where the table has none.

    Args:
        name: a product name (nvidia-smi, NVML, rocm-smi), a short name ("H100", "a100-80gb"), a
            cloud's accelerator name, or any of these with a MIG suffix (the parent is meant).
        memory_gib: of one GPU; tells models of one name apart (A100 with 40 or 80). Without it
            "H100" is the SXM card, "A100" the SXM card of 40 GB, "V100" the one of 16 GB.
    """
    if not name:
        return None
    alias = _aliases().get(_key(name))
    if alias is not None:
        return _of_memory(alias.models, memory_gib) or alias.default
    if name.endswith("...") and _class_of(name):
        # Cut off by nvidia-smi: the model of that memory whose name begins so.
        begun = (a.models for key, a in _aliases().items() if key.startswith(_key(name)))
        return _of_memory(tuple(chain.from_iterable(begun)), memory_gib)
    return _with_memory_in_name(name)


@cache
def most_memory_gib(name: str | None) -> float | None:
    """Return the most memory that a model of a written name has; None where it names none."""
    sizes = {gpu.memory_gib for gpu in gpus().values()}
    named = (find(name, memory_gib=memory_gib) for memory_gib in sizes)
    return max((gpu.memory_gib for gpu in named if gpu), default=None)


def _with_memory_in_name(name: str) -> Gpu | None:
    """Return the model of a name that ends in its memory ("T4 16GB"), if such a model is known."""
    match = _MEMORY_SUFFIX.fullmatch(_MIG_SUFFIX.sub("", name).strip().lower())
    if match is None:
        return None
    alias = _aliases().get(_key(match[1]))
    return None if alias is None else _of_memory(alias.models, float(match[2]))


def _of_memory(models: tuple[Gpu, ...], memory_gib: float | None) -> Gpu | None:
    """Return the model whose memory is nearest, within 10 %; the earlier one on a tie."""
    if memory_gib is None:
        return None
    near = [gpu for gpu in models if has_memory(gpu, memory_gib)]
    return min(near, key=lambda gpu: abs(gpu.memory_gib - memory_gib), default=None)


def has_memory(gpu: Gpu, memory_gib: float) -> bool:
    """Return whether a GPU of the model may report that memory: within 10 % of the sold size."""
    return abs(gpu.memory_gib - memory_gib) <= _MEMORY_TOLERANCE * gpu.memory_gib


@cache
def slice_in_name(name: str | None) -> str | None:
    """Return the slice that a device's name ends in ("NVIDIA A100 MIG 2g.20gb"); None: none."""
    match = _MIG_SUFFIX.search(name or "")
    return match["slice"].lower() if match else None


_GEFORCE_RTX = re.compile(r"RTX-[2345]0\d\d(Ti)?(-SUPER)?(-\d+GB)?")
_CONSUMER = re.compile(r"geforce|titan|^gtx|^rtx[- ][2345]0\d\d(?!-ada)", re.IGNORECASE)


def is_geforce_rtx(name: str) -> bool:
    """Return whether a model is a GeForce of the 20 series or later."""
    return _GEFORCE_RTX.fullmatch(name) is not None


def is_consumer(name: str) -> bool:
    """Return whether a model, or the written name of a card, is a GeForce or a TITAN."""
    return _CONSUMER.search(name) is not None


def is_socketed(name: str) -> bool:
    """Return whether a model is of the form whose boards NVLink joins."""
    return "SXM" in name


def matching(name: str) -> tuple[Gpu, ...]:
    """Return every model that a name may mean, for filters: "A100" is all A100s, "A100-80GB" one.

    Raises:
        UnknownGpuError: no model is called so; the message names the nearest ones.
    """
    exact = gpus().get(name)
    family = [gpu for key, gpu in gpus().items() if key.lower().startswith(f"{name.lower()}-")]
    if exact is None and family:
        return tuple(family)
    return (resolve(name),)


def resolve(name: str, *, memory_gib: float | None = None) -> Gpu:
    """Return the GPU model that a written name means, as `find`.

    Raises:
        UnknownGpuError: no model has that name; the message names the nearest ones.
    """
    gpu = find(name, memory_gib=memory_gib)
    if gpu is None:
        raise UnknownGpuError(_unknown_gpu(name))
    return gpu


_VENDORS = {"amd": "AMD", "radeon": "AMD", "instinct": "AMD", "intel": "Intel", "arc": "Intel"}


def vendor_of(name: str | None) -> str:
    """Return who makes a card, by its written name: NVIDIA unless it names another."""
    makers = (_VENDORS.get(word) for word in _WORDS.findall((name or "").lower()))
    gpu = find(name)
    return gpu.vendor if gpu else next(filter(None, makers), "NVIDIA")


def unlisted(name: str, memory_gib: float) -> Gpu:
    """Return a card that the table lacks: nothing but its name and its memory is known."""
    vendor = vendor_of(name)
    return Gpu(name=name, vendor=vendor, architecture="", memory_gib=memory_gib, source="")


_NO_GPU = re.compile(r"\b(tpu|trainium|inferentia|gaudi|ascend)", re.IGNORECASE)


def is_other_chip(name: str) -> bool:
    """Return whether a name is of another accelerator than a GPU."""
    return _NO_GPU.search(name) is not None


def means_no_card(name: str) -> bool:
    """Return whether several cards are called so, one of which has to be named, or no GPU is."""
    return _key(name) in _aliases() or is_other_chip(name)


_WITHOUT_DOLLARS = "`gpucost diagnose` says without dollars why it waits."


def _unknown_gpu(name: str) -> str:
    """Return the sentence for a name that means no model, or more than one."""
    alias = _aliases().get(_key(name))
    if alias is not None:
        models = [f"{gpu.name} ({gpu.memory_gib:g} GiB)" for gpu in alias.models]
        return (
            f"GPU {name!r} is the name of several cards: {', '.join(models)}. "
            f"Say which, for example --gpu {alias.models[0].name}."
        )
    near = nearest(name)
    hint = f". Nearest known: {', '.join(near)}. If one of them is meant, write that."
    return (
        f"GPU {name!r} is not in the hardware table, so its speed, memory and price cannot be "
        f"compared{hint if near else f', and no name is near. {_WITHOUT_DOLLARS}'}"
    )


def nearest(name: str) -> list[str]:
    """Return up to three models of the class of a name, the most similar first.

    A class has the letters of a name and as many digits, as GB200 and GB300; laptops have none.
    """
    if _LAPTOP.search(name):
        return []
    aliases, family = _aliases(), _class_of(name)
    close = difflib.get_close_matches(_key(name), sorted(aliases), n=3 * _NEAREST, cutoff=0.5)
    models = (gpu for match in close for gpu in aliases[match].models)
    names = [gpu.name for gpu in models if _class_of(gpu.name) == family]
    return list(dict.fromkeys(names))[:_NEAREST]


def _class_of(name: str) -> tuple[str, int] | None:
    match = _CLASS.search(_key(name))
    return (match[1], len(match[2])) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMode:
    """One way to cut a GPU.

    Attributes:
        name: AMD's name of the compute mode: "DPX".
        partitions: how many, all alike.
        own_memory: the memory mode in which each partition has memory of its own; None: none is
            known.
        source: where it was read.
    """

    name: str
    partitions: int
    own_memory: str | None = None
    source: str

    @property
    def compute(self) -> float:
        """The share of the GPU's compute that a partition has."""
        return 1.0 / self.partitions

    def memory_gib(self, gpu: Gpu) -> float:
        """Return an equal part of the memory: what a partition may hold in every memory mode."""
        return (gpu.usable_memory_gib or gpu.memory_gib) / self.partitions


def partition_modes(gpu: Gpu) -> tuple[PartitionMode, ...]:
    """Return the ways to cut a GPU, the fewest partitions first; none: it cannot be, or unknown."""
    return _modes().get(gpu.name, ())


@cache
def _modes() -> Mapping[str, tuple[PartitionMode, ...]]:
    modes_by_gpu: dict[str, list[PartitionMode]] = {}
    for row in read_csv("gpu_partitions.csv"):
        mode = from_row(PartitionMode, row, name=row["mode"])
        modes_by_gpu.setdefault(row["gpu"], []).append(mode)
    ordered = {
        name: sorted(modes, key=lambda mode: mode.partitions)
        for name, modes in modes_by_gpu.items()
    }
    return MappingProxyType({name: tuple(modes) for name, modes in ordered.items()})
