"""The page draws what was recorded over time, from the series beside the profiles."""

import json
import re
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import training

PAGE = ("report", "plan.json", "--style", "html")


def _series(target: str, readings: int = 900, gpus: int = 1) -> None:
    rows = [
        {"t_s": 1.7e9 + t, "gpu": str(gpu), "util.kernel_time": 0.5, "host.cpu_util": 0.25}
        for t in range(readings)
        for gpu in range(gpus)
    ]
    duckdb.from_df(pd.DataFrame(rows)).write_parquet(target)


def _curves(page: str) -> dict[str, list[float]]:
    """Return the use in percent at each point of every curve, by its kind."""
    return {
        kind: [100.0 - float(point.split(" ")[1]) for point in re.split("[ML]", path)[1:]]
        for kind, path in re.findall(r'<path class="(\w+)" d="([^"]*)"', page)
    }


def _phases(page: str) -> list[tuple[str, float, float]]:
    """Return the phases below the curves: name, start and width in percent."""
    spans = re.findall(
        r'class="phase p\d" style="left:([\d.]+)%;width:([\d.]+)%" title="(.+?)"', page
    )
    return [(name, float(left), float(width)) for left, width, name in spans]


@pytest.fixture
def plan(call: Call, write: Write) -> None:
    """Write train.json and its plan."""
    write("train.json", training("train"))
    assert call("plan", "train.json", "-q", "-o", "plan.json").code == 0


@pytest.mark.usefixtures("plan")
def test_series_beside_the_plan_are_drawn(call: Call) -> None:
    """900 readings of 2 GPUs are 400 points, with the host's load and the phases."""
    _series("train.samples.parquet", gpus=2)
    page = call(*PAGE).out
    curves = _curves(page)
    assert curves["mean"] == [50.0] * 400
    assert set(curves["host"]) == {25.0}
    assert _phases(page) == [("steady", 0.0, 100.0)]
    assert "<span>15 min</span>" in page


@pytest.mark.usefixtures("plan")
def test_without_a_series_the_page_says_so(call: Call) -> None:
    """Nothing is drawn that was not recorded, and what would record it is named."""
    page = call(*PAGE).out
    assert _curves(page) == {}
    assert "This job has no recording over time" in page


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(
    "series", ["elsewhere", "elsewhere/train.json", "elsewhere/train.samples.parquet"]
)
def test_series_may_lie_elsewhere(series: str, call: Call) -> None:
    """A folder, a profile or its samples is named; a line of steps is read with it."""
    Path("elsewhere/run").mkdir(parents=True)
    folder = Path("elsewhere/run" if series == "elsewhere" else "elsewhere")
    Path("train.json").rename(folder / "train.json")
    _series(str(folder / "train.samples.parquet"))
    step = {"t_s": 1.7e9 + 899, "step": 1, "n": 1, "step_s": 0.5, "evaluation_s": 500.0}
    (folder / "train.steps.jsonl").write_text(json.dumps(step) + "\n")
    page = call(*PAGE, "--series", series).out
    assert "evaluation" in {kind for kind, _, _ in _phases(page)}


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--series", "nowhere"), "there is no nowhere.samples.parquet"),
        (("--series", "."), "no series of a job of plan.json is there"),
        (("--series", "train.json", "--style", "md"), "add --style html"),
    ],
)
def test_what_is_not_there_is_said(words: tuple[str, ...], sentence: str, call: Call) -> None:
    """A series that is named and cannot be drawn ends it with a sentence, exit 2."""
    ran = call(*PAGE, *words)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize("damaged", ["train.samples.parquet", "train.steps.jsonl"])
def test_a_damaged_series_is_refused_by_name(damaged: str, call: Call) -> None:
    """The file that cannot be read is named; nothing is drawn of half of it."""
    _series("train.samples.parquet")
    Path(damaged).write_text('{"step": 1}\n')
    ran = call(*PAGE)
    assert ran.code == 2
    assert damaged in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("plan")
def test_a_series_of_another_job_is_not_drawn(call: Call, write: Write) -> None:
    """What lies beside the plan and is of no job of it is left alone."""
    write("other.json", training("other"))
    _series("other.samples.parquet")
    assert _curves(call(*PAGE).out) == {}


@pytest.mark.usefixtures("plan")
def test_a_long_series_is_averaged_as_it_is_read(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the most rows the mean of short stretches is read, and the same is drawn."""
    monkeypatch.setattr("gpucost.profiling.series_read._MOST_ROWS", 450)
    _series("train.samples.parquet")
    busy = _curves(call(*PAGE).out)["mean"]
    assert set(busy) == {50.0}
    assert 300 < len(busy) <= 400
