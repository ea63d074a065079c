"""`gpucost import DIR`: many logs in one call, and a folder that gpucost filled."""

import json
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call

HEAD = "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB]\n"
ROW = "2026/03/01 10:00:0{i}.000, 0, GPU-{node}, NVIDIA L4, {busy} %, 1024 MiB\n"


def _log(file: Path, node: str, busy: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(ROW.format(i=i, node=node, busy=busy) for i in range(4))
    file.write_text(HEAD + rows, encoding="utf-8")


def test_hundreds_of_logs_are_one_call(call: Call, empty_folder: Path) -> None:
    """`import DIR --jobs-by file`: each file a job with a profile; a pipe is not told how far."""
    for i in range(210):
        _log(Path("logs") / f"node-{i}.csv", f"n{i}", i % 100)
    ran = call("import", "logs", "--jobs-by", "file", "-o", "profiles/")
    assert ran.code == 0, ran.err
    assert len(list((empty_folder / "profiles").glob("*.json"))) == 210
    assert "of 210 files" not in ran.err


@pytest.mark.usefixtures("empty_folder")
def test_many_profiles_are_said_in_a_table_of_the_first_and_a_count(call: Call) -> None:
    """More than ten: the first five, all counted, a note once; -v says each."""
    for i in range(12):
        _log(Path("logs") / f"node-{i:02}.csv", f"n{i}", 50)
    short = call("import", "logs", "--jobs-by", "file", "-o", "profiles/").err
    assert "wrote 12 files to profiles/\n" in short
    assert "12 profiles of 12 GPUs in all; the first 5 are shown, -v shows each." in short
    assert len([line for line in short.splitlines() if line.startswith("node-")]) == 5
    assert "note of 12 profiles: read as nvidia-smi-csv: 4 of 4 rows used, GPUs: 1." in short
    again = call("import", "logs", "--jobs-by", "file", "-o", "profiles/").err
    assert "wrote 12 files to profiles/, 12 in place of what was there\n" in again
    every = call("import", "logs", "--jobs-by", "file", "-o", "profiles/", "-v").err
    assert len([line for line in every.splitlines() if line.startswith("wrote ")]) == 12
    assert len([line for line in every.splitlines() if ": read node-" in line]) == 12


@pytest.mark.usefixtures("empty_folder")
def test_two_nodes_in_a_folder_are_one_job_of_two_machines(call: Call) -> None:
    """`import DIR`: logs of one folder complement each other, by uuid."""
    for node in ("n1", "n2"):
        _log(Path("logs") / f"{node}.csv", node, 50)
    ran = call("import", "logs", "-o", "-")
    assert ran.code == 0, ran.err
    assert len(json.loads(ran.out)["gpus"]) == 2
    assert "of 2 files" not in ran.err


@pytest.mark.parametrize("command", ["diagnose", "plan"])
@pytest.mark.usefixtures("empty_folder")
def test_a_folder_that_import_filled_is_read_as_its_profiles(command: str, call: Call) -> None:
    """A profile, its source, a plan and the settings beside each other are one job."""
    _log(Path("smi.csv"), "n1", 50)
    assert call("import", "smi.csv").code == 0
    Path("gpucost.toml").write_text("", encoding="utf-8")
    first = call(command, ".", "-f", "json")
    assert first.code == 0, first.err
    assert len(json.loads(first.out)["jobs"]) == 1
    again = call(command, ".", "--jobs-by", "folder", "-f", "json")
    assert len(json.loads(again.out)["jobs"]) == 1
