"""Real files of others: all of a readable kind import, and whole-file figures agree."""

import json
from pathlib import Path

import pytest

from planner.profile.model import Column
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.captures import assert_writable
from tests.telemetry.reading import read_source

READABLE = (
    "pytorch-kineto-trace",
    "zeus-energy",
    "amd-rocm-smi-json",
    "nvidia-smi-q-x-xml",
    "nvidia-smi-q-text",
    "nvidia-smi-table-log",
    "nvidia-smi-pmon",
    "nvidia-smi-query-compute-apps",
    "nvidia-smi-query-csv",
    "custom-wrapper-csv",
    "nvidia-smi-dmon",
    "dcgm-exporter-prometheus",
    "nvidia_gpu_exporter-prometheus",
    "prometheus-http-api-json",
    "wandb-events",
)
A_JOB_A_ROW = "summary_power_a40.csv"
# What holds no reading, and what is said of it.
REFUSED = {
    "dcp-metrics-included.csv": "names counters",
    "default-counters.csv": "names counters",
    "h100_help_query_gpu_590.txt": "describes fields",
    "wandb-metadata.redacted.json": "says which GPU",
    "wandb-summary.json": "last values only",
    "h100_accounted_apps.csv": "no process under it",
    "win2080_compute_apps_load.csv": "21 processes carry no reading",
    "h100mig_pmon_load.txt": "no reading is left",
    "h200mig_pmon_load.txt": "no reading is left",
    "free_text_mixed_gpu_models.txt": "not telemetry that gpucost knows",
}


def files(shared: Path, kinds: tuple[str, ...]) -> list[Path]:
    """Return the sample files of some kinds."""
    return [file for kind in kinds for file in sorted((shared / "samples" / kind).iterdir())]


def is_telemetry(file: Path) -> bool:
    """Whether a sample is one that must import."""
    return file.name not in REFUSED and file.suffix != ".yml"


def head(file: Path, folder: Path) -> Path:
    """A file of the same name with its first 60 lines."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)[:60]
    (folder / file.name).write_text("".join(lines), encoding="utf-8")
    return folder / file.name


def test_every_sample_of_a_readable_kind_imports(shared: Path, tmp_path: Path) -> None:
    """Each real file gives a profile with a GPU and at least one reading."""
    for file in filter(is_telemetry, files(shared, READABLE)):
        read = head(file, tmp_path) if file.name == A_JOB_A_ROW else file
        profiles = read_source(str(read), Hints())
        assert_writable(profiles)
        measured = (
            profile.step or any(gpu.metrics for gpu in profile.gpus) for profile in profiles
        )
        assert all(measured), file.name


def test_a_table_with_a_row_for_each_job_is_as_many_jobs(shared: Path) -> None:
    """Hundreds of them."""
    file = shared / "samples/zeus-energy" / A_JOB_A_ROW
    jobs = file.read_text(encoding="utf-8").splitlines()[1:]
    assert len(read_source(str(file), Hints())) == len(jobs) > 400


def test_every_other_sample_is_refused(shared: Path) -> None:
    """Each file that is not telemetry, or of a kind not read, is refused with its name."""
    others = sorted(
        folder.name
        for folder in (shared / "samples").iterdir()
        if folder.is_dir() and folder.name not in READABLE
    )
    refused = [file for file in files(shared, READABLE) if not is_telemetry(file)]
    for file in [*refused, *files(shared, tuple(others))]:
        with pytest.raises(InputError, match=file.name.replace("+", r"\+")) as caught:
            read_source(str(file), Hints())
        assert REFUSED.get(file.name, "") in str(caught.value)


def figures(shared: Path, name: str) -> dict[str, Column]:
    """Return the whole-file figures of a sample by the source's column."""
    (profile,) = read_source(str(shared / "samples" / name), Hints())
    return {column.source: column for column in profile.provenance.sources[0].columns}


