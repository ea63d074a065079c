"""A machine held against the list of guides: each point red, green or unknown, and why."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from telemetry.measure import node
from tests.fake_nvml.machines import h100, machine
from tests.fake_nvml.scenario import Scenario
from tests.gpucost.profiling.test_profile import GPUCOST

Nvml = Callable[[Scenario], dict[str, str]]
WIDTH, MOST_WIDTH, GEN, MOST_GEN = (
    "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetMaxPcieLinkWidth",
    "nvmlDeviceGetCurrPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkGeneration",
)
GREEN = {"pcie.lanes": 16, "pcie.most_lanes": 16, "pcie.gen": 1, "pcie.most_gen": 5}


@pytest.mark.parametrize(
    ("link", "state"),
    [
        ((16, 16, 1, 5, 5), "ok"),  # at rest the generation falls: no fault
        ((16, 16, 3, 3, 3), "ok"),  # a T4 is a card of generation 3
        ((16, 16, 3, 3, 4), "fail"),  # an A100 in a slot of generation 3
        ((8, 16, 4, 4, 4), "fail"),  # lanes are missing
        ((8, 8, 4, 4, 4), "fail"),  # a slot of 8
        ((16, 16, 4, 4, None), "ok"),  # a card that nobody knows
        ((None, 16, 4, 4, 4), "unknown"),
    ],
)
def test_a_link_is_judged_by_lanes_and_by_what_it_can_do(
    link: tuple[int | None, ...], state: str
) -> None:
    """x16 and generation 4, or that of an older card."""
    *answers, card_gen = link
    calls = (WIDTH, MOST_WIDTH, GEN, MOST_GEN)
    assert node.pcie_row("0", dict(zip(calls, answers, strict=True)), card_gen)[1] == state


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (node.nvlink_row("single", has_nvlink=True), "ok"),
        (node.nvlink_row("nvlink", has_nvlink=True), "ok"),
        (node.nvlink_row("nvlink-bridge", has_nvlink=True), "fail"),
        (node.nvlink_row("pcie", has_nvlink=False), "fail"),
        (node.nvlink_row(None, has_nvlink=True), "unknown"),
        (node.numa_row([None], 1), "ok"),
        (node.numa_row([0, 0, 1, 1], 2), "ok"),
        (node.numa_row([0, 0], 2), "fail"),
        (node.numa_row([0], 2), "ok"),
        (node.numa_row([0, None], 2), "unknown"),
        (node.cores_row(64, 8), "ok"),  # the guides' 64 for 8 GPUs
        (node.cores_row(63, 8), "fail"),
        (node.cores_row(None, 8), "unknown"),
        (node.ram_row(1280, 640), "ok"),
        (node.ram_row(1279, 640), "fail"),
        (node.network_row([10.0, 100.0]), "ok"),
        (node.network_row([25.0]), "fail"),
        (node.network_row([]), "unknown"),
        (node.disk_row([3840.8]), "ok"),
        (node.disk_row([]), "fail"),
    ],
)
def test_each_point_is_red_green_or_unknown(row: node.Row, state: str) -> None:
    """At its limit it is green; what the machine does not say is never red."""
    assert row[1] == state


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_what_the_kernel_shows_is_read(tmp_path: Path) -> None:
    """Cards that are up, InfiniBand; local disks without the one that boots and network disks."""
    _file(tmp_path / "class/net/eth0/speed", "25000\n")
    _file(tmp_path / "class/net/eth1/speed", "-1\n")
    _file(tmp_path / "class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n")
    assert sorted(node.cards_gbit_s(tmp_path)) == [25.0, 400.0]
    for name, model in (
        ("nvme0n1", "boot"),
        ("nvme1n1", "Micron"),
        ("nvme2n1", "Amazon Elastic Block Store"),
    ):
        _file(tmp_path / "block" / name / "size", "7501476528\n")  # sectors: 3,840.76 GB
        _file(tmp_path / "block" / name / "device/model", model)
    assert [round(gb, 2) for gb in node.local_disks_gb(tmp_path, "nvme0n1p1")] == [3840.76]
    _file(tmp_path / "bus/pci/devices/0000:3b:00.0/numa_node", "1\n")
    assert node.numa_node(tmp_path, "00000000:3B:00.0") == 1


@pytest.mark.slow
def test_eight_gpus_are_held_against_the_list(fake_nvml: Nvml) -> None:
    """One card on 8 lanes and one in an old slot are red, six are green; exit 0."""
    devices = {key: {**stated, **GREEN} for key, stated in machine(8, h100).items()}
    devices["3"] |= {"pcie.lanes": 8}
    devices["5"] |= {"pcie.most_gen": 3}
    command = [GPUCOST, "doctor", "--node", "-f", "json"]
    ran = subprocess.run(
        command,
        env=fake_nvml(Scenario(devices=devices)),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = {row["check"]: row for row in json.loads(ran.stdout)}
    states = [rows[f"GPU {n} PCIe"]["state"] for n in range(8)]
    assert states == ["ok", "ok", "ok", "fail", "ok", "fail", "ok", "ok"]
    assert "x8 of x16" in rows["GPU 3 PCIe"]["detail"]
    assert rows["NVLink"]["state"] == "ok"
    assert "8 a GPU" in rows["CPU cores"]["detail"]
    assert rows["price"]["state"] == "unknown"


@pytest.mark.slow
def test_without_a_gpu_three_lines_say_so() -> None:
    """What is missing, that nothing was checked, and where to run it; exit 2."""
    ran = subprocess.run(
        [GPUCOST, "doctor", "--hardware"],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert len(ran.stderr.strip().splitlines()) == 3, ran.stderr
    assert "gpucost ssh ID" in ran.stderr
