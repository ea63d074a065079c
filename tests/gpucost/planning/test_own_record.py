"""One's own record: `verify` keeps it, `accuracy --mine` shows it, `plan --history` uses it."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, training


@pytest.fixture
def state(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own."""
    folder = empty_folder / "state"
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def verified(state: Path, call: Call, write: Write) -> Any:
    """Plans a job and verifies a run that is so many times as fast; returns the record's path."""

    def verify(times: float, *more: str) -> Path:
        for name, factor in (("a", 1.0), ("b", times)):
            document = training()
            document["step"] = {
                "count": 4000,
                "counted_by": "optimizer",
                "mean_s": 0.256 / factor,
                "p50_s": 0.25 / factor,
                "p95_s": 0.28 / factor,
            }
            write(f"{name}.json", document)
        assert call("plan", "a.json", "--as-of", AS_OF, "-q", "-o", "plan.json").code == 0
        ran = call("verify", "a.json", "b.json", "--plan", "plan.json", "-f", "json", *more)
        assert ran.code == 0, ran.err
        return state / "outcomes.jsonl"

    return verify


def test_an_outcome_is_kept_once_and_private(verified: Any) -> None:
    """Readable by its owner alone; the same question asked twice is one line."""
    path = verified(2.0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert verified(2.0).read_text().count("\n") == 1
    assert verified(2.5).read_text().count("\n") == 2
    kept = json.loads(path.read_text().splitlines()[0])
    assert (kept["schema"], kept["moved"], kept["verdict"]) == (
        "gpucost.outcome/v1",
        False,
        "proved",
    )


def test_nothing_is_kept_where_nothing_was_asked(verified: Any) -> None:
    """--no-record leaves the record as it is."""
    assert not verified(2.0, "--no-record").exists()


def test_a_line_cut_off_by_a_crash_is_taken_out(verified: Any, call: Call) -> None:
    """The next outcome stands on a line of its own."""
    path = verified(2.0)
    path.write_text(path.read_text() + '{"schema":"gpu')
    verified(2.5)
    assert len(path.read_text().splitlines()) == 2
    assert call("accuracy", "--mine", "-f", "json").json["rows"][0]["outcomes"] == 2


def test_a_record_that_cannot_be_kept_spoils_nothing(verified: Any, state: Path) -> None:
    """A link in its place is left alone, and the verification is printed all the same."""
    state.mkdir(mode=0o700)
    (state / "outcomes.jsonl").symlink_to(state / "elsewhere")
    verified(2.0)
    assert not (state / "elsewhere").exists()


def test_the_hit_rate_is_shown(verified: Any, call: Call) -> None:
    """One that held and one that did not: half, with an interval that admits how little that is."""
    verified(2.0)
    verified(9.0)
    found = call("accuracy", "--mine", "-f", "json").json
    everything = found["rows"][0]
    assert (everything["outcomes"], everything["held"], everything["held_fraction"]) == (2, 1, 0.5)
    assert everything["held_low"] < 0.15
    assert everything["held_high"] > 0.85
    shown = call("accuracy", "--mine")
    assert "1 (50%)" in shown.out
    assert "did" not in shown.out
    assert "plan --history" in shown.err


def test_an_empty_record_says_how_to_fill_it(state: Path, call: Call) -> None:
    """No file yet is no error: exit 0 and the command that makes one."""
    ran = call("accuracy", "--mine")
    assert (ran.code, "verify BEFORE AFTER --plan" in ran.err) == (0, True)
    assert not state.exists()


def test_a_plan_uses_the_record_and_says_so(verified: Any, call: Call) -> None:
    """After misses by far, the same plan has wider hours, names the file, and notes what it did."""
    path = verified(9.0)
    without = call("plan", "a.json", "--as-of", AS_OF, "-f", "json").json
    own = call("plan", "a.json", "--as-of", AS_OF, "--history", str(path), "-f", "json").json
    assert "history" not in without
    assert own["history"]["same_machine"]["outcomes"] == 1
    assert any("--history outcomes.jsonl" in line for line in own["assumptions"])

    def speeds(plan: Any) -> dict[tuple[str, tuple[str, ...]], Any]:
        return {
            (o["offer"]["instance_type"], tuple(o["actions"])): o["speed"]
            for o in plan["jobs"][0]["options"]
            if o["offer"]["gpu"] == "T4" and "dataloader-workers" in o["actions"]
        }

    before, after = speeds(without), speeds(own)
    shared = before.keys() & after.keys()
    assert shared
    for key in shared:
        one, other = before[key], after[key]
        assert other["mid"] / other["low"] > one["mid"] / one["low"] * 1.2


def test_a_plan_of_a_record_teaches_the_same(verified: Any, call: Call) -> None:
    """An outcome of a corrected plan carries what the record had done to it."""
    path = verified(9.0)
    options = ("--as-of", AS_OF, "-q", "-o", "own.json", "--history", str(path))
    assert call("plan", "a.json", *options).code == 0
    assert call("verify", "a.json", "b.json", "--plan", "own.json", "-q").code == 0
    last = json.loads(path.read_text().splitlines()[-1])
    assert last["widened"] > 1.0


@pytest.mark.parametrize("name", ["", "none.jsonl"])
def test_a_history_that_is_none_is_refused(name: str, call: Call, write: Write) -> None:
    """No such file exits 2 and says what keeps one."""
    write("profile.json", training())
    ran = call("plan", "--history", name)
    assert (ran.code, ran.out) == (2, "")
    assert "gpucost accuracy --mine" in ran.err
