"""`gpucost capacity` says whether more GPUs are needed."""

import json
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call

HOUR = 3600


def _trace(folder: Path, days: int = 30, each: int = 4) -> str:
    """Write jobs of an hour: `each` of 2 GPUs every four hours."""
    lines = ["submit,duration,gpus"]
    lines += [
        f"{1_790_000_000 + hour * HOUR},{HOUR},2"
        for hour in range(0, days * 24, 4)
        for _ in range(each)
    ]
    path = folder / "jobs.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_the_verdict_comes_first(call: Call, tmp_path: Path) -> None:
    """A reader sees the answer before what it rests on."""
    ran = call("capacity", _trace(tmp_path), "--gpus", "1..8", "--now", "8", "--draws", "2")
    said = [line for line in ran.err.splitlines() if not line.startswith("replaying")]
    assert said[0].startswith("No: fewer are enough. 4 GPUs")


@pytest.mark.parametrize(
    ("now", "verdict", "gpus"), [(2, "more", 4), (4, "keep", 4), (8, "fewer", 4)]
)
def test_the_answer(now: int, verdict: str, gpus: int, call: Call, tmp_path: Path) -> None:
    """Four jobs of 2 GPUs and an hour at once: on 4 GPUs the last waits an hour, on 2 three."""
    ran = call(
        "capacity", _trace(tmp_path), "--gpus", "1..8", "--now", str(now), "--gpu-price", "2.50",
        "--draws", "5", "-f", "json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["schema"] == "gpucost.capacity/v1"
    assert found["answer"] == {
        "verdict": verdict,
        "gpus": gpus,
        "enough": 4,
        "surely": 4,
        "usd_per_month": "7300.00",  # 4 x 2.50 x 730
    }
    by_size = {size["gpus"]: size for size in found["sizes"]}
    assert by_size[4]["p95_s"] == {"low": 3600.0, "mid": 3600.0, "high": 3600.0}
    assert by_size[1]["never"] == len(Path(tmp_path / "jobs.csv").read_text().split()) - 1
    assert by_size[1]["mean_s"]["mid"] is None
    here = by_size[8]["against_now"]
    assert here["usd_per_month"] == f"{(8 - now) * 1825}.00"


@pytest.mark.parametrize(("waited_h", "verdict"), [(0, "fewer"), (1, "fewer"), (5, "unknown")])
def test_a_replay_that_does_not_show_todays_waits_advises_no_smaller_pool(
    waited_h: int, verdict: str, call: Call, tmp_path: Path
) -> None:
    """Jobs of 2 GPUs that waited 5 h while a replay on 8 GPUs has none wait: no answer is given."""
    lines = ["submit,start,end,gpus"]
    for hour in range(0, 240, 4):
        come = 1_790_000_000 + hour * HOUR
        start = come + waited_h * HOUR
        lines += [f"{come},{start},{start + HOUR},2"] * 2
    file = tmp_path / "jobs.csv"
    file.write_text("\n".join(lines) + "\n")
    ran = call("capacity", str(file), "--gpus", "2..8", "--now", "8", "--draws", "5")
    assert ran.code == 0, ran.err
    assert ("Do not give GPUs back" in ran.err) is (verdict == "unknown")
    assert ("fewer are enough" in ran.err) is (verdict == "fewer")


def test_the_answer_comes_last_and_survives_quiet(call: Call, tmp_path: Path) -> None:
    """-q leaves the table and the answer."""
    ran = call("capacity", _trace(tmp_path), "--gpus", "4..8", "--now", "8", "-q")
    assert ran.err.strip().startswith("No: fewer are enough. 4 GPUs: 4 GPUs served 95 % of jobs")
    assert "8 now" in ran.out


def test_pools_are_made_of_whole_machines(call: Call, tmp_path: Path) -> None:
    """With --type only whole machines are tried, and their price is the catalog's."""
    ran = call(
        "capacity", _trace(tmp_path), "--gpus", "1..24", "--draws", "0", "-f", "json",
        "--type", "digitalocean/gpu-h100x8-640gb",
    )  # fmt: skip
    found = json.loads(ran.out)
    assert [size["gpus"] for size in found["sizes"]] == [8, 16, 24]
    assert found["price"]["step"] == 8
    assert found["answer"]["verdict"] == "unknown"
    assert "nc/m" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpus", "1..2", "--gpu-price", "1", "--gpu", "H100"), "give one of --type, --gpu"),
        (("--gpus", "9..12", "--type", "digitalocean/gpu-h100x8-640gb"), "machines of 8"),
        (("--gpus", "1..2", "--job-gpus", "7"), "no job of the trace holds 7 to 7 GPUs"),
        (("--gpus", "1..2", "--map", "x=submit"), "no column 'x'"),
        (("--gpus", "1..2", "--gpu", "nonsense9000"), "nonsense9000"),
    ],
)
def test_a_call_that_cannot_be_is_refused(
    arguments: tuple[str, ...], said: str, call: Call, tmp_path: Path
) -> None:
    """Exit 2 and a sentence; nothing on standard output."""
    ran = call("capacity", _trace(tmp_path), *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_no_pool_is_enough(call: Call, tmp_path: Path) -> None:
    """Where no size asked for keeps the target, the answer says so and what to ask next."""
    ran = call("capacity", _trace(tmp_path, each=40), "--gpus", "14..16", "--now", "16")
    assert ran.code == 0
    assert "Yes: more are needed; no pool of up to 16 GPUs" in ran.err


def test_a_short_trace_has_no_range(call: Call, tmp_path: Path) -> None:
    """Under four days nothing is drawn, and the note says so."""
    ran = call("capacity", _trace(tmp_path, days=2), "--gpus", "4..6", "-f", "json")
    found = json.loads(ran.out)
    assert found["answer"]["surely"] is None
    assert found["sizes"][0]["p95_s"]["low"] is None
    assert "shorter than four days" in " ".join(found["notes"])
