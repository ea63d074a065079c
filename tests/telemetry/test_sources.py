"""The door: directories, standard input, gzip, many files of one job, many jobs in a file."""

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pricing.errors import InputError
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.telemetry.captures import path
from tests.telemetry.reading import read_source

if TYPE_CHECKING:
    from telemetry.folder import Skipped

PROFILE = b'{"schema": "gpucost.profile/v1", "job": {"name": "ready"}, "hardware": {"gpu": "T4"}}'


@pytest.mark.slow
def test_a_ready_profile_needs_neither_pandas_nor_numpy(tmp_path: Path) -> None:
    """Planning from profile.json starts without the heavy libraries."""
    file = tmp_path / "profile.json"
    file.write_bytes(PROFILE)
    script = (
        "import sys; from telemetry.sources import read_telemetry;"
        "from telemetry.readers.hints import Hints;"
        f"assert read_telemetry([{str(file)!r}], Hints())[0].job.name == 'ready';"
        "sys.exit(bool({'pandas', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_standard_input_is_a_source() -> None:
    """`-` reads the stream that is given."""
    stream = io.BytesIO(Path(path("nvidia_smi.csv")).read_bytes())
    (profile,) = read_source("-", Hints(), stream)
    assert profile.gpu_count == 2
    assert profile.job.name == "job"


@pytest.mark.parametrize("layers", [1, 2])
def test_gzip_is_read_by_content(layers: int, tmp_path: Path) -> None:
    """Packed files are read whatever their name; the hash is of the packed bytes."""
    data = Path(path("nvidia_smi.csv")).read_bytes()
    (plain,) = read_source(path("nvidia_smi.csv"), Hints())
    for _ in range(layers):
        data = gzip.compress(data)
    file = tmp_path / "nvidia_smi.csv"
    file.write_bytes(data)
    (packed,) = read_source(str(file), Hints())
    assert packed.gpus == plain.gpus
    assert packed.provenance.sources[0].sha256 != plain.provenance.sources[0].sha256


def test_a_directory_is_read_file_by_file(tmp_path: Path) -> None:
    """Each file of a directory is a job of its own, in the order of their names."""
    (tmp_path / "b.json").write_bytes(PROFILE)
    (tmp_path / "a.csv").write_bytes(Path(path("wrapper_epoch.csv")).read_bytes())
    (tmp_path / ".hidden").write_bytes(b"\0\1")
    names = [profile.job.name for profile in read_source(str(tmp_path), Hints())]
    assert names == ["a", "ready"]


def test_a_mixed_directory_names_what_it_skips(tmp_path: Path) -> None:
    """What is not telemetry is left out with its reason; an error is only that nothing is left."""
    (tmp_path / "notes.md").write_text("# notes\n", encoding="utf-8")
    (tmp_path / "bad.json").write_text('{"status":"suc', encoding="utf-8")
    (tmp_path / "inner").mkdir()
    with pytest.raises(InputError) as caught:
        read_source(str(tmp_path), Hints())
    said = "\n".join(caught.value.problems)
    assert all(word in said for word in ("nothing in it", "notes.md", "bad.json"))
    (tmp_path / "a.csv").write_bytes(Path(path("wrapper_epoch.csv")).read_bytes())
    skipped: list[Skipped] = []
    (profile,) = read_source(str(tmp_path), Hints(), skipped=skipped)
    assert profile.job.name == "a"
    assert [Path(one.path).name for one in skipped] == ["bad.json", "notes.md"]


def test_an_empty_directory_is_a_problem(tmp_path: Path) -> None:
    """A directory without files is refused."""
    with pytest.raises(InputError, match="directory is empty"):
        read_source(str(tmp_path), Hints())


def test_a_missing_file_is_named() -> None:
    """A file that is not there is an input error with its path."""
    with pytest.raises(InputError, match=r"nowhere\.csv: cannot be read"):
        read_source("nowhere.csv", Hints())


def test_files_of_one_job_complement_each_other(tmp_path: Path) -> None:
    """nvidia-smi's log and DCGM's series of the same device become one GPU with both's slots."""
    uuid = "GPU-1b0f0c1e-0000-4000-8000-00000000000a"
    smi = tmp_path / "smi.csv"
    smi.write_text(
        "timestamp, uuid, index, memory.used [MiB]\n"
        + "".join(f"2026/03/01 10:00:{s:02d}.000, {uuid}, 0, 8192 MiB\n" for s in range(5)),
        encoding="utf-8",
    )
    dmon = tmp_path / "dmon.txt"
    dmon.write_text("# gpu sm\n# Idx %\n" + "  0  50\n" * 5, encoding="utf-8")
    (profile,) = read_telemetry([str(smi), str(dmon)], Hints(name="both"))
    assert profile.job.name == "both"
    assert [gpu.uuid for gpu in profile.gpus] == [uuid]
    metrics = profile.gpus[0].metrics
    assert (metrics["mem.used_gib"].mean, metrics["util.kernel_time"].mean) == (8.0, 0.5)
    assert any("taken to start with the other files" in note for note in profile.provenance.notes)


def test_the_same_file_twice_changes_nothing() -> None:
    """Readings given twice count once."""
    (once,) = read_telemetry([path("nvidia_smi.csv")], Hints())
    (twice,) = read_telemetry([path("nvidia_smi.csv")] * 2, Hints())
    assert twice.gpus == once.gpus


def test_a_profile_and_telemetry_are_not_merged(tmp_path: Path) -> None:
    """`import` of a finished profile beside telemetry is refused, and says what to do."""
    file = tmp_path / "profile.json"
    file.write_bytes(PROFILE)
    with pytest.raises(InputError, match="gpucost plan"):
        read_telemetry([path("nvidia_smi.csv"), str(file)], Hints())


def test_problems_of_all_files_are_listed() -> None:
    """Two unreadable files are two problems."""
    with pytest.raises(InputError) as caught:
        read_telemetry(["no1.csv", path("nvidia_smi.csv"), "no2.csv"], Hints())
    assert len(caught.value.problems) == 2


def test_labels_of_two_jobs_make_two_profiles() -> None:
    """Each pod has its profile, with its GPU alone and its own name."""
    profiles = read_telemetry([path("prometheus_matrix.json")], Hints())
    assert [(p.job.name, p.gpu_count, p.gpus[0].index) for p in profiles] == [
        ("serve-0", 1, 1),
        ("train-0", 1, 0),
    ]


def test_one_job_can_be_picked() -> None:
    """`--job` reads the job of that name; unlabelled sources join in for its GPUs and time."""
    files = [path("prometheus_matrix.json"), path("prometheus_vector.json")]
    (profile,) = read_telemetry(files, Hints(job="train-0", name="mine"))
    assert profile.job.name == "mine"
    assert profile.gpus[0].metrics["util.kernel_time"].mean == 0.9


@pytest.mark.parametrize(
    ("hints", "says"),
    [(Hints(job="nobody"), "serve-0, train-0"), (Hints(name="x"), "cannot share a name")],
)
def test_a_wrong_job_or_a_shared_name_is_refused(hints: Hints, says: str) -> None:
    """The message lists the jobs of the data."""
    with pytest.raises(InputError, match=says):
        read_telemetry([path("prometheus_matrix.json")], hints)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tz": "Mars/Base"}, "--tz Mars/Base"),
        ({"map": (("x", "util.nothing"),)}, "util.nothing"),
        ({"kind": "gaming"}, "--kind gaming"),
        ({"precision": "fp7"}, "--precision fp7"),
        ({"work": ("image", 0.0)}, "--work image"),
        ({"batch": -1, "interval_s": 0.0}, "--interval"),
    ],
)
def test_wrong_hints_are_refused(arguments: dict[str, object], says: str) -> None:
    """Hints are checked when they are made, all at once."""
    with pytest.raises(InputError, match=says):
        Hints(**arguments)  # type: ignore[arg-type]


