"""A machine held against what guides ask of one for GPUs: links, cores, memory, network, disk.

Sources of the limits: "PCIe 4.0", NVLink, 100 Gbit/s between machines and 64 cores for a machine
of 8 GPUs: guides to multi-GPU training (docs/explanation/coverage.md, R17). Full width of a slot,
host memory of twice the GPUs' and GPUs balanced over the sockets: NVIDIA-Certified Systems
Configuration Guide. A scratch disk of its own: R24.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from pricing.hardware import find
from telemetry.measure.host import ram_gib
from telemetry.measure.nvml_reader import NvmlReader
from telemetry.measure.processes import kernel_text

Row = tuple[str, str, str]
"""Of a check: its name, `ok`, `fail` or `unknown`, and what was read beside what is asked."""

PCIE_GEN, PCIE_LANES = 4, 16
CORES_PER_GPU = 8
RAM_PER_GPU_MEMORY = 2
NETWORK_GBIT_S = 100
_SECTOR = 512
_NETWORK_DISK = re.compile(
    r"Elastic Block Store|nvme_card-pd|PersistentDisk|Virtual|MSFT", re.IGNORECASE
)


def node_rows(reader: NvmlReader, sys: Path = Path("/sys")) -> Iterator[Row]:
    """Yield a row for each point of the list.

    Args:
        reader: of this machine's GPUs.
        sys: where the kernel shows devices; for tests.
    """
    devices = [gpu for gpu in reader.identities if gpu.partition is None]
    memory_gib = sum(gpu.memory_gib or 0.0 for gpu in devices)
    cards = {gpu.key: find(gpu.model, memory_gib=gpu.memory_gib) for gpu in devices}
    for key, card in cards.items():
        yield pcie_row(
            key, {call: reader.ask(call, key) for call in _PCIE}, card.pcie_gen if card else None
        )
    has_nvlink = any(card is not None and card.nvlink_gb_s for card in cards.values())
    yield nvlink_row(reader.interconnect, has_nvlink=has_nvlink)
    buses = [str(getattr(reader.ask("nvmlDeviceGetPciInfo", key), "busId", "")) for key in cards]
    yield numa_row([numa_node(sys, bus) for bus in buses], len([*sys.glob(_NODES)]) or 1)
    yield cores_row(psutil.cpu_count(logical=False), len(devices))
    yield ram_row(ram_gib()[0], memory_gib)
    yield network_row([*cards_gbit_s(sys)])
    root = next((p.device for p in psutil.disk_partitions() if p.mountpoint == "/"), "")
    yield disk_row([*local_disks_gb(sys, Path(root).name)])


_PCIE = tuple(
    f"nvmlDeviceGet{which}PcieLink{quantity}"
    for quantity in ("Width", "Generation")
    for which in ("Curr", "Max")
)
_NODES = "devices/system/node/node[0-9]*"


def pcie_row(key: str, read: Mapping[str, object], card_gen: int | None) -> Row:
    """Return whether a GPU has its full link: a GPU at rest lowers the generation, not the width.

    Args:
        key: of the GPU.
        read: answers of the driver by the names of its calls; None: it does not say.
        card_gen: generation that the card is made for; None: not known.
    """
    name = f"GPU {key} PCIe"
    lanes, most_lanes, gen, most_gen = (read.get(call) for call in _PCIE)
    if not (isinstance(lanes, int) and isinstance(most_lanes, int) and isinstance(most_gen, int)):
        return name, "unknown", "the driver does not say"
    least_gen = min(PCIE_GEN, card_gen or PCIE_GEN)
    text = f"x{lanes} of x{most_lanes}, generation {most_gen} (now {gen})"
    if lanes < most_lanes:
        return name, "fail", f"{text}: lanes are missing; reseat the card, or ask for another host"
    if lanes < PCIE_LANES or most_gen < least_gen:
        return name, "fail", f"{text}; asked: x{PCIE_LANES}, generation {least_gen}"
    return name, "ok", text


def nvlink_row(interconnect: str | None, *, has_nvlink: bool) -> Row:
    """Return whether GPUs that can be are joined by NVLink, every pair."""
    if interconnect is None:
        return "NVLink", "unknown", "the driver does not say"
    if interconnect in ("single", "nvlink"):
        joined = "one GPU needs none" if interconnect == "single" else "joins every pair"
        return "NVLink", "ok", joined
    why = "pairs only" if interconnect == "nvlink-bridge" else "none in use"
    if not has_nvlink:
        why = "these cards have none: exchanges of training go over PCIe"
    return "NVLink", "fail", why


def numa_row(nodes: Sequence[int | None], count: int) -> Row:
    """Return whether GPUs are spread over the memory nodes, and each one's is known."""
    if count == 1:
        return "NUMA", "ok", "one node"
    if None in nodes:
        why = f"{count} nodes; which is a GPU's is not said: nothing to bind to"
        return "NUMA", "unknown", why
    text = f"{count} nodes, GPUs on {', '.join(map(str, nodes))}; bind each process to its node"
    together = len(nodes) > 1 and len(set(nodes)) == 1
    return "NUMA", "fail" if together else "ok", f"{text}{'; all hang on one' if together else ''}"


