"""Settings of machines: each is seen to be as asked, a second run changes nothing."""

import re
from pathlib import Path

import pytest

from templates.bootstrap_files import MachineBootstrap
from tests.bootstrap.box import Box
from tests.bootstrap.machines import EIGHT, MACHINES, a_machine

MIG, MPS, TURNS = (MACHINES[name] for name in ("sliced by MIG", "shared by MPS", "shared in turns"))
SLICES = MACHINES["jobs on slices"]
XGMI = MACHINES["AMD over Infinity Fabric"]
NVLINK = MACHINES["eight over NVLink, capped"]
_CHANGES = re.compile(
    r"rocm-smi --set|nvidia-smi (-pm|-pl|-c |-mig|mig |--gpu-reset)|mps -d|mkfs|^mount|mdadm",
    re.MULTILINE,
)


def links(gpus: int = 8, **apart: str) -> str:
    """What rocm-smi says of links, in the form of its public captures: XGMI, but for some."""
    title = f"{' Link Type between two GPUs ':=^90}"
    rows = (
        [f"GPU{i}", *("0" if i == j else apart.get(f"from_{i}_{j}", "XGMI") for j in range(gpus))]
        for i in range(gpus)
    )
    head = " " * 7 + "".join(f"GPU{j}".ljust(13) for j in range(gpus))
    table = [row[0].ljust(7) + "".join(word.ljust(13) for word in row[1:]) for row in rows]
    return "\n".join(
        (f"{' ROCm System Management Interface ':=^90}", title, head, *table, "=" * 90)
    )


def a_box(root: Path, machine: MachineBootstrap) -> Box:
    """A machine whose watch beats."""
    box = Box(root, machine)
    box.write("links", links())
    box.write("run/gpucost/beat", "15\n")
    box.write("var/lib/cloud/scripts/per-boot/of-the-image", "")
    return box


def bootstrap(box: Box, machine: MachineBootstrap) -> int:
    """Run the bootstrap with as many GPUs as are paid for."""
    return box.run("bootstrap.sh", GPUS=str(machine.gpu_count)).returncode


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_a_second_run_changes_nothing(tmp_path: Path, machine: MachineBootstrap) -> None:
    """Each setting is made once; where all is as asked, the bootstrap only looks."""
    box = a_box(tmp_path, machine)
    assert bootstrap(box, machine) == 0, box.status
    (tmp_path / "calls").write_text("")
    assert bootstrap(box, machine) == 0, box.status
    assert box.status == "ready"
    assert _CHANGES.findall(box.calls) == []


def test_a_reboot_makes_the_settings_again(tmp_path: Path) -> None:
    """What drivers and mounts forget is set again at every boot, by the same script."""
    box = a_box(tmp_path, MPS)
    assert bootstrap(box, MPS) == 0
    for gone in ("gpu/persistence", "gpu/compute", "gpu/mps", "mounted"):
        (tmp_path / gone).unlink()
    (tmp_path / "calls").write_text("")
    again = tmp_path / "var/lib/cloud/scripts/per-boot/gpucost"
    assert again.resolve() == tmp_path / "opt/gpucost/bootstrap.sh"
    assert bootstrap(box, MPS) == 0
    assert len(_CHANGES.findall(box.calls)) == 4
    assert "mkfs" not in box.calls