def test_one_index_of_two_models_is_two_gpus(tmp_path: Path) -> None:
    """Files of two machines whose GPUs share an index are told apart by model, a job each."""
    head = "timestamp, index, name, utilization.gpu [%]\n"
    for model in ("Tesla T4", "NVIDIA A10G"):
        rows = "".join(f"2026/11/01 10:00:0{s}.000, 0, {model}, {s}0 %\n" for s in range(1, 6))
        (tmp_path / f"{model[-3:].strip()}.csv").write_text(head + rows, encoding="utf-8")
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    profiles = read_telemetry(paths, Hints())
    assert [len(profile.gpus) for profile in profiles] == [1, 1]


def test_junk_under_a_header_is_refused(tmp_path: Path) -> None:
    """A plausible header does not make telemetry of what stands under it."""
    path = tmp_path / "junk.csv"
    good = "2026/11/01 10:00:00.000, 0, 5 %\n"
    junk = good + "".join(f"k{n};:x,%%,{'z' * (n % 7)}\n" for n in range(1000))
    path.write_text("timestamp, index, utilization.gpu [%]\n" + junk, encoding="utf-8")
    with pytest.raises(InputError, match="could be read"):
        read_source(str(path), Hints())


def test_a_fraction_under_a_percent_name_is_said(tmp_path: Path) -> None:
    """A column of an own log that never exceeds 1 may be a fraction: the note says what to do."""
    path = tmp_path / "own.csv"
    rows = "".join(f"{1762000000 + n},{0.5 + n / 100}\n" for n in range(20))
    path.write_text("timestamp,gpu_util\n" + rows, encoding="utf-8")
    (profile,) = read_source(str(path), Hints())
    assert any("--map gpu_util=util.kernel_time:ratio" in n for n in profile.provenance.notes)