def cores_row(cores: int | None, count: int) -> Row:
    """Return whether there are cores enough to feed the GPUs."""
    if cores is None:
        return "CPU cores", "unknown", "the system does not say"
    state = "fail" if cores < CORES_PER_GPU * count else "ok"
    return "CPU cores", state, f"{cores} for {count} GPUs; asked: {CORES_PER_GPU} a GPU"


def ram_row(host_gib: float, gpus_gib: float) -> Row:
    """Return whether the host has memory enough to stage what the GPUs hold."""
    least_gib = RAM_PER_GPU_MEMORY * gpus_gib
    text = f"{host_gib:.0f} GiB; asked: {least_gib:.0f}, {RAM_PER_GPU_MEMORY}x the GPUs' memory"
    return "RAM", "fail" if host_gib < least_gib else "ok", text


def network_row(speeds: Sequence[float]) -> Row:
    """Return whether the fastest card, in Gbit/s, is enough to train over several machines."""
    if not speeds:
        return "network", "unknown", "no card says its speed, as virtual ones do not"
    text = f"{max(speeds):g} Gbit/s; asked to train on several machines: {NETWORK_GBIT_S}"
    return "network", "fail" if max(speeds) < NETWORK_GBIT_S else "ok", text


def disk_row(sizes: Sequence[float]) -> Row:
    """Return whether there is a local disk for data, of so many GB each."""
    if not sizes:
        return "scratch disk", "fail", "no local NVMe disk but the one that boots"
    return "scratch disk", "ok", f"{sum(sizes):,.0f} GB of local NVMe"


def numa_node(sys: Path, bus: str) -> int | None:
    """Return the memory node of a device on the PCI bus; None where the kernel knows none."""
    # NVML writes the domain with 8 digits, the kernel with 4
    node = _number(sys / "bus/pci/devices" / bus.strip("b'").lower()[-12:] / "numa_node")
    return None if node is None or node < 0 else node


def cards_gbit_s(sys: Path) -> Iterator[float]:
    """Yield the speed of each network card that is up, InfiniBand included."""
    for card in sys.glob("class/net/*/speed"):
        if (speed := _number(card)) is not None and speed > 0:
            yield speed / 1000
    for port in sys.glob("class/infiniband/*/ports/*/rate"):
        if match := re.match(r"\s*([\d.]+) Gb/sec", kernel_text(port)):
            yield float(match[1])


def local_disks_gb(sys: Path, root: str) -> Iterator[float]:
    """Yield the size of each NVMe disk that is in the machine and is not the one of `root`."""
    for disk in sys.glob("block/nvme*"):
        sectors = _number(disk / "size")
        is_network = _NETWORK_DISK.search(kernel_text(disk / "device/model"))
        if sectors and not is_network and not root.startswith(disk.name):
            yield sectors * _SECTOR / 1e9


def _number(path: Path) -> int | None:
    text = kernel_text(path)
    return int(text) if re.fullmatch(r"-?\d+", text) else None
