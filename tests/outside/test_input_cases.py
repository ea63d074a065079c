"""Small inputs of others that were read wrongly once, with answers worked out by hand.

`cases/inputs` has a folder each, with what was given and why the answer is right; INDEX.csv says
where it was found.
"""

import csv
from pathlib import Path

import pytest

from planner.profile.model import Profile, Statistics
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.reading import read_source

UTIL, POWER, USED = "util.kernel_time", "power.board_w", "mem.used_gib"


@pytest.fixture
def cases(shared: Path) -> Path:
    """The folder of the cases."""
    folder = shared / "cases" / "inputs"
    if not folder.is_dir():
        pytest.skip("cases/inputs is not here")
    return folder


def read(cases: Path, case: str, file: str, **hints: object) -> dict[str, Profile]:
    """Return the profiles of a file of a case, by the job's name."""
    (folder,) = cases.glob(f"{case}-*")
    profiles = read_source(str(folder / file), Hints(**hints))  # type: ignore[arg-type]
    return {profile.job.name: profile for profile in profiles}


def only(cases: Path, case: str, file: str, **hints: object) -> Profile:
    """Return the one profile of a file of a case."""
    (profile,) = read(cases, case, file, **hints).values()
    return profile


def slot(profile: Profile, name: str, gpu: int = 0) -> Statistics:
    """Return the statistics of a GPU."""
    return profile.gpus[gpu].metrics[name]


def length_s(profile: Profile) -> float | None:
    """Return the length of the window."""
    return profile.window.duration_s if profile.window else None


def notes(profile: Profile) -> str:
    """Return all notes as one text."""
    return " ".join(profile.provenance.notes)


def start(profile: Profile) -> str:
    """Return when the window starts."""
    assert profile.window is not None
    assert profile.window.start is not None
    return profile.window.start.isoformat()


def near(value: float) -> object:
    """Return what a figure of five digits is compared with."""
    return pytest.approx(value, rel=1e-4)


def test_every_case_of_telemetry_is_here(cases: Path) -> None:
    """No case of the index is left out."""
    with (cases / "INDEX.csv").open(encoding="utf-8") as lines:
        listed = {row["id"].split("-")[0] for row in csv.DictReader(lines)}
    text = Path(__file__).read_text(encoding="utf-8")
    telemetry = {case for case in listed if case.startswith("t")}
    assert telemetry == {case for case in telemetry if f'"{case}"' in text}


def test_lists_in_cells_of_amd_smi(cases: Path) -> None:
    """Two GPUs at 1 s for 6 s; the edge sensor says N/A, so the hot spot counts."""
    profile = only(cases, "t01", "amd_metric_watch.csv")
    assert (profile.hardware.gpu_count, length_s(profile)) == (2, 6.0)
    for gpu, (mean, most, watts, degrees) in enumerate(
        ((0.825, 0.85, 525.0, 60.0), (0.225, 0.25, 625.0, 61.0))
    ):
        assert slot(profile, UTIL, gpu).mean == near(mean)
        assert slot(profile, UTIL, gpu).max == near(most)
        assert slot(profile, POWER, gpu).mean == near(watts)
        assert slot(profile, "util.mem_controller", gpu).mean == near(0.325)
        assert slot(profile, "temp.core_c", gpu).mean == degrees


def test_busy_time_of_dcgmi_by_the_engine(cases: Path) -> None:
    """GRACT is the GPU's busy time; an instance's is said and is no second GPU."""
    profile = only(cases, "t04", "dcgmi_gract.txt")
    assert profile.hardware.gpu_count == 1
    assert profile.busy_fraction == near(0.4015)
    assert "GPU 0, instance 0: busy 0.9005" in notes(profile)


def test_busy_time_of_mig_by_the_engine(cases: Path) -> None:
    """Each instance's own engine activity and memory (30,000 and 1,000 MiB)."""
    profiles = read(cases, "t05", "prom_mig.json")
    for name, busy, gib, piece in (("m1", 0.9, 29.30, "3g.40gb"), ("m2", 0.1, 0.977, "4g.40gb")):
        assert profiles[name].busy_fraction == near(busy)
        assert slot(profiles[name], USED).mean == pytest.approx(gib, abs=0.005)
        assert profiles[name].hardware.slice == piece
        assert "no utilisation" not in notes(profiles[name])


