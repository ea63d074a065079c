"""How a series is split into files, by time or by metric, never changes the jobs, GPUs or bill."""

import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost.api import read_telemetry
from planner.profile.model import Profile

SECONDS = 240
METRICS = ("utilization.gpu [%]", "memory.used [MiB]", "power.draw [W]")


def _rows(seconds: range, gpus: int, metrics: tuple[str, ...]) -> str:
    head = ", ".join(("timestamp", "index", "uuid", "name", *metrics))
    lines = [head]
    for at in seconds:
        for gpu in range(gpus):
            values = (f"{20 + 7 * gpu + at % 50} %", f"{9000 + gpu} MiB", f"{60 + at % 50} W")
            cells = [v for m, v in zip(METRICS, values, strict=True) if m in metrics]
            when = f"2026/11/01 10:{at // 60:02}:{at % 60:02}.000"
            lines.append(", ".join((when, str(gpu), f"GPU-{gpu:08}", "NVIDIA A10G", *cells)))
    return "\n".join(lines) + "\n"


def _read(files: dict[str, str]) -> Profile:
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        return read_telemetry([str(Path(folder) / name) for name in files])


def _billed(profile: Profile) -> tuple[object, ...]:
    """What a bill is made of, and what is said of the use of each GPU."""
    assert profile.window is not None
    shares = [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus]
    return (
        profile.hardware.gpu,
        profile.hardware.gpu_count,
        pytest.approx(profile.window.duration_s, abs=2),
        *(pytest.approx(share, abs=0.01) for share in shares),
    )


def _answer(seconds: range, metrics: tuple[str, ...], moves_at: int, gpus: int) -> str:
    """A pod's series of DCGM, from one node, then from another: each has its own GPUs."""
    series = [
        {
            "metric": {
                "__name__": metric,
                "Hostname": host,
                "gpu": str(gpu),
                "UUID": f"GPU-{host}-{gpu}",
                "modelName": "NVIDIA A10G",
                "pod": "train-0",
            },
            "values": [[1_794_301_200 + 10 * at, str(40 + at % 20)] for at in ours],
        }
        for host, ours in (
            ("a", [at for at in seconds if at < moves_at]),
            ("b", [at for at in seconds if at >= moves_at]),
        )
        for gpu in range(gpus)
        for metric in metrics
        if ours
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(
    gpus=st.integers(1, 2),
    moves_at=st.integers(40, SECONDS - 40),
    cut=st.integers(40, SECONDS - 40),
    by_metric=st.booleans(),
)
def test_a_job_that_moved_is_billed_once_however_it_is_split(
    gpus: int, moves_at: int, cut: int, *, by_metric: bool
) -> None:
    """Never on two nodes at once: as many GPUs as one node gave it, for all of the time."""
    names = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")
    parts = [names[:1], names[1:]] if by_metric else [names]
    files = {
        f"{n}-{first}.json": _answer(range(first, last), metrics, moves_at, gpus)
        for n, metrics in enumerate(parts)
        for first, last in ((0, cut), (cut, SECONDS))
    }
    whole = _read({"all.json": _answer(range(SECONDS), names, moves_at, gpus)})
    assert whole.gpu_count == gpus
    assert whole.hardware.nodes == 1
    assert any("it moved" in note for note in whole.provenance.notes)
    assert _billed(_read(files)) == _billed(whole)


def test_a_job_on_two_nodes_at_once_is_billed_for_both() -> None:
    """Half of the time at both is no move."""
    answer = json.loads(_answer(range(120), ("DCGM_FI_DEV_GPU_UTIL",), 120, 1))
    late = json.loads(_answer(range(60, SECONDS), ("DCGM_FI_DEV_GPU_UTIL",), 0, 1))
    answer["data"]["result"] += late["data"]["result"]
    assert _read({"all.json": json.dumps(answer)}).gpu_count == 2


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(
    gpus=st.integers(1, 3),
    cuts=st.sets(st.integers(30, SECONDS - 30), max_size=3),
    by_metric=st.booleans(),
)
def test_splitting_a_series_never_changes_the_bill(
    gpus: int, cuts: set[int], *, by_metric: bool
) -> None:
    """One job of the same GPUs, as long and as busy as the log in one file."""
    ends = [0, *sorted(cuts), SECONDS]
    parts = [(METRICS[:1], "a"), (METRICS[1:], "b")] if by_metric else [(METRICS, "a")]
    files = {
        f"gpu-{name}.log.{n}": _rows(range(first, last), gpus, metrics)
        for metrics, name in parts
        for n, (first, last) in enumerate(pairwise(ends))
    }
    whole = _read({"gpu.log": _rows(range(SECONDS), gpus, METRICS)})
    assert _billed(_read(files)) == _billed(whole)
