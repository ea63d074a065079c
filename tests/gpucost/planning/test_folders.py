"""Folders as SOURCE of plan, diagnose and import: filled by gpucost itself, then read again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF, changed, training


@pytest.fixture
def filled(call: Call, empty_folder: Path) -> Path:
    """A folder with a profile and everything that commands write beside it."""
    (empty_folder / "profile.json").write_text(json.dumps(training()), encoding="utf-8")
    plan = ("plan", "--as-of", AS_OF, "-o", "plan.json", "--report", "report.md")
    assert call(*plan).code == 0
    assert call("recipe", "plan.json", "-o", "recipe.json").code == 0
    (empty_folder / "gpucost.toml").write_text("", encoding="utf-8")
    return empty_folder


def _jobs(text: str) -> list[str]:
    document: Any = json.loads(text)
    return [job["name"] for job in document["jobs"]]


@pytest.mark.parametrize("words", [("plan", "--as-of", AS_OF), ("diagnose",)], ids=lambda w: w[0])
def test_a_filled_folder_is_the_job_alone(call: Call, filled: Path, words: tuple[str, ...]) -> None:
    """The plan, the report and the recipe beside a profile are not jobs, and are named."""
    alone = call(*words, str(filled / "profile.json"), "-f", "json")
    whole = call(*words, str(filled), "-f", "json")
    assert whole.code == 0
    assert json.loads(whole.out) == json.loads(alone.out)
    for name in ("plan.json", "report.md", "recipe.json", "gpucost.toml"):
        assert f"{name}: " in whole.err
    assert call(*words, str(filled), "-q", "-f", "json").err == ""


def test_a_filled_folder_is_imported(call: Call, filled: Path) -> None:
    """`import DIR` gives the profile in it, with the gaps that options fill."""
    ran = call("import", str(filled), "-o", "-", "--precision", "fp32")
    assert ran.code == 0
    assert json.loads(ran.out)["job"]["name"] == training()["job"]["name"]


def test_many_strangers_are_named_in_few_lines(call: Call, filled: Path) -> None:
    """A hundred files of code cost a line together; a damaged profile keeps a line of its own."""
    for i in range(100):
        (filled / f"code{i}.py").write_text("import torch\n", encoding="utf-8")
    (filled / "bad.json").write_text('{"schema": "gpucost.profile/v1", "gpus": 3}')
    ran = call("diagnose", str(filled))
    assert ran.code == 0
    lines = ran.err.splitlines()
    assert len(lines) < 10
    assert lines[0].startswith("warning: skipped")
    assert "bad.json" in lines[0]
    assert any("skipped 100 more that are not measurements" in line for line in lines)


def test_a_folder_without_a_job_is_an_error(call: Call, filled: Path) -> None:
    """Exit 2 names what was there and why none of it is a job."""
    (filled / "profile.json").unlink()
    ran = call("diagnose", str(filled))
    assert ran.code == 2
    assert "plan.json: a gpucost plan, which is a result, no measurement" in ran.err


def test_without_the_default_profile_others_are_read(call: Call, filled: Path) -> None:
    """`plan` beside profiles under other names reads them, and not what they were made from."""
    whole = call("plan", "--as-of", AS_OF, "-f", "json")
    (filled / "profile.json").rename(filled / "profile.train.node3.json")
    ran = call("plan", "--as-of", AS_OF, "-f", "json")
    assert ran.code == 0, ran.err
    assert len(_jobs(ran.out)) == len(_jobs(whole.out))


def test_the_nodes_of_a_run_are_one_job(call: Call, empty_folder: Path) -> None:
    """Profiles that carry one run are planned as one job, given as a folder or file by file."""
    for node in ("n1", "n2"):
        (empty_folder / node).mkdir()
        run = {"id": "slurm 77.0", "node": node, "world": 2}
        part = changed(changed(training(), ("run",), run), ("gpus",), [])
        (empty_folder / node / "profile.json").write_text(json.dumps(part), encoding="utf-8")
    files = [str(empty_folder / node / "profile.json") for node in ("n1", "n2")]
    for sources in ([str(empty_folder)], files):
        ran = call("import", *sources, "-o", "-")
        assert ran.code == 0
        joined = json.loads(ran.out)
        assert joined["hardware"]["nodes"] == 2
        assert joined["hardware"]["gpu_count"] == 2 * training()["hardware"]["gpu_count"]
        assert len(_jobs(call("plan", *sources, "--as-of", AS_OF, "-f", "json").out)) == 1
