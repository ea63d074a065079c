"""`python -m research.accuracy`: the page and the scores are what the data sets give."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from research import cross_gpu, probed, report, rows, serving, several_gpus, side_by_side
from research.accuracy import main
from tests.conftest import ROOT

SHIPPED = json.loads(files("planner.models.data").joinpath("accuracy.json").read_text("utf-8"))
PAGE = ROOT / "docs" / "accuracy.md"
DEAR = {each.section for each in (cross_gpu, probed, rows, serving, several_gpus)}
"""Sections that take 100 of 106 seconds."""


def test_a_folder_without_the_files_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each section names the first file that it misses; nothing is written."""
    need_files = tuple(each for each in report.SECTIONS if each != side_by_side.section)
    monkeypatch.setattr(report, "SECTIONS", need_files)
    page = tmp_path / "page.md"
    assert main([str(tmp_path), "--page", str(page)]) == 2
    said = capsys.readouterr().err
    assert "pytorch-train-throughput-fp16.csv" in said
    assert "summary_power_a40.csv" in said
    assert not page.exists()


def test_the_page_shows_the_scores_that_ship() -> None:
    """Every class that ships stands on the page with its errors: both are of one evaluation."""
    page = PAGE.read_text(encoding="utf-8")
    shipped = [
        "| {class} | {set} | {left_out} | {cases} | {median} / {mean} |".format(
            **row, **row["percent"]
        )
        for row in SHIPPED["rows"]
    ]
    assert [row for row in shipped if row not in page] == []


def test_the_quick_sections_score_what_ships(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine of the fourteen sections, evaluated anew, give the scores that ship; nightly, all do."""
    quick = tuple(each for each in report.SECTIONS if each not in DEAR)
    monkeypatch.setattr(report, "SECTIONS", quick)
    scores = tmp_path / "accuracy.json"
    assert main([str(shared / "datasets"), "--scores", str(scores)]) == 0
    again = json.loads(scores.read_text(encoding="utf-8"))["scores"]
    assert len(again) >= len(quick)
    for score in again:
        shipped = [row for row in SHIPPED["scores"] if row["question"] == score["question"]]
        percents = [pytest.approx(row["percent"], abs=0.25) for row in shipped]
        assert score["percent"] in percents


def test_the_page_is_what_the_evaluation_gives(shared: Path, tmp_path: Path) -> None:
    """docs/accuracy.md is written, not edited: same words, figures to a tenth or two."""
    page, scores = tmp_path / "accuracy.md", tmp_path / "accuracy.json"
    assert main([str(shared / "datasets"), "--page", str(page), "--scores", str(scores)]) == 0
    document = json.loads(scores.read_text(encoding="utf-8"))
    assert document["schema"] == "gpucost.accuracy/v1"
    assert [row["set"] for row in document["rows"]] == [row["set"] for row in SHIPPED["rows"]]
    for new, old in zip(document["rows"], SHIPPED["rows"], strict=True):
        assert new["percent"] == pytest.approx(old["percent"], abs=0.25)
    number = re.compile(r"\d+(?:\.\d+)?")
    fresh, kept = page.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8")
    assert number.sub("#", fresh) == number.sub("#", kept)
    for new, old in zip(number.findall(fresh), number.findall(kept), strict=True):
        assert float(new) == pytest.approx(float(old), abs=0.25)
