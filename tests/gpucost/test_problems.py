"""What is wrong with many is said once, and no name is lost where there are few."""

import json
from pathlib import Path

import pytest

from gpucost.cli import run
from pricing.listing import grouped, listed


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "none"),
        (["a"], "a"),
        (["a", "b", "c", "d", "e"], "a, b, c, d, e"),
        (list("abcdefg"), "a, b, c, d, e, and 2 more"),
        ([str(n) for n in range(2000)], "0, 1, 2, 3, 4, and 1,995 more"),
    ],
)
def test_a_list_says_how_many_more(names: list[str], text: str) -> None:
    """The first few are named; what is not shown is counted."""
    assert listed(names) == text


@pytest.mark.parametrize(
    ("problems", "lines"),
    [
        (["one sentence."], ["one sentence."]),
        (["a: no GPU.", "b: no GPU."], ["a: no GPU.", "b: no GPU."]),
        (
            ["a: no GPU.", "b: no GPU.", "x: other.", "c: no GPU."],
            ["a, b, c: no GPU.", "x: other."],
        ),
        (["a: same.", "a: same.", "a: same."], ["a: same."] * 3),
        (["stop.", "stop.", "stop."], ["stop."] * 3),
        (["ends with a colon: ", "b"], ["ends with a colon: ", "b"]),
    ],
)
def test_problems_of_three_that_differ_in_whose_they_are_become_one(
    problems: list[str], lines: list[str]
) -> None:
    """Sentences that differ only in their first words are said once."""
    assert grouped(problems) == lines


def test_a_fleet_without_gpu_models_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty files with the same fault do not scroll the reason away."""
    for number in range(40):
        document = {
            "job": {"name": f"job{number:02}", "kind": "training"},
            "hardware": {"gpu_count": 1},
        }
        (tmp_path / f"{number:02}.json").write_text(json.dumps(document))
    assert run(["plan", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("hardware.gpu is missing") == 1
    assert "job00, job01, job02, job03, job04, and 35 more: hardware.gpu" in said


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ([], "no GPU was read in it"),
        ([{"index": 0, "metrics": {"util.kernel_time": 0.4}}], "its readings name no GPU model"),
    ],
)
def test_a_gpu_to_be_offered_does_not_stand_for_one_that_was_not_read(
    gpus: list[object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--gpu h100 says what may be offered; what is missing is where the job ran."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"job": {"name": "etl"}, "gpus": gpus}))
    assert run(["plan", str(path), "--gpu", "h100"]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert said in text
    assert "(--gpu of plan is what may be offered)" in text


def test_a_jetson_is_not_sent_to_the_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody rents the board that tegrastats runs on: no --machine TYPE is asked for."""
    line = "08-14-2025 15:00:{:02} RAM 12574/62841MB CPU [2%@1036] EMC_FREQ 3%@665 GR3D_FREQ 43%\n"
    log = tmp_path / "tegrastats.log"
    log.write_text("".join(line.format(s) for s in range(60)))
    assert run(["plan", str(log)]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "a Jetson (tegrastats), which nobody rents" in text
    assert "--machine" not in text


def test_idle_ends_that_were_cut_away_are_said_by_diagnose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """48 of 60 s are in no share of the findings, which is said beside them."""
    header = "timestamp,index,utilization.gpu,memory.used [MiB]\n"
    loads = [0] * 24 + [40] * 12 + [0] * 24
    rows = (f"2026/03/01 10:00:{s:02}.000,0,{load},9000\n" for s, load in enumerate(loads))
    log = tmp_path / "smi.csv"
    log.write_text(header + "".join(rows))
    assert run(["diagnose", str(log)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "idle lead-in of 24 s and tail of 24 s are not in the statistics" in text
