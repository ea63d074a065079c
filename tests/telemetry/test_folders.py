"""A folder as SOURCE: what in it is a job, what is a part of one, and what is left out."""

import gzip
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from planner.profile.codec import dump, parse_profiles
from planner.profile.join import join, join_runs
from planner.profile.model import (
    GpuReadings,
    Hardware,
    Host,
    Job,
    Profile,
    Provenance,
    Run,
    Series,
    Source,
    Statistics,
    Step,
    Window,
    Work,
)
from planner.profile.source import name_apart
from pricing.errors import InputError
from telemetry.folder import Skipped, files_below
from telemetry.measure.capture_file import CaptureFile
from telemetry.readers.hints import Hints
from telemetry.recording.recording import GpuIdentity
from telemetry.sources import read_telemetry
from tests.conftest import ROOT
from tests.telemetry.captures import path
from tests.telemetry.reading import read_source

START = datetime(2026, 11, 1, 10, tzinfo=UTC)
GPU = GpuIdentity(
    key="GPU-a", index=0, uuid="GPU-a", model="NVIDIA A100-SXM4-80GB", memory_gib=80.0
)


def _profile(name: str, **more: Any) -> Profile:
    return Profile(job=Job(name=name), hardware=Hardware(gpu="T4", gpu_count=1), **more)


def _write(file: Path, *profiles: Profile) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dump(profiles), encoding="utf-8")
    return file


def _read(folder: Path, *, together: bool = False) -> tuple[list[str], dict[str, Skipped]]:
    skipped: list[Skipped] = []
    profiles = (
        read_telemetry([str(folder)], Hints(), skipped=skipped)
        if together
        else read_source(str(folder), Hints(), skipped=skipped)
    )
    return [p.job.name for p in profiles], {
        str(Path(one.path).relative_to(folder)): one for one in skipped
    }


def _capture(file: Path, job: str, begin_s: float = START.timestamp(), seconds: int = 30) -> Path:
    capture = CaptureFile(file)
    capture.begin(begin_s, {"job": job, "interval_s": 1.0, "cpu_cores": 8, "ram_gib": 64.0})
    for i in range(seconds):
        capture.row(begin_s + i, GPU, {"util.kernel_time": 0.5, "mem.used_gib": 3.0})
    capture.end(begin_s + seconds)
    return capture.path