@pytest.mark.parametrize("file", ["vllm_pid.prom", "vllm_matrix_pid.json"])
def test_processes_of_one_server_are_no_copies(cases: Path, file: str) -> None:
    """One process holds the gauge, the others say 0."""
    serving = only(cases, "t08", file).job.serving
    assert serving is not None
    assert serving.kv_cache_fraction == 0.62


@pytest.mark.parametrize(
    ("file", "joules"), [("smi_na_lead.csv", 60190.0), ("amdsmi_na_lead.json", 60000.0)]
)
def test_unknown_is_not_idle(cases: Path, file: str, joules: float) -> None:
    """All 200 s count, 80 of them without a load; power was read all the time."""
    profile = only(cases, "t09", file)
    assert length_s(profile) == 200.0
    assert slot(profile, UTIL).mean == near(0.9)
    assert slot(profile, "energy.total_j").mean == joules
    assert "idle" not in notes(profile)
    assert "unknown for 80 s of 200 s" in notes(profile)


def test_panels_of_grafana(cases: Path) -> None:
    """A column a series, its labels in the name; times as text or in milliseconds."""
    profile = only(cases, "t12", "grafana3.csv")
    assert (profile.hardware.gpu, profile.hardware.gpu_count) == ("NVIDIA L4", 2)
    assert [slot(profile, UTIL, gpu).mean for gpu in (0, 1)] == [near(0.5), near(0.85)]
    assert profile.window is not None
    assert (length_s(profile), profile.window.interval_s) == (120.0, 60.0)
    second = only(cases, "t12", "grafana2.csv")
    assert (second.hardware.gpu, second.busy_fraction) == ("NVIDIA L4", near(0.5))


def test_a_panel_whose_columns_are_named_freely_needs_a_word(cases: Path) -> None:
    """`GPU 0 {...}` does not say what is drawn: refused, and read with `--map`."""
    with pytest.raises(InputError, match="--map METRIC=slot"):
        only(cases, "t12", "grafana_series.csv")
    said = (("GPU 0", f"{UTIL}:%"), ("GPU 1", f"{UTIL}:%"))
    profile = only(cases, "t12", "grafana_series.csv", map=said)
    assert [slot(profile, UTIL, gpu).mean for gpu in (0, 1)] == [near(0.5), near(0.85)]


def test_logs_of_sensors_on_windows(cases: Path) -> None:
    """HWiNFO parts day and time, GPU-Z ends its lines with a comma."""
    hwinfo = only(cases, "t13", "hwinfo.csv")
    assert start(hwinfo).startswith("2026-03-01T10:00:00")
    assert (length_s(hwinfo), hwinfo.busy_fraction) == (6.0, near(0.95))
    assert slot(hwinfo, USED).mean == near(9830 / 1024)
    assert slot(hwinfo, POWER).mean == near(311.2)
    assert "'GPU Memory Usage [%]'" in notes(hwinfo)
    assert "--map" in notes(hwinfo)
    gpuz = only(cases, "t13", "gpuz.txt")
    assert (length_s(gpuz), gpuz.busy_fraction) == (3.0, near(0.95))
    assert (slot(gpuz, POWER).mean, slot(gpuz, USED).mean) == (near(400.5), 10.0)


def test_a_map_of_no_column_is_refused(cases: Path) -> None:
    """A name that no column has is an error; numbers count also beside a header."""
    with pytest.raises(InputError, match="no column Wenn; the columns are util, when"):
        only(cases, "t14", "mapmiss.csv", map=(("Wenn", "timestamp"), ("2", UTIL)))
    profile = only(cases, "t14", "mapmiss.csv", map=(("1", "timestamp"), ("2", UTIL)))
    assert (length_s(profile), profile.busy_fraction) == (20.0, near(0.55))


