"""`gpucost accuracy`: scores where the data is, one sentence where it is not."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from gpucost.cli import run

SHIPPED = json.loads(files("planner.models.data").joinpath("accuracy.json").read_text("utf-8"))
PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def test_without_the_data_the_shipped_scores_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default folder is optional: exit 0, the scores that shipped, and no page is written."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["accuracy", "-o", "page.md", "-f", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == SHIPPED
    assert "none is new" in shown.err
    assert not list(Path().iterdir())


@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_every_row_names_its_baselines(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed in any form, a class stands beside peak, bandwidth, geometric mean and no change."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["accuracy", "-f", form]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("peak", "bandwidth", "no", "LLM"))


def test_a_folder_that_was_named_must_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong --data is bad usage, and so is a folder without the files."""
    assert run(["accuracy", "--data", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_folder_without_the_files_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each section names the first file that it misses."""
    assert run(["accuracy", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "pytorch-train-throughput-fp16.csv" in said
    assert "summary_power_a40.csv" in said


def test_the_page_is_what_the_evaluation_gives(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/accuracy.md is written, not edited: same words, figures to a tenth or two."""
    written = tmp_path / "accuracy.md"
    assert (
        run(["accuracy", "--data", str(shared / "datasets"), "-o", str(written), "-f", "json"]) == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "gpucost.accuracy/v1"
    assert [row["set"] for row in document["rows"]] == [row["set"] for row in SHIPPED["rows"]]
    for new, old in zip(document["rows"], SHIPPED["rows"], strict=True):
        assert new["percent"] == pytest.approx(old["percent"], abs=0.25)
    number = re.compile(r"\d+(?:\.\d+)?")
    fresh, page = written.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8")
    assert number.sub("#", fresh) == number.sub("#", page)
    for new, old in zip(number.findall(fresh), number.findall(page), strict=True):
        assert float(new) == pytest.approx(float(old), abs=0.25)