@pytest.mark.parametrize(
    ("machine", "stuck", "why"),
    [
        (a_machine(), "gpu/stuck-persistence", "persistence mode stays off"),
        (NVLINK, "gpu/stuck-power", "the power cap is not 500 W"),
        (MACHINES["AMD, capped"], "gpu/stuck-power", "the power cap is not 500 W"),
        (MPS, "gpu/stuck-compute", "the GPU does not become exclusive to MPS"),
        (MPS, "gpu/stuck-mps", "MPS does not answer"),
        (MIG, "gpu/stuck-mig", "MIG mode stays off"),
        (MIG, "gpu/stuck-slices", "the MIG layout is , and 2g.20gb 2g.20gb 3g.40gb  was asked"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_driver_does_not_do_is_a_failure(
    tmp_path: Path, machine: MachineBootstrap, stuck: str, why: str
) -> None:
    """A tool that says yes and does nothing is found out, and named."""
    box = a_box(tmp_path, machine)
    box.write(stuck, "")
    assert bootstrap(box, machine) == 1
    assert box.status == f"failed: {why}"


@pytest.mark.parametrize(
    ("broken", "word", "why"),
    [
        ("link-0-5", "SYS", "no NVLink between GPUs: GPU0 to GPU5: SYS"),
        ("peer-7-3", "NS", "no peer access between GPUs: GPU7 to GPU3: NS"),
    ],
)
def test_a_missing_link_is_a_failure(tmp_path: Path, broken: str, word: str, why: str) -> None:
    """Eight GPUs that are sold with NVLink have it between every pair."""
    box = a_box(tmp_path, NVLINK)
    box.write(f"gpu/{broken}", word)
    assert bootstrap(box, NVLINK) == 1
    assert box.status == f"failed: {why}"
    pcie = a_machine(gpu_count=8, launcher=EIGHT, interconnect="pcie")
    other = a_box(tmp_path / "pcie", pcie)
    other.write(f"gpu/{broken}", word)
    assert bootstrap(other, pcie) == 0


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (links(from_2_5="PCIE"), "no xGMI between GPUs: GPU2 to GPU5: PCIE"),
        (links(4), "no xGMI between GPUs: GPU0 to GPU4: "),
        ("", "no xGMI between GPUs: rocm-smi tells the links of 0 of them"),
    ],
    ids=["a pair over PCIe", "half of them", "nothing is told"],
)
def test_amd_gpus_without_xgmi_are_a_failure(tmp_path: Path, told: str, why: str) -> None:
    """Eight GPUs that are sold with xGMI have it between every pair, or the machine has failed."""
    box = a_box(tmp_path, XGMI)
    assert bootstrap(box, XGMI) == 0, box.status
    assert "xGMI between all 8 GPUs" in box.read("var/lib/gpucost/bootstrap.log")
    box.write("links", told)
    assert bootstrap(box, XGMI) == 1
    assert box.status == f"failed: {why}".strip()


def test_another_layout_gives_way(tmp_path: Path) -> None:
    """Slices of an earlier layout are removed before the asked ones are made."""
    box = a_box(tmp_path, MIG)
    box.write("gpu/mig", "Enabled")
    box.write("gpu/slices", "7g.80gb")
    assert bootstrap(box, MIG) == 0
    assert "MIG layout: 2g.20gb 2g.20gb 3g.40gb" in box.read("var/lib/gpucost/bootstrap.log")


def test_each_job_sees_its_own_slice(tmp_path: Path) -> None:
    """The bootstrap notes who has which slice, no two the same; `run` gives a job its own."""
    box = a_box(tmp_path, SLICES)
    assert bootstrap(box, SLICES) == 0, box.status
    kept = box.read("var/lib/gpucost/slices")
    assert kept == "a=MIG-0-2\nb=MIG-0-1\nthe-c=MIG-0-3\n"
    show = ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    for line in kept.splitlines():
        job, _, uuid = line.partition("=")
        assert box.run("run", job, *show).stdout == f"{uuid}\n"
    assert box.run("run", "d", *show).returncode == 2
    box.write("var/lib/gpucost/slices", "a=MIG-0-2\n")
    ran = box.run("run", "b", *show)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "job b has no slice" in ran.stderr


def test_a_slice_that_the_driver_does_not_name_is_a_failure(tmp_path: Path) -> None:
    """A job that would see no slice, or another's, is not started: the machine is not ready."""
    box = a_box(tmp_path, SLICES)
    nvidia = (tmp_path / "bin/nvidia-smi").read_text("utf-8").replace("(UUID: MIG-", "(No ")
    box.write("bin/nvidia-smi", nvidia)
    assert bootstrap(box, SLICES) == 1
    assert box.status == "failed: the driver names no slice 2g.20gb for job a"


def test_a_scratch_disk_is_found_by_its_label(tmp_path: Path) -> None:
    """After a reboot the disk that was formatted is mounted, and never formatted again."""
    box = a_box(tmp_path, a_machine())
    assert bootstrap(box, a_machine()) == 0
    (tmp_path / "mounted").unlink()
    assert bootstrap(box, a_machine()) == 0
    assert box.calls.count("mkfs") == 1
    assert box.calls.count("\nmount ") == 2
    box.tool("mount", "true")
    (tmp_path / "mounted").unlink()
    assert bootstrap(box, a_machine()) == 1
    assert box.status == "failed: /dev/vdc is not on /scratch"
