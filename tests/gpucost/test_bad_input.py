"""Bad input ends with exit 2 and sentences that name file and field; never with a traceback."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import HOSTILE, KERNEL_TIME, changed, training

READERS = ("plan", "diagnose", "import")
WHOLE = json.dumps(training())
POWER = ("gpus", 0, "metrics", "power.board_w")

BAD_FILES: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "truncated": (WHOLE[:200], ("not valid JSON", ":1:")),
    "empty": ("", ("is empty",)),
    "only space": (" \n\n", ("is empty",)),
    "100,000 open brackets": ("[" * 100_000, ("nested too deeply",)),
    "100,000 open braces": ('{"job":' * 100_000, ("",)),
    "NaN": (WHOLE.replace("0.22", "NaN", 1), ("util.kernel_time.mean", "nan")),
    "infinity": (WHOLE.replace("0.22", "1e999", 1), ("util.kernel_time.mean", "inf")),
    "an integer of 5,000 digits": (WHOLE.replace("3600", "9" * 5000), ("",)),
    "another schema": ('{"schema": "gpucost.profile/v9", "job": {}}', ("schema", "profile/v1")),
    "a list of lists": ("[[]]", ("",)),
    "an empty object": ("{}", ("neither a profile",)),
    "null": ("null", ("not telemetry",)),
    "binary": (bytes(range(256)) * 64, ("binary",)),
    "reservations": (
        "name,date,hours\nann,2026-11-01,8\nbob,2026-11-02,4\n",
        ("a list of reservations",),
    ),
    "a page": ("<!doctype html><html><body>log in</body></html>", ("",)),
}

BAD_FIELDS: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "percent": (KERNEL_TIME, 55, "gpus[0].metrics.util.kernel_time.mean"),
    "negative power": (POWER, {"mean": -3.2}, "gpus[0].metrics.power.board_w.mean"),
    "text for a number": (("hardware", "gpu_count"), "two", "hardware.gpu_count"),
    "a fraction of a GPU": (("hardware", "gpu_count"), 1.5, "hardware.gpu_count"),
    "no GPU": (("hardware", "gpu_count"), 0, "hardware.gpu_count"),
    "a flag for a number": (("hardware", "cpu_cores"), True, "hardware.cpu_cores"),
    "a number for text": (("job", "name"), 7, "job.name"),
    "a list for an object": (("job",), [], "job"),
    "an object for a list": (("gpus",), {}, "gpus"),
    "unknown kind": (("job", "kind"), "trainin", "job.kind"),
    "unknown precision": (("job", "precision"), "fp31", "job.precision"),
    "mistyped field": (("job", "precison"), "fp32", "job.precison"),
    "mistyped slot": (("gpus", 0, "metrics", "util.kernal_time"), {"mean": 0.2}, "kernal_time"),
    "more hours than a month": (("usage", "hours_per_month"), 800, "usage.hours_per_month"),
    "max below mean": (
        ("gpus", 0, "metrics", "mem.used_gib"),
        {"mean": 8.0, "max": 4.0},
        "mem.used_gib",
    ),
    "a time that is none": (("window", "start"), "yesterday", "window.start"),
    "more GPUs than exist": (("hardware", "gpu_count"), 10**300, "hardware.gpu_count"),
    "notes that are a number": (("provenance",), {"notes": 5}, "provenance.notes"),
    "a lone surrogate": (("job", "name"), "\ud800", "job.name"),
}


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_and_named(case: str, command: str, call: Call, write: Write) -> None:
    """A file that is not a profile ends with exit 2, its name, and nothing on standard output."""
    content, told = BAD_FILES[case]
    ran = call(command, write("bad.json", content))
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert "bad.json" in ran.err
    assert all(word in ran.err for word in told), ran.err


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("case", BAD_FIELDS)
def test_a_bad_field_is_named_by_its_path(
    case: str, command: str, call: Call, write: Write
) -> None:
    """A wrong value ends with exit 2 and its JSON path."""
    path, value, named = BAD_FIELDS[case]
    ran = call(command, write("bad.json", changed(training(), path, value)))
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert f"bad.json: {named}" in ran.err or named in ran.err.partition("bad.json")[2]


def test_every_problem_of_every_file_is_listed(call: Call, write: Write) -> None:
    """Three wrong fields in two files are three sentences, in one go."""
    first = changed(changed(training(), KERNEL_TIME, 55), POWER, {"mean": -1})
    second = changed(training(), ("hardware", "gpu_count"), "x")
    ran = call("plan", write("first.json", first), write("second.json", second))
    assert ran.code == 2
    problems = ran.err.splitlines()
    assert len(problems) == 3
    assert [p.split(": ")[1] for p in problems] == ["first.json", "first.json", "second.json"]


def test_files_of_one_name_are_told_apart(call: Call, write: Write) -> None:
    """Where two folders hold bad files of one name, the messages say which is which."""
    bad = changed(training(), KERNEL_TIME, 55)
    ran = call("plan", write("monday/job.json", bad), write("tuesday/job.json", bad))
    assert ran.code == 2
    assert "monday" in ran.err
    assert "tuesday" in ran.err


def test_a_folder_of_mixed_files_names_the_bad_ones(call: Call, write: Write) -> None:
    """A folder with good and bad files is planned from the good, with every bad file named."""
    write("mixed/good.json", training())
    write("mixed/notes.txt", "remember the milk\n")
    write("mixed/cut.json", WHOLE[:100])
    write("mixed/noise.bin", bytes(range(256)) * 8)
    ran = call("plan", "mixed")
    assert ran.code == 0
    assert all(name in ran.err for name in ("notes.txt", "cut.json", "noise.bin"))
    assert "good.json" not in ran.err


@pytest.mark.parametrize("command", READERS)
def test_a_large_random_file_is_refused(command: str, call: Call, empty_folder: Path) -> None:
    """Twenty megabytes of noise are refused like any other file."""
    noise = random.Random(1).randbytes(20_000_000)  # noqa: S311 - noise, not a secret
    (empty_folder / "noise.log").write_bytes(noise)
    ran = call(command, "noise.log")
    assert ran.code == 2
    assert "noise.log" in ran.err


@pytest.mark.parametrize("command", [*READERS, "report"])
@pytest.mark.parametrize(
    "path", ["nothing.json", "no/such/folder/x.json", "x" * 5000, "a\0b"], ids=lambda p: p[:12]
)
def test_a_file_that_cannot_be_opened_is_an_input_error(
    path: str, command: str, call: Call
) -> None:
    """A missing, impossible or overlong name ends with exit 2."""
    ran = call(command, path)
    assert ran.code == 2, ran.err
    assert ran.err.startswith("gpucost: ")


def test_an_empty_folder_is_no_source(call: Call, empty_folder: Path) -> None:
    """A folder without files is refused by name."""
    (empty_folder / "logs").mkdir()
    ran = call("plan", "logs")
    assert ran.code == 2
    assert "logs" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_an_input_error(call: Call, write: Write, empty_folder: Path) -> None:
    """A file without read permission ends with exit 2 and its name."""
    (empty_folder / write("locked.json", training())).chmod(0)
    ran = call("plan", "locked.json")
    assert ran.code == 2
    assert "locked.json" in ran.err


def test_a_card_that_the_table_lacks_is_planned_at_home(call: Call, write: Write) -> None:
    """Its waste, cause and dollars are told; that it is compared with no other is said, too."""
    unknown = changed(training("alpha"), ("hardware",), {"gpu": "NVIDIA H1000", "cpu_cores": 4})
    name = write("alpha.json", unknown)
    assert call("diagnose", name).code == 0
    assert call("import", name, "-o", "-").code == 0
    ran = call("plan", name, "--price", "2")
    assert ran.code == 0
    assert "NVIDIA H1000 on own/1x-NVIDIA-H1000" in ran.out
    assert "Wasted     $" in ran.out
    text = " ".join(ran.out.split())
    assert "The table of GPUs lacks NVIDIA H1000: waste, cause and cures" in text
    assert "no other GPU is compared." in text
    plan = json.loads(call("plan", name, "--price", "2", "-f", "json").out)
    (job,) = plan["jobs"]
    assert {option["offer"]["gpu"] for option in job["options"]} <= {"NVIDIA H1000"}


def test_a_name_that_the_table_lacks_is_of_the_stated_machine(call: Call, write: Write) -> None:
    """A g4dn has a T4, whatever its driver calls it: it is compared as that, which is said."""
    name = write("alpha.json", changed(training("alpha"), ("hardware", "gpu"), "NVIDIA T4-XQ"))
    ran = call("plan", name)
    assert ran.code == 0
    assert "Measured on NVIDIA T4-XQ; the price is that of T4" in " ".join(ran.out.split())
    assert "lacks" not in ran.out


@pytest.mark.parametrize("gpu", ["TPU v6e", "RTX 6000"])
def test_what_is_no_card_stops_a_plan_and_nothing_else(gpu: str, call: Call, write: Write) -> None:
    """A TPU is no GPU, and a name of several cards is asked for: `plan` names file and field."""
    name = write("alpha.json", changed(training("alpha"), ("hardware",), {"gpu": gpu}))
    assert call("diagnose", name).code == 0
    ran = call("plan", name)
    assert ran.code == 2
    assert f"alpha: hardware.gpu: GPU {gpu!r}" in ran.err


def test_an_unknown_card_of_unknown_memory_is_told_what_makes_it_pass(
    call: Call, write: Write
) -> None:
    """What the message tells to state is all that it takes."""
    bare = training("alpha")
    bare["hardware"] = {"gpu": "NVIDIA H1000", "gpu_count": 1}
    del bare["gpus"][0]["metrics"]["mem.used_gib"]
    ran = call("plan", write("alpha.json", bare))
    assert ran.code == 2
    assert "hardware.gpu_memory_gib" in ran.err
    stated = changed(bare, ("hardware",), bare["hardware"] | {"gpu_memory_gib": 80})
    assert call("plan", write("stated.json", stated)).code == 0


def test_a_machine_that_no_list_has_passes_with_its_price(call: Call, write: Write) -> None:
    """What the refusal of an unlisted machine tells to type works."""
    name = write("alpha.json", changed(training("alpha"), ("hardware",), {"gpu": "Tesla T4"}))
    refused = call("plan", name, "--machine", "gcp/n1-standard-8")
    assert refused.code == 2
    assert "State what it costs: --price USD (an hour)." in refused.err
    ran = call("plan", name, "--machine", "gcp/n1-standard-8", "--price", "0.73")
    assert ran.code == 0
    assert "1x T4 on gcp/n1-standard-8" in ran.out


@pytest.mark.parametrize("command", ["plan", "diagnose"])
def test_hostile_names_are_data(command: str, call: Call, write: Write) -> None:
    """A job name full of markup changes neither the exit code nor the terminal's state."""
    escape = f"{HOSTILE}\x1b[31m\x07"
    ran = call(command, write("evil.json", changed(training(), ("job", "name"), escape)))
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "\x07" not in ran.out


