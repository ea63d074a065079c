"""Ranks and machines that are measured apart leave one profile of their run."""

import json
import multiprocessing
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from msgspec.structs import replace

from gpucost.live.sources import read_sources
from gpucost.profiling import run_files
from gpucost.profiling.profile_target import reserve_name
from planner.profile.model import Profile, Rank, Run, Statistics
from telemetry.measure.identity import launch_of
from tests.gpucost.profiling.rank_parts import START, WORLD, part_of, put, put_with_others
from tests.gpucost.profiling.test_profile import FAST, GPUCOST


def _gpus(folder: Path) -> list[str]:
    rows = duckdb.read_parquet(str(folder / "profile.samples.parquet")).select("gpu").fetchall()
    return [name for (name,) in rows]


def _load(path: Path) -> Profile:
    from gpucost.api import load_profile  # noqa: PLC0415 - the public door

    return load_profile(path)


def test_ranks_that_end_at_once_leave_one_whole_profile(empty_folder: Path) -> None:
    """Processes that write at once, one profile: every rank is in it, and nothing else is left."""
    context = multiprocessing.get_context("spawn")
    all_there = context.Barrier(WORLD)
    running = [
        context.Process(target=put_with_others, args=(empty_folder, rank, all_there))
        for rank in range(WORLD)
    ]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert [one.exitcode for one in running] == [0] * WORLD
    files = sorted(path.name for path in empty_folder.iterdir())
    assert files == ["profile.json", "profile.samples.parquet", "profile.steps.jsonl"]
    profile = _load(empty_folder / "profile.json")
    assert [rank.rank for rank in profile.ranks] == list(range(WORLD))
    assert profile.work is not None
    assert profile.work.done == 100.0 * WORLD
    assert profile.step is not None
    assert profile.step.count == 11
    assert json.loads((empty_folder / "profile.steps.jsonl").read_text()) == {"step": 2}
    rows = _gpus(empty_folder)
    assert sorted(rows) == [str(rank) for rank in range(WORLD)]
    assert profile.host is not None
    assert profile.host.cpu_util == Statistics(mean=0.4, max=0.8)
    assert profile.host.ram_used_gib == Statistics(max=12.0)
    assert profile.hardware.cpu_cores == 4.0


def test_a_rank_that_is_lost_costs_that_rank_alone(empty_folder: Path) -> None:
    """The profile is there after each part, and says how many processes are not in it yet."""
    for n, rank in enumerate((3, 0, 2), start=1):
        done = put(empty_folder, part_of(rank))
        assert (done.parts, done.world, done.complete) == (n, WORLD, False)
        assert len(_load(done.target).ranks) == n
    profile = _load(empty_folder / "profile.json")
    assert [rank.rank for rank in profile.ranks] == [0, 2, 3]
    assert profile.provenance.notes[0] == "3 of 4 processes of the run are in this profile."
    assert [path.name for path in empty_folder.glob("*.json")] == ["profile.json"]
    assert read_sources(("profile.json",)) == read_sources((".",))  # parts are no jobs beside it


def test_a_part_of_an_earlier_run_of_that_name_stays_out(empty_folder: Path) -> None:
    """The same address an hour later is another run: torchrun's default is always the same."""
    put(empty_folder, part_of(0, start=START - timedelta(hours=1)))
    put(empty_folder, part_of(1))
    put(empty_folder, part_of(2))
    profile = _load(empty_folder / "profile.json")
    assert [rank.rank for rank in profile.ranks] == [1, 2]


def test_gpus_of_several_machines_have_their_machine_in_their_name(empty_folder: Path) -> None:
    """GPU 0 of one machine is not GPU 0 of the other."""
    put(empty_folder, part_of(0, node="a"))
    put(empty_folder, part_of(1, node="b"))
    rows = _gpus(empty_folder)
    assert sorted(name.partition("/")[2] for name in rows) == ["0", "1"]
    assert {name.partition("/")[0] for name in rows} == {"0", "1"}
    profile = _load(empty_folder / "profile.json")
    assert profile.hardware.nodes == 2
    assert profile.host is not None
    assert profile.host.cpu_util == Statistics(mean=0.1, max=0.2)


def test_the_profile_of_another_job_stays(empty_folder: Path) -> None:
    """A run takes another name then, and all of its parts the same."""
    other = {"schema": "gpucost.profile/v1", "job": {"name": "eval"}, "gpus": []}
    (empty_folder / "profile.json").write_text(json.dumps(other))
    for rank in range(WORLD):
        put(empty_folder, part_of(rank))
    assert json.loads((empty_folder / "profile.json").read_text()) == other
    assert len(_load(empty_folder / "profile.train.json").ranks) == WORLD


