"""Traces and summaries of profilers: busy shares, steps, waiting, exchange, energy."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.diagnosis.diagnose import diagnose
from pricing.errors import InputError
from telemetry.profiling.window import Covered
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.telemetry.captures import assert_writable, path
from tests.telemetry.reading import read_source

TRACE = "profilers/kineto.json"


def test_a_trace_tells_where_a_step_goes() -> None:
    """Step, waiting for input, exchange that no kernel hides, and busy share, by hand."""
    (profile,) = read_source(path(TRACE), Hints())
    assert_writable((profile,))
    step = profile.step
    assert step is not None
    assert (step.count, step.counted_by) == (3, "program")
    assert step.mean_s == pytest.approx(0.1)
    assert step.data_wait_s == pytest.approx(0.02)
    assert step.comm_s == pytest.approx(0.02)  # 30 ms, of which 10 lie under a kernel
    assert step.optimizer_s == pytest.approx(0.005)
    assert step.compute_s == pytest.approx(0.06)
    assert profile.mean("util.kernel_time") == pytest.approx(0.65, abs=1e-6)
    assert (profile.hardware.gpu, profile.hardware.gpu_memory_gib) == (
        "NVIDIA A100-SXM4-40GB",
        40.0,
    )
    assert [rank.rank for rank in profile.ranks] == [1]


def test_a_trace_complements_a_log() -> None:
    """A trace beside a log of nvidia-smi gives one job with the steps of the one and all GPUs."""
    (profile,) = read_telemetry([path(TRACE), path("nvidia_smi.csv")], Hints())
    assert profile.step is not None
    assert any("power.board_w" in gpu.metrics for gpu in profile.gpus)


@pytest.mark.parametrize("kept", [0.95, 0.5])
def test_a_trace_that_was_cut_is_read_as_far_as_it_goes(kept: float, tmp_path: Path) -> None:
    """The process was killed while it wrote: what is whole is read, the cut is counted."""
    text = Path(path(TRACE)).read_text(encoding="utf-8")
    file = tmp_path / "cut.json"
    file.write_text(text[: int(len(text) * kept)], encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert profile.provenance.sources[0].dropped == {"cut or damaged, and all behind it": 1}
    assert profile.step is not None
    assert profile.step.mean_s == pytest.approx(0.1)


def test_a_trace_of_the_host_has_steps_and_no_gpu(tmp_path: Path) -> None:
    """Without work of a GPU nothing is said of it, never 0."""
    document = json.loads(Path(path(TRACE)).read_text(encoding="utf-8"))
    events = [e for e in document["traceEvents"] if e.get("cat") == "user_annotation"]
    file = tmp_path / "host.json"
    file.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert profile.gpus == ()
    assert profile.step is not None
    assert profile.step.comm_s is None
    assert any("no GPU was measured" in note for note in profile.provenance.notes)


def test_an_export_of_nsight_is_read() -> None:
    """Kernels and copies that overlap count once; which GPU it is, is told."""
    (profile,) = read_source(path("profilers/nsys.sqlite"), Hints())
    assert_writable((profile,))
    columns = {column.source: column for column in profile.provenance.sources[0].columns}
    assert columns["GPU 0: busy share"].mean == pytest.approx(0.5, abs=0.001)
    assert columns["GPU 0: busy [s]"].mean == pytest.approx(0.5)
    assert profile.hardware.gpu == "NVIDIA A100-SXM4-40GB"


@pytest.mark.parametrize("kept", [120, 1500, 4000])
def test_a_damaged_export_is_refused(kept: int, tmp_path: Path) -> None:
    """A database that was cut off is refused with a sentence."""
    file = tmp_path / "cut.sqlite"
    file.write_bytes(Path(path("profilers/nsys.sqlite")).read_bytes()[:kept])
    with pytest.raises(InputError, match=r"cut\.sqlite"):
        read_source(str(file), Hints())


def test_energy_of_zeus_is_power_of_each_window() -> None:
    """Energy over time of each window and GPU; a row that was cut is dropped."""
    (profile,) = read_source(path("profilers/zeus.csv"), Hints())
    assert [gpu.metrics["power.board_w"].mean for gpu in profile.gpus] == [250.0, 100.0]
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(20.0)
    assert profile.provenance.sources[0].dropped == {"row that is not complete": 1}


def test_a_table_of_runs_is_a_job_a_row(tmp_path: Path) -> None:
    """Each run by power limit is its own job."""
    file = tmp_path / "summary.csv"
    file.write_text(
        "network,power_limit,time_per_epoch,average_power\nr,100,20.0,90.0\nr,200,10.0,150.0\n",
        encoding="utf-8",
    )
    found = {p.job.name: p.mean("power.board_w") for p in read_source(str(file), Hints())}
    assert found == {"r 100": 90.0, "r 200": 150.0}


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=30),
    st.integers(0, 230),
    st.integers(0, 230),
)
def test_a_union_counts_every_instant_once(
    spans: list[tuple[int, int]], one: int, other: int
) -> None:
    """Covered time of a stretch is the number of its whole units that any interval holds."""
    begin, end = sorted((one, other))
    units = {unit for start, length in spans for unit in range(start, start + length)}
    covered = Covered([start for start, _ in spans], [sum(span) for span in spans])
    assert covered.total == len(units)
    np.testing.assert_allclose(
        covered.within(begin, end), len([unit for unit in units if begin <= unit < end])
    )


def _trace_of(folder: Path, rank: int, world: int, optimizer: str = "Shampoo") -> Path:
    """A trace of one GPU: ten steps of 100 ms, 60 ms of kernels in each."""
    begin = 1_794_301_200_000_000
    about = {"backend": "nccl", "rank": rank, "world_size": world}
    spans = [
        (begin + 100_000 * n + at, length, category, name)
        for n in range(10)
        for at, length, category, name in (
            (0, 100_000, "user_annotation", f"ProfilerStep#{n}"),
            (0, 60_000, "kernel", "gemm"),
            (60_000, 40_000, "user_annotation", "Optimizer.step#EMAOptimizer.step"),
            (60_000, 39_000, "user_annotation", f"Optimizer.step#{optimizer}.step"),
        )
    ]
    keys = ("ts", "dur", "cat", "name")
    events = [{"ph": "X", "args": {"device": 0}, **dict(zip(keys, s, strict=True))} for s in spans]
    document = {"schemaVersion": 1, "distributedInfo": about, "traceEvents": events}
    file = folder / f"rank-{rank}.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


@pytest.mark.parametrize("ranks", [[0], [0, 1]])
def test_traces_of_some_ranks_are_one_job_of_all_ranks(ranks: list[int], tmp_path: Path) -> None:
    """The world's size says how many GPUs there are, however many of its ranks were traced."""
    for rank in ranks:
        _trace_of(tmp_path, rank, 128)
    (profile,) = read_source(str(tmp_path), Hints(gpu="A100-SXM-80GB"))
    assert profile.gpu_count == 128
    assert profile.hardware.nodes is None
    assert [rank.rank for rank in profile.ranks] == ranks
    assert profile.mean("util.kernel_time") == pytest.approx(0.6, abs=1e-3)
    assert any(f"{len(ranks)} of 128 ranks were read" in n for n in profile.provenance.notes)


def test_one_rank_twice_is_of_two_runs(tmp_path: Path) -> None:
    """Two traces at one time that both say rank 0 are not parts of one run."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        _trace_of(tmp_path / name, 0, 2)
    profiles = read_source(str(tmp_path), Hints(gpu="A100-SXM-80GB"))
    assert [profile.gpu_count for profile in profiles] == [2, 2]


@pytest.mark.parametrize(("optimizer", "offered"), [("Shampoo", False), ("AdamW", True)])
def test_a_fused_optimizer_is_for_those_that_have_one(
    optimizer: str, tmp_path: Path, *, offered: bool
) -> None:
    """PyTorch has `fused=True` for Adam, AdamW, SGD and Adagrad alone."""
    file = _trace_of(tmp_path, 0, 1, optimizer)
    (profile,) = read_source(str(file), Hints(gpu="A100-SXM-80GB"))
    assert profile.step is not None
    assert profile.step.optimizer == optimizer
    actions = {action for finding in diagnose(profile) for action in finding.actions}
    assert ("fused-optimizer" in actions) is offered