def test_the_account_of_dcgmi(cases: Path) -> None:
    """540,000 J in 1,800 s are 300 W; 34,359,738,368 B are 32 GiB."""
    profile = only(cases, "t22", "dcgmi_stats.txt")
    assert start(profile) == "2026-03-01T10:00:00+00:00"
    assert (profile.hardware.gpu_count, length_s(profile)) == (1, 1800.0)
    assert (slot(profile, UTIL).mean, slot(profile, UTIL).max) == (0.72, 1.0)
    assert slot(profile, UTIL).p95 is None
    assert (slot(profile, USED).max, slot(profile, POWER).mean) == (32.0, 300.0)
    assert slot(profile, "energy.total_j").mean == 540_000


def test_a_table_of_jobs_by_dcgm(cases: Path) -> None:
    """Each job has its own GPUs, length and figures."""
    profiles = read(cases, "t23", "supercloud_dcgm.csv")
    first, second = profiles["1001"], profiles["1002"]
    assert (first.hardware.gpu_count, length_s(first)) == (1, 4000.0)
    assert (slot(first, UTIL).mean, slot(first, UTIL).max) == (near(0.11), near(0.64))
    assert (slot(first, POWER).mean, slot(first, USED).max) == (40.0, 2.0)
    assert (second.hardware.gpu_count, length_s(second)) == (2, 5000.0)
    assert [slot(second, UTIL, gpu).mean for gpu in (0, 1)] == [near(0.9), near(0.8)]
    assert [slot(second, USED, gpu).max for gpu in (0, 1)] == [4.0, 4.0]


def test_the_monitor_of_lightning(cases: Path) -> None:
    """`gpu_id: 0/NAME` is a GPU's column; there are no times."""
    profile = only(cases, "t25", "lightning.csv")
    assert [slot(profile, UTIL, gpu).mean for gpu in (0, 1)] == [near(0.96), near(0.41)]
    assert [slot(profile, USED, gpu).mean for gpu in (0, 1)] == [10.0, 2.0]
    assert "no timestamps" in notes(profile)


def test_metrics_of_hami(cases: Path) -> None:
    """The board's figures and the container's memory; a share of 118 % is not read."""
    profile = only(cases, "t27", "hami.prom")
    assert (profile.job.name, profile.hardware.gpu_count) == ("chat-0", 1)
    assert profile.gpus[0].uuid == "GPU-0b1c"
    assert slot(profile, UTIL).mean == near(0.63)
    assert slot(profile, USED).mean == pytest.approx(19.56, abs=0.005)
    assert slot(profile, "mem.process_gib").mean == pytest.approx(16.76, abs=0.005)


def test_a_lost_gpu_is_paid_for(cases: Path) -> None:
    """Both GPUs of the table count; one told nothing."""
    profile = only(cases, "t29", "err_table.txt")
    assert profile.hardware.gpu_count == 2
    assert "GPU 1: not one reading: lost" in notes(profile)


def test_results_of_other_benchmarks(cases: Path) -> None:
    """GuideLLM's and GenAI-Perf's own figures."""
    guide, genai = only(cases, "t31", "guidellm.json").job, only(cases, "t31", "genaiperf.csv").job
    assert guide.serving is not None
    assert genai.serving is not None
    assert (guide.requests_per_s, guide.serving.generated_tokens_per_s) == (4.0, 800.0)
    first = guide.serving.first_token_ms
    assert first is not None
    assert (first.mean, first.p50, first.p95, first.p99) == (120.0, 110.0, 200.0, 260.0)
    assert (genai.requests_per_s, genai.serving.generated_tokens_per_s) == (4.2, 850.5)


def test_an_error_is_no_model(cases: Path) -> None:
    """The GPU that told its name says which model it is."""
    profile = only(cases, "t32", "gpustat.json")
    assert (profile.hardware.gpu, profile.hardware.gpu_count) == ("NVIDIA A40", 2)
    assert "GPU 1: not one reading" in notes(profile)
