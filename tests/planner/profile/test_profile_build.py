"""Samples to statistics: weights, quantiles, the active window, energy, hints and suspicions."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.profile.model import Profile
from telemetry.profiling.window import by_gpu, durations, span_of, statistics, window_over
from telemetry.readers.hints import Hints
from tests.telemetry.reading import read_source

FRACTIONS = st.lists(st.integers(0, 100).map(lambda p: p / 100), min_size=1, max_size=40)
ORDER = ("min", "p05", "p25", "p50", "p75", "p90", "p95", "p99", "max")
EPOCH = 1782907200


def log(tmp_path: Path, rows: list[str], header: str, hints: Hints | None = None) -> Profile:
    """Return the profile of a CSV of these rows."""
    file = tmp_path / "log.csv"
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    (profile,) = read_source(str(file), hints or Hints())
    return profile


def util(tmp_path: Path, values: list[int], step: float = 1.0) -> Profile:
    """Return the profile of one GPU's utilisation in percent, `step` seconds apart."""
    rows = [f"{EPOCH + i * step},{value}" for i, value in enumerate(values)]
    return log(tmp_path, rows, "timestamp,utilization.gpu")


@given(values=FRACTIONS)
def test_quantiles_are_ordered_and_hold_the_mean(values: list[float]) -> None:
    """Min <= p05 <= ... <= max, and the mean lies between."""
    found = statistics(np.array(values), np.ones(len(values)))
    assert found is not None
    quantiles = [getattr(found, name) for name in ORDER]
    assert quantiles == sorted(quantiles)
    assert found.min is not None
    assert found.mean is not None
    assert found.max is not None
    assert found.min - 1e-6 <= found.mean <= found.max + 1e-6


@given(values=FRACTIONS, scale=st.sampled_from([0.05, 1.0, 60.0, 3600.0]))
def test_statistics_do_not_change_with_the_unit_of_time(values: list[float], scale: float) -> None:
    """Samples twice as far apart have the same statistics."""
    times = np.arange(len(values), dtype=float)
    one = statistics(np.array(values), durations(times))
    other = statistics(np.array(values), durations(times * scale))
    assert one == other


@given(values=FRACTIONS, parts=st.integers(2, 5))
@example(values=[1.0] * 10 + [0.99] + [0.0] * 21, parts=2)  # 0.3434375: six digits cut a half
def test_splitting_samples_changes_nothing(values: list[float], parts: int) -> None:
    """A reading polled several times while it stands counts as long as one that is polled once."""
    once = statistics(np.array(values), durations(np.arange(len(values), dtype=float)))
    times = np.arange(len(values) * parts, dtype=float) / parts
    split = statistics(np.repeat(values, parts), durations(times))
    assert once is not None
    assert split is not None
    # Both are rounded to six digits; a half may fall either way.
    assert split.mean == pytest.approx(once.mean, abs=1.01e-6)
    assert [getattr(split, name) for name in ORDER] == [getattr(once, name) for name in ORDER]


