"""A log in which a job fills the GPU's memory and is gone, again and again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpucost import diagnose, read_telemetry
from planner.profile.model import Profile

HEADER = "timestamp, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
FULL_MIB, ROOM_MIB = 81_050, 81_920


def log(folder: Path, attempts: Sequence[tuple[int, int]], *, pause: int = 5) -> Profile:
    """The profile of attempts of forty minutes, each from one fill of the memory to another."""
    rows, minute = [HEADER], 0
    for first_mib, last_mib in attempts:
        held = [first_mib + (last_mib - first_mib) * step // 39 for step in range(40)]
        for busy, mib in [(95, mib) for mib in held] + [(0, 4)] * pause:
            time = f"2026/11/25 {10 + minute // 60:02}:{minute % 60:02}:00.000"
            rows.append(f"{time}, NVIDIA A100-SXM4-80GB, {busy} %, {mib} MiB, {ROOM_MIB} MiB")
            minute += 1
    path = folder / "smi.csv"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return read_telemetry([path])


@pytest.mark.parametrize("times", [2, 4])
def test_memory_that_fills_and_is_free_again_likely_ran_out(tmp_path: Path, times: int) -> None:
    """Each attempt grows to 99 % of the GPU and is gone: memory is the verdict, as likely."""
    profile = log(tmp_path, [(60_000, FULL_MIB)] * times)
    assert profile.job.ended == "gpu-out-of-memory-likely"
    first = diagnose(profile)[0]
    assert (first.code, first.confidence) == ("memory-pressure", "likely")


@pytest.mark.parametrize(
    ("attempts", "why"),
    [
        ([(60_000, FULL_MIB)], "once may be the end of the work"),
        ([(FULL_MIB, FULL_MIB)] * 4, "an allocator's cache is full from the start"),
        ([(20_000, 40_000)] * 4, "half of the memory was free"),
        ([(60_000, FULL_MIB), (30_000, 30_000)] * 2, "not each of them filled it"),
    ],
)
def test_jobs_one_by_one_did_not_run_out(
    tmp_path: Path, attempts: list[tuple[int, int]], why: str
) -> None:
    """What ends without filling the memory, or fills it at once, ended by itself."""
    assert log(tmp_path, attempts).job.ended is None, why
