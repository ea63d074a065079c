"""How a series is split into files, by time or by metric, never changes the jobs, GPUs or bill."""

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
