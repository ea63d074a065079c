"""The scripts run: under a root of their own, with the machine's tools replaced by small ones."""

from pathlib import Path

import pytest

from templates.bootstrap_files import MachineBootstrap
from tests.bootstrap.box import Box
from tests.bootstrap.machines import HOSTILE, MACHINES, a_machine


def armed_box(root: Path, machine: MachineBootstrap) -> Box:
    """A machine whose watch beats."""
    box = Box(root, machine)
    box.write("run/gpucost/beat", "15\n")
    return box


def test_a_good_machine_becomes_ready(tmp_path: Path) -> None:
    """The watch is seen at work, then GPUs are counted, persistence is on, scratch is mounted."""
    box = armed_box(tmp_path, a_machine())
    ran = box.run("bootstrap.sh")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert box.status == "ready"
    assert "ends itself at 2026-11-21 20:15:00 UTC" in box.read("var/lib/gpucost/bootstrap.log")
    assert "nvidia-smi -pm 1" in box.calls
    assert "mkfs -q -F -m 0 -L gpucost-scratch /dev/vdc" in box.calls
    assert f"mount -o noatime /dev/vdc {tmp_path}/scratch" in box.calls


@pytest.mark.parametrize(
    ("machine", "gpus", "told"),
    [
        (a_machine(gpu_count=8), "7", "failed: the driver shows 7 GPUs, and 8 are paid for"),
        (a_machine(), "0", "failed: the driver shows 0 GPUs, and 1 are paid for"),
        (MACHINES["AMD"], "4", "failed: the driver shows 4 GPUs, and 8 are paid for"),
    ],
    ids=str,
)
def test_a_missing_gpu_is_a_failure_with_its_reason(
    tmp_path: Path, machine: MachineBootstrap, gpus: str, told: str
) -> None:
    """What is paid for and not there makes the machine unusable, in words; its end stays armed."""
    box = armed_box(tmp_path, machine)
    assert box.run("bootstrap.sh", GPUS=gpus).returncode == 1
    assert box.status == told


def test_a_failing_command_is_named(tmp_path: Path) -> None:
    """Any command that fails is the reason, with its line."""
    box = armed_box(tmp_path, a_machine())
    (tmp_path / "bin" / "mkfs.ext4").write_text("#!/bin/bash\nexit 1\n", encoding="utf-8")
    assert box.run("bootstrap.sh").returncode == 1
    assert box.status.startswith("failed: line ")
    assert "mkfs.ext4" in box.status


def test_several_empty_disks_become_one(tmp_path: Path) -> None:
    """Two scratch disks are joined; a machine without any keeps /scratch on its boot disk."""
    disks = "/dev/nvme1n1 disk 0\\n/dev/nvme2n1 disk 0\\n/dev/sr0 rom 1\\n"
    box = armed_box(tmp_path / "two", a_machine())
    assert box.run("bootstrap.sh", DISKS=disks).returncode == 0
    assert "--raid-devices=2 /dev/nvme1n1 /dev/nvme2n1" in box.calls
    none = armed_box(tmp_path / "none", a_machine())
    assert none.run("bootstrap.sh", DISKS="").returncode == 0
    assert "mkfs" not in none.calls


def test_no_disk_of_the_users_own_machine_is_formatted(tmp_path: Path) -> None:
    """A machine that the user already has keeps its disks, and is never ended."""
    box = Box(tmp_path, MACHINES["the user's own"])
    assert box.run("bootstrap.sh").returncode == 0
    assert box.status == "ready"
    assert box.calls == ""


def test_mps_is_started_and_asked(tmp_path: Path) -> None:
    """A shared placement has its MPS daemon running before the machine says ready."""
    box = armed_box(tmp_path, MACHINES["shared by MPS"])
    assert box.run("bootstrap.sh").returncode == 0
    assert "nvidia-smi -c EXCLUSIVE_PROCESS" in box.calls
    assert "mps -d" in box.calls


def test_a_command_runs_with_the_settings(tmp_path: Path) -> None:
    """`run` gives a command the environment, and exit codes come back."""
    box = Box(tmp_path, a_machine(environment={"NCCL_ALGO": "1"}))
    ran = box.run("run", "bash", "-c", 'echo "$NCCL_ALGO $TMPDIR"; exit 7')
    assert ran.stdout == "1 /scratch\n"
    assert ran.returncode == 7


def test_nodes_find_each_other(tmp_path: Path) -> None:
    """Rank and address of the first machine come from the launch, unless the caller sets them."""
    box = Box(tmp_path, MACHINES["two nodes of eight"])
    box.write("etc/gpucost/rendezvous", "NODE_RANK=1\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=29500\n")
    assert box.run("run", "python", "train.py").returncode == 0
    assert "is_host=false --rdzv-endpoint=10.0.0.1:29500" in box.calls
    assert box.run("run", "true", MASTER_PORT="4242", NODE_RANK="0").returncode == 0
    assert "is_host=true --rdzv-endpoint=10.0.0.1:4242" in box.calls


def test_eight_gpus_get_eight_processes(tmp_path: Path) -> None:
    """A command on eight GPUs goes through torchrun as planned; two machines meet at the first."""
    box = Box(tmp_path, MACHINES["two nodes of eight"])
    ran = box.run("run", "python", "train.py", NODE_RANK="1", MASTER_ADDR="10.0.0.1")
    assert ran.returncode == 0, ran.stderr
    assert "torchrun --nproc-per-node=8 --max-restarts=2 --nnodes=1:2" in box.calls
    assert "--rdzv-backend=c10d --rdzv-id=k3f9xw2m --rdzv-conf=is_host=false" in box.calls
    assert "--rdzv-endpoint=10.0.0.1:29500 --no-python" in box.calls
    box.run("run", "python", "train.py", NODE_RANK="0", MASTER_ADDR="10.0.0.1")
    assert "is_host=true" in box.calls
    assert box.run("run", "python", "train.py").returncode != 0


def test_a_shared_machine_asks_which_job(tmp_path: Path) -> None:
    """On a shared GPU `run` takes the job's name first, and knows only the placement's jobs."""
    box = Box(tmp_path, MACHINES["shared in turns"])
    assert box.run("run", "infer-b", "true").returncode == 0
    assert box.run("run", "another", "true").returncode == 2


def test_as_many_processes_as_gpus_work(tmp_path: Path) -> None:
    """Where more GPUs are paid for than work, torchrun starts a process for each that works."""
    box = Box(tmp_path, MACHINES["two of eight GPUs"])
    assert box.run("run", "python", "train.py").returncode == 0
    assert "torchrun --nproc-per-node=2 --no-python" in box.calls


def test_no_value_of_a_variable_becomes_code(tmp_path: Path) -> None:
    """Whatever a value holds, the command gets it as it is."""
    box = Box(tmp_path, a_machine(environment={"ODD": HOSTILE}))
    assert box.run("run", "bash", "-c", 'printf %s "$ODD"').stdout == HOSTILE