@pytest.mark.parametrize(
    ("times", "stood"),
    [
        ([0.0], [1.0]),
        ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]),
        ([0.0, 1.0, 2.0, 1002.0, 1003.0], [1.0, 1.0, 3.0, 1.0, 1.0]),
        ([0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_a_sample_stands_until_the_next_but_not_over_a_gap(
    times: list[float], stood: list[float]
) -> None:
    """Gaps count three intervals; samples of one instant share its time."""
    assert durations(np.array(times)).tolist() == pytest.approx(stood)


def test_paces_of_0_05_s_and_60_s_mix() -> None:
    """An hour at 60 s weighs 60 times a minute at 0.05 s, though it has 20 times fewer rows."""
    fast, slow = np.arange(1200) * 0.05, 60 + np.arange(60) * 60.0
    values = np.concatenate([np.ones(1200), np.zeros(60)])
    found = statistics(values, durations(np.concatenate([fast, slow])))
    assert found is not None
    assert found.mean == pytest.approx(60 / 3660, rel=0.1)


@pytest.mark.slow
@given(gib=st.integers(1, 79))
def test_mib_and_gib_give_the_same_memory(
    gib: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The unit of the source does not show in the profile."""
    folder = tmp_path_factory.mktemp("units")
    mib = log(folder, [f"0, {gib * 1024} MiB"] * 3, "index, memory.used [MiB]")
    plain = log(folder, [f"0, {gib}"] * 3, "index, memory_used_gib")
    assert mib.gpus == plain.gpus


def test_an_idle_lead_in_and_tail_are_not_in_the_statistics(tmp_path: Path) -> None:
    """Statistics are of the busy part; the whole file's figures stay in provenance."""
    profile = util(tmp_path, [0] * 100 + [80] * 50 + [2] * 30)
    assert profile.window is not None
    assert profile.window.start is not None
    assert profile.window.start.timestamp() == EPOCH + 100
    assert profile.window.duration_s == 50.0
    assert profile.gpus[0].metrics["util.kernel_time"].mean == 0.8
    column = profile.provenance.sources[0].columns[0]
    assert (column.n, column.mean) == (180, pytest.approx((80 * 50 + 60) / 180, abs=1e-6))
    assert any("lead-in of 100 s and tail of 30 s" in n for n in profile.provenance.notes)


def test_a_bursty_recording_keeps_its_pauses(tmp_path: Path) -> None:
    """Between the first and the last burst nothing is cut."""
    profile = util(tmp_path, [0] * 20 + ([90] * 5 + [0] * 45) * 4 + [90] * 5 + [0] * 20)
    assert profile.window is not None
    assert profile.window.duration_s == 4 * 50 + 5
    assert profile.gpus[0].metrics["util.kernel_time"].mean == pytest.approx(0.9 * 25 / 205)


@pytest.mark.parametrize("values", [[0] * 60, [3] * 60, [0] * 500 + [95] + [0] * 500])
def test_an_idle_recording_keeps_its_whole_window(values: list[int], tmp_path: Path) -> None:
    """A machine that idles, or is busy for an instant, is not made to look busy."""
    profile = util(tmp_path, values)
    assert profile.window is not None
    assert profile.window.duration_s == len(values)


def test_power_finds_the_window_where_utilisation_is_missing() -> None:
    """Without utilisation, power clearly above its least is busy."""
    power = [70.0] * 30 + [400.0] * 30 + [72.0] * 10
    samples = pd.DataFrame({"t_s": np.arange(70.0), "gpu": "only", "power.board_w": power})
    window = window_over([span_of(rows) for _, rows in by_gpu(samples)])
    assert (window.start_s, window.end_s) == (30.0, 60.0)


def test_gpus_of_one_tick_share_the_window(tmp_path: Path) -> None:
    """Readings a millisecond outside the busy GPU's window belong to the tick they are of."""
    rows = [
        f"{EPOCH + tick + gpu / 1000:.3f},{gpu},{50 if 5 <= tick < 15 else 0}"
        for tick in range(20)
        for gpu in range(4)
    ]
    profile = log(tmp_path, rows, "timestamp,index,utilization.gpu")
    assert [gpu.metrics["util.kernel_time"].min for gpu in profile.gpus] == [0.5] * 4


def test_gaps_lower_the_coverage(tmp_path: Path) -> None:
    """Time without samples is not filled, and is said."""
    rows = [f"{EPOCH + t},50" for t in (*range(50), *range(150, 200))]
    profile = log(tmp_path, rows, "timestamp,utilization.gpu")
    assert profile.window is not None
    assert profile.window.coverage == pytest.approx(102 / 200)
    assert any("cover 51%" in note for note in profile.provenance.notes)


def test_energy_is_power_times_the_time_it_stood(tmp_path: Path) -> None:
    """Joules of the active window, gaps at most three intervals long."""
    rows = [f"{EPOCH + 2 * i},90,{300}" for i in range(10)]
    profile = log(tmp_path, rows, "timestamp,utilization.gpu,power.draw")
    assert profile.gpus[0].metrics["energy.total_j"].mean == pytest.approx(300 * 20)


def test_without_times_there_is_no_energy_and_no_work_rate(tmp_path: Path) -> None:
    """What needs seconds is unknown without them; with an interval it is known."""
    header, rows = "utilization.gpu,power.draw", ["90,300"] * 10
    unknown = log(tmp_path, rows, header, Hints(work=("image", 500.0)))
    assert "energy.total_j" not in unknown.gpus[0].metrics
    assert unknown.work is not None
    assert unknown.work.rate_per_s is None
    known = log(tmp_path, rows, header, Hints(work=("image", 500.0), interval_s=5.0))
    assert known.work is not None
    assert known.work.rate_per_s == pytest.approx(10.0)


def test_the_work_rate_is_over_the_whole_source(tmp_path: Path) -> None:
    """Work done in the file is divided by the file's length, idle parts included."""
    rows = [f"{EPOCH + i},{90 if i >= 50 else 0}" for i in range(100)]
    profile = log(tmp_path, rows, "timestamp,utilization.gpu", Hints(work=("image", 2000.0)))
    assert profile.work is not None
    assert (profile.work.unit, profile.work.done) == ("image", 2000.0)
    assert profile.work.rate_per_s == pytest.approx(20.0)
    assert any("over the whole 100 s" in note for note in profile.provenance.notes)


def test_one_instant_is_a_snapshot(tmp_path: Path) -> None:
    """A snapshot has no duration and no quantiles, and says what it is good for."""
    profile = log(tmp_path, ["0, 1024 MiB, 50 %"], "index, memory.used [MiB], utilization.gpu [%]")
    assert profile.window is not None
    assert profile.window.duration_s is None
    found = profile.gpus[0].metrics["mem.used_gib"]
    assert (found.mean, found.max, found.p50) == (1.0, 1.0, None)
    assert any("a snapshot" in note for note in profile.provenance.notes)


def named(tmp_path: Path, models: list[str], gpu: str | None) -> Profile:
    """Return the profile of a log of GPUs with these names."""
    rows = [f"{i}, {model}, 50 %" for i, model in enumerate(models)] * 3
    return log(tmp_path, rows, "index, name, utilization.gpu [%]", Hints(gpu=gpu))


@pytest.mark.parametrize(
    ("models", "hint", "gpu", "note"),
    [
        (["Tesla T4"], None, "Tesla T4", None),
        (["Tesla T4"], "T4", "Tesla T4", None),
        (["Tesla T4"], "H100", "Tesla T4", "--gpu H100 is not used"),
        (["Tesla T4", "NVIDIA L40S"], "L40S", "L40S", "different GPU models"),
        (["[N/A]"], "L40S", "L40S", None),
        (["Quantum Z9"], None, "Quantum Z9", None),
        (["Quantum Z9"], "H100", "H100", "Quantum Z9), taken as H100"),
    ],
)
def test_the_file_names_the_gpu_and_a_hint_fills_gaps(
    models: list[str], hint: str | None, gpu: str | None, note: str | None, tmp_path: Path
) -> None:
    """The file wins over a contradicting hint where its model is known; else the hint counts."""
    profile = named(tmp_path, models, hint)
    assert profile.hardware.gpu == gpu
    assert profile.hardware.gpu_count == len(models)
    notes = " ".join(profile.provenance.notes)
    assert note is None or note in notes
    assert note is not None or "--gpu" not in notes


@pytest.mark.parametrize(
    ("value", "memory_mib", "notes"),
    [(0, 20480, 1), (100, 20480, 1), (0, 100, 0), (50, 20480, 0)],
)
def test_constant_utilisation_on_a_gpu_in_use_is_suspect(
    value: int, memory_mib: int, notes: int, tmp_path: Path
) -> None:
    """Exactly 0 or 100 % in every sample while memory is held may be a collector's default."""
    rows = [f"{EPOCH + i},{value},{memory_mib}" for i in range(20)]
    profile = log(tmp_path, rows, "timestamp,utilization.gpu,memory.used")
    assert sum("is exactly" in note for note in profile.provenance.notes) == notes


@pytest.mark.parametrize(("power_w", "notes"), [("300 W", 0), ("410 W", 0), ("470 W", 1)])
def test_power_above_the_limit_is_suspect(power_w: str, notes: int, tmp_path: Path) -> None:
    """A board that draws more than its limit half of the time is said; 5 % over is not."""
    rows = [f"{EPOCH + i},50,{power_w},400 W" for i in range(20)]
    profile = log(tmp_path, rows, "timestamp,utilization.gpu,power.draw,power.limit")
    assert sum("above the limit" in note for note in profile.provenance.notes) == notes


@pytest.mark.parametrize(("busy", "seconds", "notes"), [(80, 90, 1), (80, 40, 0), (0, 90, 0)])
def test_a_reading_that_stands_still_is_suspect(
    busy: int, seconds: int, notes: int, tmp_path: Path
) -> None:
    """A minute of one reading, power to the last digit, on a busy GPU is an old value."""
    lively = [f"{EPOCH + i},{60 + i % 9},{200 + i}" for i in range(30)]
    stuck = [f"{EPOCH + 30 + i},{busy},230.51" for i in range(seconds)]
    profile = log(tmp_path, lively + stuck, "timestamp,utilization.gpu,power.draw")
    assert sum("stands still" in note for note in profile.provenance.notes) == notes


def test_polling_faster_than_the_sensor_is_said(tmp_path: Path) -> None:
    """Rows that repeat the one before them count by time, and a note gives their number."""
    rows = [f"{EPOCH + i * 0.013:.3f},{50 + i // 10 % 2}" for i in range(200)]
    profile = log(tmp_path, rows, "timestamp,utilization.gpu")
    assert any("180 of 200 rows repeat" in note for note in profile.provenance.notes)
    assert profile.gpus[0].metrics["util.kernel_time"].mean == pytest.approx(0.505, abs=1e-3)


def test_hints_reach_the_job(tmp_path: Path) -> None:
    """Kind, precision, batch and name come from the command line."""
    hints = Hints(kind="training", precision="bf16", batch=8, name="mine")
    job = log(tmp_path, ["50"] * 3, "utilization.gpu [%]", hints).job
    assert (job.kind, job.precision, job.batch_per_gpu, job.name) == ("training", "bf16", 8, "mine")
