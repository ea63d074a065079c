"""A log whose end is a hang: the GPUs read busy and draw a fraction of what the job drew."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpucost import diagnose, read_telemetry
from planner.profile.model import Profile

HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"
WORK, SPIN, DEAD = (96, 400), (100, 90), (0, 60)


def log(folder: Path, stretches: Sequence[tuple[int, Sequence[tuple[int, int]]]]) -> Profile:
    """The profile of minutes in which each GPU read so much use and power."""
    rows, minute = [HEADER], 0
    for minutes, gpus in stretches:
        for _ in range(minutes):
            time = f"2026/11/25 {10 + minute // 60:02}:{minute % 60:02}:00.000"
            for index, (busy, watts) in enumerate(gpus):
                name = "NVIDIA H100 80GB HBM3"
                rows.append(f"{time}, {index}, {name}, {busy} %, 60000 MiB, {watts}.00 W")
            minute += 1
    path = folder / "smi.csv"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return read_telemetry([path])


@pytest.mark.parametrize("end", [[SPIN] * 4, [SPIN, SPIN, DEAD, SPIN]], ids=["all", "one died"])
def test_a_hang_after_work_is_the_verdict(tmp_path: Path, end: list[tuple[int, int]]) -> None:
    """An hour of work and three of spinning: three quarters are wasted, and the job is to end."""
    first = diagnose(log(tmp_path, [(60, [WORK] * 4), (180, end)]))[0]
    assert (first.code, first.actions[0], first.confidence) == ("idle-held", "end-job", "likely")
    assert first.waste_fraction == pytest.approx(0.75, abs=0.03 if end[2] == SPIN else 0.1)


@pytest.mark.parametrize(
    ("stretches", "why"),
    [
        ([(60, [WORK] * 4), (8, [SPIN] * 4)], "no timeout has passed yet"),
        ([(60, [WORK] * 4), (60, [SPIN] * 4), (20, [WORK] * 4)], "it went on"),
        ([(60, [WORK] * 4), (180, [(97, 90)] * 4)], "kernels with gaps between them do something"),
        ([(60, [WORK] * 4), (180, [(100, 200)] * 4)], "half of the power is work of another kind"),
        ([(60, [WORK]), (180, [SPIN])], "one GPU waits for no other"),
        ([(60, [WORK] * 4), (180, [DEAD] * 4)], "nothing runs"),
    ],
)
def test_what_is_no_hang(
    tmp_path: Path, stretches: list[tuple[int, list[tuple[int, int]]]], why: str
) -> None:
    """Short, passing, uneven, half-power and single-GPU stretches are none."""
    assert all(phase.kind != "hang" for phase in log(tmp_path, stretches).phases), why