APART = {
    "one process": replace(part_of(0), run=Run(node="a", id="77")),
    "a task of a sweep": replace(part_of(0), run=Run(node="a", id="slurm 5.0"), ranks=()),
    "no run": replace(part_of(0), run=None),
    "all ranks in one measurement": replace(
        part_of(0), ranks=tuple(Rank(rank=rank) for rank in range(WORLD))
    ),
}


@pytest.mark.parametrize("case", APART)
def test_a_job_of_its_own_is_no_part(case: str) -> None:
    """It gets its own profile, as ever."""
    assert not run_files.is_part(APART[case])
    assert run_files.is_part(part_of(0))


TORCHRUN = ("torchrun", "--nnodes=2", "--node-rank", "0", "train.py")
LAUNCHES = {
    "two machines of torchrun": (
        ({}, TORCHRUN),
        ({}, ("torchrun", "--nnodes=2", "--node_rank=1", "train.py")),
        True,
    ),
    "another script": (({}, TORCHRUN), ({}, (*TORCHRUN[:-1], "eval.py")), False),
    "ranks of one step": (
        ({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}, ()),
        ({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}, ()),
        True,
    ),
    "two steps of one job": (
        ({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}, ()),
        ({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "1"}, ()),
        False,
    ),
    "ranks of torchrun": (
        ({"MASTER_ADDR": "n1", "MASTER_PORT": "29500", "RANK": "0"}, ()),
        ({"MASTER_ADDR": "n1", "MASTER_PORT": "29500", "RANK": "1"}, ()),
        True,
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_processes_of_one_launch_are_known_by_what_they_share(case: str) -> None:
    """And by nothing that says which of them it is."""
    one, other, same = LAUNCHES[case]
    first, second = launch_of(*one), launch_of(*other)
    assert first is not None
    assert (first == second) is same


def test_a_single_command_is_of_no_launch() -> None:
    """Nothing in its environment or its words says that there is another."""
    assert launch_of({}, ("python", "train.py")) is None
    assert launch_of({"SLURM_JOB_ID": "5"}, ("torchrun", "--nnodes=1", "train.py")) is None


def test_a_rank_beside_this_one_is_not_told_as_another_measurement(empty_folder: Path) -> None:
    """Ranks say nothing of each other's names; another launch in the folder is said."""
    slurm = {"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}
    assert empty_folder.is_dir()
    first = reserve_name(None, "train", slurm)
    second, third = reserve_name(None, "train", slurm), reserve_name(None, "train", {})
    assert (first.reason, second.reason) == ("", "")
    assert "another measurement" in third.reason
    for one in (first, second, third):
        one.release()


# Ends once both are being measured; a capture that has just gone was one of them.
TOGETHER = """
import glob, os, time
def lines(path):
    try:
        return len(open(path).readlines())
    except FileNotFoundError:
        return 6
def measured():
    return sum(lines(path) > 5 for path in glob.glob("*.capture.jsonl"))
while measured() < 2 and not os.path.exists("seen"):
    time.sleep(0.05)
open("seen", "w").close()
"""


def test_tasks_of_a_step_on_two_machines_leave_one_profile(empty_folder: Path) -> None:
    """`srun gpucost profile -- CMD`: the last task tells the finding, the others their part."""
    slurm = {"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}
    said = []
    for rank in "01":
        environ = {**os.environ, **slurm, "SLURM_STEP_NUM_NODES": "2", "SLURM_PROCID": rank}
        ran = subprocess.Popen(
            [GPUCOST, "profile", *FAST, "--no-metadata", "--", sys.executable, "-c", TOGETHER],
            cwd=empty_folder,
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )
        said.append(ran)
    told = [ran.communicate()[1] for ran in said]
    assert [ran.returncode for ran in said] == [0, 0], told
    assert sorted(path.name for path in empty_folder.iterdir()) == [
        "profile.json",
        "profile.samples.parquet",
        "seen",
    ]
    profile = json.loads((empty_folder / "profile.json").read_text())
    assert profile["run"] == {**profile["run"], "id": "slurm 5.0", "world": 2, "node": None}
    assert "2 profiles of run slurm 5.0 are joined" in profile["provenance"]["notes"][0]
    assert sum("processes of this run" in text for text in told) == 1, told
    assert sum("gpucost plan " in text for text in told) == 1, told
