"""`gpucost import`: telemetry in, profile.json out; what is given fills gaps only."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, training

HEADING = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"
LOG = HEADING + "".join(
    f"2026/11/01 10:{i // 60:02d}:{i % 60:02d}.000, 0, Tesla T4, {20 + i % 5} %, 8192 MiB, 40.0 W\n"
    for i in range(120)
)


def _scrape(*pods: str) -> str:
    """Return what dcgm-exporter says of one GPU for each pod."""
    rows = [
        f'{metric}{{gpu="{i}",UUID="GPU-{i}",modelName="Tesla T4",pod="{pod}"}} {value}'
        for metric, value in (("DCGM_FI_DEV_GPU_UTIL", 22), ("DCGM_FI_DEV_FB_USED", 8192))
        for i, pod in enumerate(pods)
    ]
    return "\n".join(rows) + "\n"


def _document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_log_becomes_a_profile(call: Call, write: Write, empty_folder: Path) -> None:
    """Without -o the profile goes to profile.json, and is what `plan` and `diagnose` read."""
    ran = call("import", write("smi.csv", LOG))
    assert ran.code == 0
    assert ran.out == ""
    assert "profile.json" in ran.err
    profile = _document(empty_folder / "profile.json")
    assert profile["hardware"]["gpu"] == "Tesla T4"
    assert profile["gpus"][0]["metrics"]["util.kernel_time"]["mean"] == pytest.approx(
        0.22, abs=0.01
    )
    assert call("diagnose").code == 0
    assert call("plan", "--as-of", AS_OF).code == 0


@pytest.mark.parametrize("command", ["plan", "diagnose"])
def test_a_log_is_a_source_of_every_command(command: str, call: Call, write: Write) -> None:
    """Telemetry, also gzipped, is read without an import before, to the same end."""
    write("smi.csv", LOG)
    write("packed/smi.csv", gzip.compress(LOG.encode()))
    plain, packed = (call(command, path, "-f", "json") for path in ("smi.csv", "packed/smi.csv"))
    assert plain.code == packed.code == 0
    assert plain.out == packed.out


def test_what_is_given_is_in_the_profile(call: Call, write: Write) -> None:
    """Hints fill what a log does not say."""
    profile = call(
        "import",
        write("smi.csv", LOG),
        "-o",
        "-",
        "--kind",
        "training",
        "--precision",
        "fp32",
        "--batch",
        "64",
        "--work",
        "image=30000",
        "--name",
        "vice",
        "--tz",
        "Europe/Berlin",
    ).json
    assert profile["job"]["name"] == "vice"
    assert (profile["job"]["kind"], profile["job"]["precision"]) == ("training", "fp32")
    assert profile["job"]["batch_per_gpu"] == 64
    assert (profile["work"]["unit"], profile["work"]["done"]) == ("image", 30000)
    assert profile["window"]["start"] == "2026-11-01T09:00:00Z"


def test_the_file_wins_with_a_warning(call: Call, write: Write) -> None:
    """A GPU on the command line that contradicts the log is told and not used."""
    ran = call("import", write("smi.csv", LOG), "-o", "-", "--gpu", "H100")
    assert ran.json["hardware"]["gpu"] == "Tesla T4"
    assert "--gpu H100" in ran.err


def test_hints_reach_a_finished_profile(call: Call, write: Write) -> None:
    """For a profile.json a hint fills a gap too, and is told where the file says otherwise."""
    gap = changed(training(), ("hardware", "gpu"), None)
    ran = call("import", write("gap.json", gap), "-o", "-", "--gpu", "T4")
    assert ran.json["hardware"]["gpu"] == "T4"
    ran = call("import", write("full.json", training()), "-o", "-", "--kind", "interactive")
    assert ran.json["job"]["kind"] == "training"
    assert "--kind" in ran.err


def test_several_jobs_make_a_folder_of_files(call: Call, write: Write, empty_folder: Path) -> None:
    """-o DIR/ writes a file a job; the folder is a SOURCE."""
    ran = call("import", write("gpus.prom", _scrape("alpha", "beta")), "-o", "jobs/")
    assert ran.code == 0, ran.err
    assert sorted(p.name for p in (empty_folder / "jobs").iterdir()) == ["alpha.json", "beta.json"]
    names = [job["name"] for job in call("diagnose", "jobs", "-f", "json").json["jobs"]]
    assert names == ["alpha", "beta"]


def test_several_jobs_are_an_array_on_standard_output(call: Call, write: Write) -> None:
    """-o - writes an array, which is a SOURCE as well."""
    ran = call("import", write("gpus.prom", _scrape("alpha", "beta")), "-o", "-")
    assert [profile["job"]["name"] for profile in ran.json] == ["alpha", "beta"]
    again = call("diagnose", write("all.json", ran.out), "-f", "json")
    assert len(again.json["jobs"]) == 2


def test_several_jobs_do_not_fit_in_one_file(call: Call, write: Write, empty_folder: Path) -> None:
    """A file for several jobs is refused, naming them and the two ways out; nothing is written."""
    ran = call("import", write("gpus.prom", _scrape("alpha", "beta")))
    assert ran.code == 2
    assert all(word in ran.err for word in ("alpha", "beta", "--job", "-o"))
    assert [path.name for path in empty_folder.iterdir()] == ["gpus.prom"]


def test_one_of_several_jobs_can_be_chosen(call: Call, write: Write) -> None:
    """--job NAME reads that job alone."""
    ran = call("import", write("gpus.prom", _scrape("alpha", "beta")), "-o", "-", "--job", "beta")
    assert ran.json["job"]["name"] == "beta"


@pytest.mark.parametrize(
    "pods", [("../up", "b"), ("a b", "a/b", "a-b"), (".", ".."), ("A", "a", "a-1")], ids=str
)
def test_every_job_gets_a_file_of_its_own_inside(
    pods: tuple[str, ...], call: Call, write: Write, empty_folder: Path
) -> None:
    """Whatever the jobs are called, each has one file, inside the folder."""
    ran = call("import", write("gpus.prom", _scrape(*pods)), "-o", "jobs/")
    assert ran.code == 0, ran.err
    files = sorted((empty_folder / "jobs").iterdir())
    assert len(files) == len(pods)
    assert sorted(_document(path)["job"]["name"] for path in files) == sorted(pods)
    assert sorted(p.name for p in empty_folder.iterdir()) == ["gpus.prom", "jobs"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--format", "excel"), "nvidia-smi-csv"),
        (("--map", "x=nonsense"), "util.kernel_time"),
        (("--tz", "Mars/Base"), "Europe/Berlin"),
        (("--work", "image"), "UNIT=DONE"),
        (("--work", "image=0"), "above 0"),
        (("--interval", "0s"), "--interval"),
        (("--batch", "0"), "--batch"),
        (("--kind", "fun"), "training"),
        (("--precision", "fp31"), "fp32"),
        (("--job", "alpha"), "--job alpha"),
        (("-o", ""), "-o"),
    ],
    ids=str,
)
def test_a_bad_hint_is_refused(
    arguments: tuple[str, ...], told: str, call: Call, write: Write, empty_folder: Path
) -> None:
    """A hint that means nothing exits 2, shows what would, and writes nothing."""
    ran = call("import", write("smi.csv", LOG), *arguments)
    assert ran.code == 2, ran.err
    assert told in ran.err
    assert [path.name for path in empty_folder.iterdir()] == ["smi.csv"]


def test_reservations_are_refused_with_the_reason(call: Call, write: Write) -> None:
    """A list of who booked which hours is refused: it says nothing about use."""
    ran = call("import", write("booked.csv", "name,date,hours\nann,2026-11-01,8\n"))
    assert ran.code == 2
    assert "booked.csv" in ran.err
    assert any(word in ran.err for word in ("reserv", "book", "held"))


def test_the_same_log_gives_the_same_bytes(call: Call, write: Write) -> None:
    """Importing twice gives the same profile to the byte."""
    name = write("smi.csv", LOG)
    assert call("import", name, "-o", "-").out == call("import", name, "-o", "-").out