@pytest.mark.parametrize("together", [False, True])
def test_a_folder_that_gpucost_filled_holds_one_job(tmp_path: Path, *, together: bool) -> None:
    """Series, capture, source, plan, recipe, report and settings beside a profile are not jobs."""
    source = tmp_path / "smi.csv"
    source.write_bytes(Path(path("nvidia_smi.csv")).read_bytes())
    (made,) = read_telemetry([str(source)], Hints(name="train"))
    captured = _capture(tmp_path / "profile.capture.jsonl", "train")
    (cut_off,) = read_source(str(captured), Hints())
    finished = replace(
        made,
        window=cut_off.window,
        series=Series(samples="profile.samples.parquet", steps="profile.steps.jsonl"),
    )
    _write(tmp_path / "profile.json", finished)
    (tmp_path / "profile.samples.parquet").write_bytes(b"PAR1 and more")
    (tmp_path / "profile.steps.jsonl").write_text('{"t_s":1.0,"step":1,"n":1}\n')
    (tmp_path / "plan.json").write_text('{"schema": "gpucost.plan/v1", "jobs": []}')
    (tmp_path / "recipe.json").write_text('{"schema": "gpucost.recipe/v1"}')
    (tmp_path / "report.md").write_text("# GPU plan\n\nsome words about gpus\n| a | b |\n")
    (tmp_path / "gpucost.toml").write_text("[plan]\nprovider = 'aws'\n")
    (tmp_path / "README.md").write_text("# My job\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("import torch\n")
    names, skipped = _read(tmp_path, together=together)
    assert names == ["train"]
    assert {name: one.why for name, one in skipped.items()} == {
        "README.md": "not telemetry that gpucost knows",
        "gpucost.toml": "the settings of gpucost",
        "plan.json": "a gpucost plan, which is a result, no measurement",
        "profile.capture.jsonl": "the capture of profile.json, which is finished",
        "profile.samples.parquet": "a series of profile.json",
        "profile.steps.jsonl": "a series of profile.json",
        "recipe.json": "what a command of gpucost wrote, which is a result, no measurement",
        "report.md": "not telemetry that gpucost knows",
        "smi.csv": "profile.json was made from it",
        "src/train.py": "not telemetry that gpucost knows",
    }
    assert all(one.expected for one in skipped.values())


def test_a_capture_of_another_run_beside_a_profile_is_a_job(tmp_path: Path) -> None:
    """A later run of the same job that was cut off has measured something of its own."""
    (earlier,) = read_source(str(_capture(tmp_path / "x.capture.jsonl", "train")), Hints())
    (tmp_path / "x.capture.jsonl").unlink()
    _write(tmp_path / "profile.json", earlier)
    _capture(tmp_path / "profile.capture.jsonl", "train", START.timestamp() + 3600)
    names, skipped = _read(tmp_path)
    assert (names, skipped) == (["train", "train"], {})


def test_a_source_that_changed_is_named_with_a_warning(tmp_path: Path) -> None:
    """Telemetry that grew since its profile was made is not counted as a second job in silence."""
    source = Source(path="smi.csv", sha256="0" * 64, format="nvidia-smi-csv")
    _write(tmp_path / "p.json", _profile("a", provenance=Provenance(sources=(source,))))
    (tmp_path / "smi.csv").write_bytes(Path(path("nvidia_smi.csv")).read_bytes())
    names, skipped = _read(tmp_path)
    assert names == ["a"]
    assert "p.json was made from, or has changed since" in skipped["smi.csv"].why
    assert not skipped["smi.csv"].expected


def test_a_log_beside_a_copy_of_another_profile_is_a_job(tmp_path: Path) -> None:
    """A profile that lies without all that it was made from is a copy: a log here is another."""
    sources = tuple(
        Source(path=name, sha256="0" * 64, format="nvidia-smi-csv")
        for name in ("smi.csv", "smi.csv.1")
    )
    _write(tmp_path / "p.json", _profile("a", provenance=Provenance(sources=sources)))
    (tmp_path / "smi.csv").write_bytes(Path(path("nvidia_smi.csv")).read_bytes())
    names, skipped = _read(tmp_path)
    assert (len(names), skipped) == (2, {})


def test_links_pipes_and_hidden_things_are_left_out(tmp_path: Path) -> None:
    """A loop of links ends, a pipe is not waited for, a file under two names is one job."""
    _write(tmp_path / "a.json", _profile("a"))
    (tmp_path / "again.json").symlink_to("a.json")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "dead").symlink_to("nowhere")
    (tmp_path / ".cache").mkdir()
    os.mkfifo(tmp_path / "pipe")
    names, skipped = _read(tmp_path)
    assert names == ["a"]
    assert {name: (one.why, one.expected) for name, one in skipped.items()} == {
        ".cache": ("hidden", True),
        "again.json": (f"the same file as {tmp_path / 'a.json'}", True),
        "dead": ("cannot be read (no such file or directory)", False),
        "loop": (f"the same folder as {tmp_path}", True),
        "pipe": ("no regular file", True),
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    """A file and a folder without permission are warnings."""
    _write(tmp_path / "a.json", _profile("a"))
    _write(tmp_path / "b.json", _profile("b")).chmod(0)
    (tmp_path / "closed").mkdir(mode=0)
    names, skipped = _read(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert names == ["a"]
    assert "permission denied" in skipped["b.json"].why
    assert "permission denied" in skipped["closed"].why


def test_what_is_damaged_is_named_with_its_reason(tmp_path: Path) -> None:
    """A cut gzip and a profile with a wrong value are warnings beside what can be read."""
    _write(tmp_path / "a.json", _profile("a"))
    packed = gzip.compress(Path(path("nvidia_smi.csv")).read_bytes() * 50)
    (tmp_path / "smi.csv.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "wrong.json").write_text('{"hardware": {"gpu_count": -1}}', encoding="utf-8")
    names, skipped = _read(tmp_path)
    assert names == ["a"]
    assert "damaged or cut off" in skipped["smi.csv.gz"].why
    assert "gpu_count" in skipped["wrong.json"].why
    assert not any(one.expected for one in skipped.values())


def test_too_many_files_are_not_all_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of training data ends the search with a sentence, not with an hour of reading."""
    monkeypatch.setattr("telemetry.folder.MOST_FILES", 3)
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("x", encoding="utf-8")
    listing = files_below(str(tmp_path))
    assert len(listing.files) == 3
    assert ["over 3 files" in one.why for one in listing.skipped] == [True]


def test_one_name_in_two_folders_is_two_jobs(tmp_path: Path) -> None:
    """Jobs of one name are told apart by their folders, whatever the order of reading."""
    for folder in ("", "a100", "h100/try-2"):
        _write(tmp_path / folder / "profile.json", _profile("train"))
    _write(tmp_path / "other.json", _profile("serve"))
    names, _ = _read(tmp_path)
    assert sorted(names) == ["serve", "train", "train-a100", "train-h100-try-2"]


def test_files_of_a_folder_complement_each_other_and_captures_do_not(tmp_path: Path) -> None:
    """`import DIR`: telemetry of one folder is a job, two captures are two."""
    for name in ("nvidia_smi.csv", "dmon.txt"):
        (tmp_path / name).write_bytes(Path(path(name)).read_bytes())
    assert len(_read(tmp_path, together=True)[0]) == 1
    assert len(_read(tmp_path)[0]) == 2
    _capture(tmp_path / "one.capture.jsonl", "one")
    _capture(tmp_path / "two.capture.jsonl", "two")
    names, _ = _read(tmp_path, together=True)
    assert {"one", "two"} < set(names)
    assert len(names) == 3


def _part(node: str, *, rank_gpus: range = range(8), **more: Any) -> Profile:
    load = Statistics(mean=0.5 + 0.1 * len(node), p95=0.9, max=1.0, min=0.0)
    return Profile(
        job=Job(name="train", kind="training"),
        hardware=Hardware(gpu="H100", gpu_count=len(rank_gpus), nodes=1, cpu_cores=96),
        window=Window(start=START, duration_s=100.0),
        gpus=tuple(
            GpuReadings(index=i, uuid=f"GPU-{node}-{i}", metrics={"util.kernel_time": load})
            for i in rank_gpus
        ),
        host=Host(cpu_util=load),
        run=Run(id="slurm 77.0", node=node, world=16),
        **more,
    )


def test_the_nodes_of_a_run_become_one_profile() -> None:
    """GPUs add up, machines are counted, steps count once, samples add up, the host is one's."""
    lead = _part("a", step=Step(count=100, mean_s=0.5), work=Work(unit="sample", done=800.0))
    other = _part("bb", step=Step(count=99, mean_s=0.5), work=Work(unit="sample", done=792.0))
    (both,) = join_runs([other, lead])
    assert (both.gpu_count, both.hardware.nodes, len(both.gpus)) == (16, 2, 16)
    assert both.hardware.cpu_cores == 96
    assert both.step is not None
    assert both.step.count == 100
    assert both.work is not None
    assert both.work.done == 1592.0
    assert both.host is not None
    assert both.host.cpu_util is not None
    assert both.host.cpu_util.mean == pytest.approx(0.65)
    assert both.run == Run(id="slurm 77.0", world=16)
    assert "16 GPUs on 2 machines" in both.provenance.notes[0]
    assert join([lead, other]) == join([other, lead]) == both
    (again,) = parse_profiles(dump((both,)).encode(), "x")
    assert again == both


def test_ranks_that_were_measured_one_by_one_are_one_machine() -> None:
    """Two profiles of one node that saw the same devices count each device once."""
    steps = Work(unit="step", done=100.0)
    (both,) = join_runs(
        [_part("a", rank_gpus=range(4), work=steps), _part("a", rank_gpus=range(3, 8), work=steps)]
    )
    assert (both.gpu_count, both.hardware.nodes) == (8, 1)
    assert both.work == steps


@pytest.mark.parametrize(
    "other",
    [
        replace(_part("b"), run=Run(id="slurm 78.0", node="b")),
        replace(_part("b"), run=None),
        replace(_part("a"), window=Window(start=START + timedelta(hours=1), duration_s=9.0)),
    ],
    ids=["another run", "no run", "an hour later"],
)
def test_what_is_not_of_one_run_stays_apart(other: Profile) -> None:
    """Another run, a job without a run, and the next program of a batch script stay jobs."""
    assert join_runs([_part("a"), other]) == (_part("a"), other)


def test_nodes_in_folders_of_their_own_are_joined(tmp_path: Path) -> None:
    """`plan DIR` over node1/profile.json and node2/profile.json plans one job of two machines."""
    for node in ("n1", "n2"):
        _write(tmp_path / node / "profile.json", _part(node))
    (profile,) = name_apart(read_source(str(tmp_path), Hints()))
    assert (profile.job.name, profile.gpu_count) == ("train", 16)


@pytest.mark.parametrize("end", ["/", "/.", "//"])
def test_a_folder_may_end_in_a_slash(tmp_path: Path, end: str) -> None:
    """What a shell completes is the same folder, with a log, a profile or both in it."""
    log = "timestamp, name, utilization.gpu [%]\n"
    rows = (f"2026/11/20 08:00:{at:02}.000, Tesla T4, 90 %\n" for at in range(10))
    (tmp_path / "smi.csv").write_text(log + "".join(rows), "utf-8")
    assert read_source(f"{tmp_path}{end}", Hints()) == read_source(str(tmp_path), Hints())
    shutil.copy(ROOT / "examples/visual-search.json", tmp_path / "profile.json")
    assert len(read_source(f"{tmp_path}{end}", Hints())) == 2


def test_an_unreadable_folder_is_an_error(tmp_path: Path) -> None:
    """A folder in which nothing is left lists why."""
    (tmp_path / "plan.json").write_text(json.dumps({"schema": "gpucost.plan/v1"}))
    with pytest.raises(InputError, match=r"plan\.json: a gpucost plan"):
        read_source(str(tmp_path), Hints())
