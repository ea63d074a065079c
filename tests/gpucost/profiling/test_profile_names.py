"""Where profiles go: measurements side by side, one after the other, of several machines."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpucost.profiling.profile_target import ReservedName, reserve_name
from telemetry.measure.identity import host_name, node_of, run_here, usable_cpus

GPUCOST = str(Path(sys.executable).parent / "gpucost")
HOST = host_name()
NODE = node_of(HOST)


def _profile(name: str, node: str | None = NODE, run: str | None = None) -> None:
    document = {"job": {"name": name}, "run": {"node": node, "id": run}, "gpus": []}
    Path("profile.json").write_text(json.dumps(document), encoding="utf-8")


def _names(claims: list[ReservedName]) -> list[str]:
    names = [reserved.path.name for reserved in claims]
    for reserved in claims:
        reserved.release()
    return names


def test_three_measurements_at_once_write_three_profiles(empty_folder: Path) -> None:
    """Nothing is overwritten where jobs of one name run side by side in one folder."""
    command = [GPUCOST, "profile", "--no-gpu", "--interval", "0.1s", "--", "sleep", "1"]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    written = sorted(path.name for path in empty_folder.glob("profile*.json"))
    assert written == sorted(["profile.json", "profile.sleep.json", f"profile.sleep.{HOST}.json"])
    assert sum("is being written by another measurement" in text for text in said) == 2
    assert not list(empty_folder.glob(".*"))


def test_an_older_profile_of_the_same_job_is_replaced(empty_folder: Path) -> None:
    """Measuring again is measuring again: the same job on the same machine keeps its one name."""
    assert empty_folder.is_dir()
    _profile("train")
    assert _names([reserve_name(None, "train", {})]) == ["profile.json"]


@pytest.mark.parametrize(
    ("there", "environ", "name"),
    [
        (("eval", NODE, None), {}, "profile.train.json"),
        (("train", "elsewhere", None), {}, "profile.train.json"),
        (("train", NODE, "slurm 6.0"), {"SLURM_JOB_ID": "7"}, "profile.train.json"),
        (("train", NODE, "slurm 7.0"), {"SLURM_JOB_ID": "7"}, "profile.json"),
        (("train", None, None), {}, "profile.json"),
    ],
    ids=["another job", "another machine", "another Slurm job", "ours", "written by hand"],
)
def test_the_profile_of_another_stays(
    empty_folder: Path,
    there: tuple[str, str | None, str | None],
    environ: Mapping[str, str],
    name: str,
) -> None:
    """A profile of another job, machine or Slurm job stays; the new name says whose it is."""
    assert empty_folder.is_dir()
    _profile(*there)
    reserved = reserve_name(None, "train", environ)
    assert (reserved.path.name, bool(reserved.reason)) == (name, name != "profile.json")
    reserved.release()


def test_ranks_of_a_slurm_job_each_have_a_name(empty_folder: Path) -> None:
    """Tasks of one Slurm step in one folder: job, host, Slurm job and rank tell them apart."""
    assert empty_folder.is_dir()
    slurm = {"SLURM_JOB_ID": "12345", "SLURM_NTASKS": "4"}
    claims = [reserve_name(None, "train", {**slurm, "SLURM_PROCID": str(i)}) for i in range(4)]
    assert _names(claims) == [
        "profile.json",
        "profile.train.json",
        f"profile.train.{HOST}.12345.rank2.json",
        f"profile.train.{HOST}.12345.rank3.json",
    ]


def test_what_is_asked_for_is_taken_at_its_word(empty_folder: Path) -> None:
    """`-o` may replace what lies there; only a measurement that runs keeps its name."""
    assert empty_folder.is_dir()
    _profile("eval")
    first, second = (
        reserve_name("profile.json", "train", {}),
        reserve_name("profile.json", "train", {}),
    )
    assert _names([first, second]) == ["profile.json", "profile.train.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said_later(empty_folder: Path) -> None:
    """A reserved needs no file: what cannot be written is told by who writes."""
    empty_folder.chmod(0o500)
    assert _names([reserve_name(None, "train", {})]) == ["profile.json"]
    empty_folder.chmod(0o700)


@pytest.mark.parametrize(
    ("environ", "run"),
    [
        ({}, {}),
        ({"SLURM_JOB_ID": "5"}, {"id": "slurm 5"}),
        (
            {"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "8"},
            {"id": "slurm 5.0"},
        ),
        (
            {
                "SLURM_JOB_ID": "5",
                "SLURM_STEP_ID": "0",
                "SLURM_NTASKS": "8",
                "SLURM_STEP_NUM_NODES": "2",
            },
            {"id": "slurm 5.0", "world": 8},
        ),
    ],
    ids=["alone", "a Slurm job", "a sweep on one machine", "a step on two machines"],
)
def test_a_run_is_named_by_its_launcher(environ: dict[str, str], run: dict[str, object]) -> None:
    """The Slurm job and step name a run; only one on several machines is known to be one."""
    assert run_here(environ) == {"node": NODE, "cpus": usable_cpus(), **run}
