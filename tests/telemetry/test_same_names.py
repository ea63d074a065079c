"""Columns of one name: a second GPU is read as one, or the file is refused; it never vanishes."""

from pathlib import Path

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.reading import read_source

_GPUS = ("GPU [#0]: NVIDIA GeForce RTX 4090", "GPU [#1]: NVIDIA GeForce RTX 3060: ASUS")


def _hwinfo(file: Path, *, first: int, stopped: bool) -> str:
    """Write a log of HWiNFO for two GPUs, 85 and 4 % busy, and return where."""
    load = {0: "85.0,320.0", 1: "4.0,40.0"}
    order = (first, 1 - first)
    header = 'Date,Time,"CPU Power [W]",' + 2 * '"GPU Core Load [%]","GPU Power [W]",'
    rows = [
        f"20.11.2026,10:00:{second:02}.000,90.0,{','.join(load[gpu] for gpu in order)},"
        for second in range(0, 60, 2)
    ]
    sensors = ",,CPU [#0]: AMD," + "".join(2 * f"{_GPUS[gpu]}," for gpu in order)
    file.write_text("\n".join([header, *rows, *([header, sensors] * stopped)]) + "\n")
    return str(file)


def _busy(profile: Profile) -> dict[int | None, float | None]:
    return {gpu.index: gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus}


@pytest.mark.parametrize("first", [0, 1])
def test_hwinfo_s_last_line_tells_the_gpus_apart(first: int, tmp_path: Path) -> None:
    """Whichever card comes first, each model is a job, and every column counts."""
    profiles = read_source(_hwinfo(tmp_path / "hw.csv", first=first, stopped=True), Hints())
    assert [profile.job.name for profile in profiles] == ["hw-RTX-3060", "hw-RTX-4090"]
    assert [_busy(profile) for profile in profiles] == [
        {1: pytest.approx(0.04)},
        {0: pytest.approx(0.85)},
    ]
    powers = [profile.gpus[0].metrics["power.board_w"].mean for profile in profiles]
    assert powers == [40.0, 320.0]
    assert all("6 read" in " ".join(profile.provenance.notes) for profile in profiles)


def test_a_hint_or_a_name_makes_one_job_of_two_models(tmp_path: Path) -> None:
    """Who says what the job runs on, or what it is called, has one job of both cards."""
    file = _hwinfo(tmp_path / "hw.csv", first=0, stopped=True)
    for hints in (Hints(gpu="RTX 4090"), Hints(name="render")):
        (profile,) = read_source(file, hints)
        assert sorted(_busy(profile)) == [0, 1]


_TWINS = 'timestamp,"gpu_util","gpu_util"\n' + "".join(
    f"2026-11-20 10:00:{second:02},85,{{}}\n" for second in range(10, 40)
)
_PANEL = _TWINS.replace("timestamp", "Time").replace("gpu_util", "GPU 0 utilization.gpu")
_READINGS = "time,name,value,value,gpu\n" + "".join(
    f"{1_790_000_000 + second},DCGM_FI_DEV_GPU_UTIL,85,{{}},0\n" for second in range(30)
)
_AMD = "timestamp,gpu,gfx_activity,gfx_activity\n" + "".join(
    f"{1_790_000_000 + second},0,85,{{}}\n" for second in range(30)
)


@pytest.mark.parametrize("text", [_TWINS, _PANEL, _READINGS, _AMD])
def test_two_columns_of_one_name_are_never_one(text: str, tmp_path: Path) -> None:
    """Every reader of tables refuses them with both named, unless they say the same throughout."""
    file = tmp_path / "log.csv"
    file.write_text(text.replace("{}", "4"), encoding="utf-8")
    with pytest.raises(InputError, match=r"'(.*)' \(\d\), '\1' \(\d\) have the same name"):
        read_source(str(file), Hints())
    file.write_text(text.replace("{}", "85"), encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert list(_busy(profile).values()) == [pytest.approx(0.85)]


def test_a_log_of_hwinfo_that_still_runs_is_refused(tmp_path: Path) -> None:
    """Without its last line nothing tells whose a column is: the idle card is not the machine."""
    with pytest.raises(InputError, match=r"'GPU Core Load \[%\]' \(4\).*\(6\).*last line"):
        read_source(_hwinfo(tmp_path / "hw.csv", first=1, stopped=False), Hints())