def test_whole_file_figures_agree_with_independent_ones(shared: Path) -> None:
    """n, mean, min and max of CSV columns are those another program computed."""
    expected = json.loads((shared / "samples" / "expected.json").read_text(encoding="utf-8"))
    names = [n for n in expected if n.startswith(("nvidia-smi-query-csv", "custom-wrapper-csv"))]
    assert names
    for name in names:
        got = figures(shared, name)
        gpus = [value for key, value in expected[name].items() if key.startswith("gpu ")]
        for column in gpus[0].keys() & got.keys():
            parts = [gpu[column] for gpu in gpus]
            n = sum(part["n"] for part in parts)
            mean = sum(part["mean"] * part["n"] for part in parts) / n
            assert got[column].n == n, (name, column)
            assert got[column].mean == pytest.approx(mean, abs=1e-3), (name, column)
            assert got[column].min == min(part["min"] for part in parts)
            assert got[column].max == max(part["max"] for part in parts)


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("gpu_util_pct", "system.gpu.0.gpu"),
        ("mem_bytes", "system.gpu.0.memoryAllocatedBytes"),
        ("power_w", "system.gpu.0.powerWatts"),
    ],
)
def test_event_stream_figures_agree(shared: Path, key: str, column: str) -> None:
    """n, mean, min and max of the W&B stream are those another program computed."""
    name = "wandb-events/events_stream_rtx4090_2026_extracted.jsonl"
    expected = json.loads((shared / "samples" / "expected.json").read_text(encoding="utf-8"))[name]
    got = figures(shared, name)[column]
    assert got.n == expected[key]["n"]
    assert got.mean == pytest.approx(expected[key]["mean"], abs=1e-3)
    assert got.min == pytest.approx(expected[key]["min"])
    assert got.max == pytest.approx(expected[key]["max"])


def test_the_event_stream_keeps_its_pace(shared: Path) -> None:
    """The interval of the W&B stream is the one measured independently."""
    file = shared / "samples/wandb-events/events_stream_rtx4090_2026_extracted.jsonl"
    (profile,) = read_source(str(file), Hints(gpu="RTX 4090"))
    assert profile.window is not None
    assert profile.window.interval_s == pytest.approx(15.0, abs=0.01)
    assert profile.hardware.gpu == "RTX 4090"
    assert profile.host is not None


TRACES = "pytorch-kineto-trace"


@pytest.mark.parametrize(
    "name",
    [
        "benchmark_result_2869224_1695835535_trace.json.gz",
        "nccl_data.json.gz",
        "rank_non_gpu.json.gz",
        "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    ],
)
def test_traces_agree(shared: Path, name: str) -> None:
    """Busy time, steps, exposed exchange and waiting are what another program computed."""
    expected = json.loads((shared / "samples" / "expected.json").read_text(encoding="utf-8"))
    wanted = expected[f"{TRACES}/{name}"]
    (profile,) = read_source(str(shared / "samples" / TRACES / name), Hints())
    columns = {column.source: column for column in profile.provenance.sources[0].columns}
    if wanted["gpu_events"]:
        busy_us = columns["GPU 0: busy [s]"].mean * 1e6
        assert busy_us == pytest.approx(wanted["gpu_busy_us"], rel=1e-4)
        assert profile.hardware.gpu == wanted["device"][0]
    if "mean_step_us" in wanted:
        assert profile.step is not None
        assert profile.step.count == wanted["profiler_steps"]
        assert profile.step.mean_s == pytest.approx(wanted["mean_step_us"] / 1e6, rel=1e-5)
    if "comm_us" in wanted:
        exposed_us = wanted["comm_us"] * (1 - wanted["comm_compute_overlap_fraction"])
        got_us = profile.step.comm_s * profile.step.count * 1e6
        assert got_us == pytest.approx(exposed_us, rel=1e-3)
    if "dataloader_next_us" in wanted:
        assert profile.step.data_wait_s == pytest.approx(
            wanted["dataloader_next_us"] / 1e6, abs=1e-6
        )