BAD_PLANS: dict[str, str] = {
    "no JSON": "plan:",
    "a profile": WHOLE,
    "a list": "[]",
    "only a schema": '{"schema": "gpucost.plan/v1"}',
    "jobs of another kind": '{"schema": "gpucost.plan/v1", "period": "month", "jobs": [1]}',
    "deep": "[" * 100_000,
    "an integer of 5,000 digits": '{"schema": "gpucost.plan/v1", "x": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("arguments", [("report",), ("quote", "--option", "train/o1")], ids=str)
@pytest.mark.parametrize("case", BAD_PLANS)
def test_a_bad_plan_is_refused_and_named(
    case: str, arguments: tuple[str, ...], call: Call, write: Write
) -> None:
    """A plan file that is none, or is cut, ends with exit 2 and its name."""
    command, *rest = arguments
    ran = call(command, write("plan.json", BAD_PLANS[case]), *rest)
    assert ran.code == 2, ran.err
    assert "plan.json" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("name", ["x\n::error::boo\n##[add-mask]a", "::stop-commands::b"])
def test_a_problem_is_no_command_of_who_runs_ci(name: str, call: Call, write: Write) -> None:
    """A file of a pull request ends no line of our messages, and begins none: GitHub obeys them."""
    document = training()
    document["gpus"][0]["metrics"][name] = 1
    write("bad.json", document)
    cluster = f"kind = {json.dumps(name)}"
    Path("cluster.toml").write_text(cluster, encoding="utf-8")
    write("good.json", changed(training(), ("job", "name"), name))
    for words in (("plan", "bad.json"), ("plan", "good.json", "--cluster", "cluster.toml")):
        ran = call(*words)
        assert ran.code == 2
        _check_log(ran.err)
    _check_log(call("plan", "good.json").out)


def _check_log(text: str) -> None:
    assert "##[" not in text
    assert [line for line in text.splitlines() if line.lstrip().startswith("::")] == []
