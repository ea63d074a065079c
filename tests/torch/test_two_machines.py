"""Ranks that are measured apart: torchrun on two machines, and gpucost in each rank."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.torch.conftest import PROGRAMS

GPUCOST = str(ROOT / ".venv" / "bin" / "gpucost")
MEASURED = (GPUCOST, "profile", "--no-gpu", "--no-metadata", "--interval", "0.2s", "--")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    if not Path(GPUCOST).exists():
        pytest.skip(f"{GPUCOST} is not there: make demo")
    for path in PROGRAMS.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def _one_profile(folder: Path, said: list[str]) -> None:
    names = sorted(path.name for path in folder.iterdir() if "profile" in path.name)
    assert names == ["profile.json", "profile.samples.parquet", "profile.steps.jsonl"], said
    profile = json.loads((folder / "profile.json").read_text())
    assert [rank["rank"] for rank in profile["ranks"]] == [0, 1]
    assert len({rank["steps"] for rank in profile["ranks"]}) == 1
    assert profile["step"]["count"] == profile["ranks"][0]["steps"]
    assert profile["run"]["world"] == 2


def test_two_machines_of_torchrun_leave_one_profile(folder: Path) -> None:
    """With gpucost before torchrun on each of them both ranks are in one profile.json."""
    address = ("--master-addr=127.0.0.1", f"--master-port={_free_port()}")
    where = ("--nnodes=2", "--nproc-per-node=1", *address)
    running = [
        subprocess.Popen(
            [*MEASURED, *TORCHRUN, *where, f"--node-rank={n}", "ways.py", "rank"],
            cwd=folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for n in (0, 1)
    ]
    said = [one.communicate()[1] for one in running]
    assert [one.returncode for one in running] == [0, 0], said
    _one_profile(folder, said)


def test_gpucost_in_each_rank_leaves_one_profile(folder: Path) -> None:
    """Where torchrun starts gpucost, which starts the program: one profile, too."""
    words = (*TORCHRUN, "--standalone", "--nproc-per-node=2", "--no-python", *MEASURED)
    ran = subprocess.run(
        [*words, sys.executable, "ways.py", "rank"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    _one_profile(folder, [ran.stderr])
