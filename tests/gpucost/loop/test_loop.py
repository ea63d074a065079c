"""`gpucost loop`: every step in order, once, and a sentence where it stops."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucost.loop import loop_steps
from gpucost.loop.loop_steps import RentedRun
from gpucost.loop.looping import with_proved
from tests.gpucost.conftest import Call, Ran
from tests.gpucost.loop.world import World, ended

COMMAND = ("--", "python", "train.py", "--lr", "1e-3")
FOLDER = Path("gpucost-loop")
WORKERS = {"dataloader-workers": 2.5}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    """A world in which nothing helps, until a test says what does."""
    made = World()
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(
        "gpucost.commands.measuring.loop.run_step", lambda step, **_: made.take(step)
    )
    monkeypatch.setattr(loop_steps, "rented", lambda _: tuple(made.rented))
    return made


def _loop(call: Call, *more: str) -> Ran:
    return call("loop", "--yes", "-f", "json", *more, *COMMAND)


def _last() -> dict[str, Any]:
    """The document of the loop, behind those of its steps."""
    return dict(json.loads((FOLDER / "loop.json").read_text(encoding="utf-8")))


def test_a_starved_job_is_proved_and_the_loop_ends_with_a_sentence(
    world: World, call: Call
) -> None:
    """Profile, plan, run, verify, and one plan more that finds nothing to add; every file lies."""
    world.faster = WORKERS
    ran = _loop(call)
    assert ran.code == 0, ran.err
    assert world.taken == ["profile", "plan", "run", "verify", "plan"]
    document = _last()
    (only,) = document["rounds"]
    assert (only["where"], only["verdict"]) == ("here", "proved")
    assert only["speedup"]["low"] > 1.0
    assert only["speedup"]["mid"] == pytest.approx(2.5, rel=0.1)
    assert document["spent_usd"] == "0"
    assert any("nothing more that can be applied here" in one for one in document["ended"])
    assert "ended: " in ran.err
    wanted = ("before", "plan", "recipe", "after", "proof", "loop")
    assert all((FOLDER / f"{name}.json").is_file() for name in wanted)
    assert (FOLDER / "proof.md").is_file()


def test_what_does_not_help_is_not_proved_and_not_tried_again(world: World, call: Call) -> None:
    """The same setting is not run twice, and the loop says that it was tried."""
    ran = _loop(call)
    assert ran.code == 0, ran.err
    assert world.taken == ["profile", "plan", "run", "verify", "plan"]
    document = _last()
    assert [one["verdict"] for one in document["rounds"]] == ["not-proved"]
    assert any("tried already: not-proved: the 95 % interval" in one for one in document["ended"])


def _crowded(steps: int, busy: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def changed(document: dict[str, Any]) -> dict[str, Any]:
        document["hardware"]["cpu_cores"] = 8
        document["host"] = {**(document.get("host") or {}), "cpu_util": {"mean": 0.1}}
        document["machine"] = {"cpu_cores": 8, "cpu_util": {"mean": busy}}
        document["step"]["count"] = steps
        return document

    return changed


@pytest.mark.parametrize(
    ("more", "seen", "turns"),
    [
        ((), (4000, 0.2), False),
        ((), (4000, 1.0), True),
        ((), (400, 1.0), False),
        (("--ab",), (400, 0.2), True),
    ],
)
def test_settings_are_tried_in_turns_where_two_runs_would_prove_nothing(
    more: tuple[str, ...], seen: tuple[int, float], *, turns: bool, world: World, call: Call
) -> None:
    """On a machine that others fill, in a run that is long enough, or where it is asked for."""
    world.faster, world.profile = WORKERS, _crowded(*seen)
    ran = _loop(call, *more)
    assert ran.code == 0, ran.err
    assert world.in_turns == [turns]


def test_a_run_that_others_disturbed_is_made_again_in_turns(world: World, call: Call) -> None:
    """The machine was quiet before, and full while the settings were tried."""
    world.faster = WORKERS
    loads = iter((0.2, 1.0))

    def changed(document: dict[str, Any]) -> dict[str, Any]:
        return _crowded(4000, next(loads, 0.2))(document)

    world.profile = changed
    ran = _loop(call)
    assert ran.code == 0, ran.err
    assert world.in_turns[:2] == [False, True]


@pytest.mark.parametrize("step", ["profile", "plan", "run", "verify"])
@pytest.mark.parametrize("how", ["fails", "interrupts"])
def test_a_loop_goes_on_where_it_was_cut_off(step: str, how: str, world: World, call: Call) -> None:
    """Whatever step fails or is interrupted is taken again; those before it are not."""
    world.faster = WORKERS
    if how == "fails":
        world.fails[step] = 7
    else:
        world.interrupts.append(step)
    cut = _loop(call)
    assert cut.code == (7 if how == "fails" else 130), cut.err
    assert how != "fails" or f"gpucost {step}" in cut.err
    before = world.taken[:-1]
    again = _loop(call)
    assert again.code == 0, again.err
    whole = ["profile", "plan", "run", "verify", "plan"]
    assert [*before, *world.taken[len(before) + 1 :]] == whole
    assert _last()["rounds"][0]["verdict"] == "proved"


def test_an_ended_loop_measures_nothing_again(world: World, call: Call) -> None:
    """Called once more, it plans, and ends with the same sentences."""
    world.faster = WORKERS
    first = _loop(call)
    world.taken.clear()
    again = _loop(call)
    assert (first.code, again.code) == (0, 0)
    assert world.taken == ["plan"]


def test_a_healthy_job_is_left_alone(world: World, call: Call) -> None:
    """Where the plan has nothing that costs less, nothing runs."""

    def well_used(document: dict[str, Any]) -> dict[str, Any]:
        document["step"] |= {"data_wait_s": 0.001, "compute_s": 0.199}
        document["gpus"][0]["metrics"]["util.kernel_time"] = {"mean": 0.98, "p50": 0.98}
        return document

    world.profile = well_used
    ran = _loop(call)
    assert ran.code == 0, ran.err
    assert world.taken == ["profile", "plan"]
    assert _last()["rounds"] == []
    assert _last()["ended"]


def test_nothing_is_rented_without_a_budget(world: World, call: Call) -> None:
    """Options on other machines are named, with the flag that allows them."""
    _loop(call)
    assert "provision" not in world.taken
    assert any("--budget USD allows it" in one for one in _last()["ended"])


def test_within_its_budget_it_rents_and_counts_what_that_cost(world: World, call: Call) -> None:
    """The largest option is rented, proved, and what to type to move there is said."""
    world.away = 4.0
    ran = _loop(call, "--budget", "20", "--provider", "aws", "--ttl", "1h")
    assert ran.code == 0, ran.err
    assert world.taken == ["profile", "plan", "provision", "verify"]
    document = _last()
    (only,) = document["rounds"]
    assert only["where"].startswith("aws/")
    assert document["spent_usd"] == "1.5"
    assert "gpucost provision" in document["ended"][0]


def test_the_budget_holds_what_was_spent_before(world: World, call: Call) -> None:
    """What the ledger has is counted: with it spent, nothing is rented any more."""
    world.away = 4.0
    world.fails["verify"] = 1
    assert _loop(call, "--budget", "2", "--provider", "aws", "--ttl", "1h").code == 1
    world.away = 1.0
    (FOLDER / "proof.json").unlink(missing_ok=True)
    world.rented = [ended("run-1", Decimal(2))]
    ran = _loop(call, "--budget", "2", "--provider", "aws", "--ttl", "1h")
    assert ran.code == 0, ran.err
    assert world.taken.count("provision") == 1


def test_a_launch_that_is_there_is_followed_not_repeated(world: World, call: Call) -> None:
    """Cut off while a machine runs, the loop comes back to it."""
    world.away = 4.0
    world.interrupts.append("provision")
    rent = ("--budget", "20", "--provider", "aws", "--ttl", "1h")
    assert _loop(call, *rent).code == 130
    world.rented = [
        RentedRun(run="run-1", is_open=True, usd=Decimal("1.5"), launched_nothing=False)
    ]
    ran = _loop(call, *rent)
    assert ran.code == 0, ran.err
    assert world.taken.count("provision") == 1
    assert world.taken[3:] == ["logs", "verify"]


def test_nobody_to_ask_runs_nothing_and_keeps_what_is_measured(world: World, call: Call) -> None:
    """Without --yes and without a terminal the run is refused; with --yes it goes on from there."""
    world.faster = WORKERS
    ran = call("loop", *COMMAND)
    assert ran.code == 2
    assert "Cannot ask without a terminal" in ran.err
    assert world.taken == ["profile", "plan"]
    assert _loop(call).code == 0
    assert world.taken == ["profile", "plan", "run", "verify", "plan"]


def test_a_folder_of_another_command_is_refused(world: World, call: Call) -> None:
    """Exit 2 names the command whose loop lies there; nothing is taken."""
    _loop(call)
    taken = list(world.taken)
    ran = call("loop", "--", "python", "other.py")
    assert ran.code == 2
    assert "python train.py --lr 1e-3" in ran.err
    assert world.taken == taken


def test_a_dry_run_prints_commands_and_takes_none(world: World, call: Call) -> None:
    """The steps to come stand as commands; no file is written."""
    ran = call("loop", "--dry-run", "--budget", "20", *COMMAND)
    assert ran.code == 0, ran.err
    names = ("profile", "plan", "recipe", "run", "provision", "verify")
    assert all(f"gpucost {name} " in ran.out for name in names)
    assert world.taken == []
    assert not FOLDER.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "gpucost.loop/v1"}'])
def test_a_damaged_record_is_said(text: str, world: World, call: Call) -> None:
    """Exit 2 names the file and the way to begin anew; it is not overwritten."""
    FOLDER.mkdir()
    (FOLDER / "loop.json").write_text(text, encoding="utf-8")
    ran = _loop(call)
    assert ran.code == 2
    assert "loop.json" in ran.err
    assert "--folder" in ran.err
    assert world.taken == []
    assert (FOLDER / "loop.json").read_text(encoding="utf-8") == text


def test_an_experiment_that_costs_more_than_it_can_save_is_not_made(
    world: World, call: Call
) -> None:
    """A run of 5,000 hours costs more than half a year of the option saves: it is not repeated."""

    def long(document: dict[str, Any]) -> dict[str, Any]:
        document["window"] = {"duration_s": 5000 * 3600}
        return document

    world.faster, world.profile = WORKERS, long
    ran = _loop(call)
    assert ran.code == 0, ran.err
    assert world.taken == ["profile", "plan"]
    assert any("the experiment costs $2,630.00" in one for one in _last()["ended"])


@pytest.mark.parametrize(("here", "workers"), [(True, 16), (False, 4)], ids=["here", "elsewhere"])
def test_what_is_proved_here_is_not_tried_with_another_number(*, here: bool, workers: int) -> None:
    """16 workers that stay applied are no new experiment as 4; another machine gets its own 4."""
    proved = {"actions": [{"code": "dataloader-workers", "settings": {"num_workers": 16}}]}
    asked = {
        "option": "o7",
        "actions": [
            {"code": "dataloader-workers", "settings": {"num_workers": 4}},
            {"code": "tf32", "settings": {}},
        ],
        "environment": {"A": "new"},
    }
    found = with_proved(asked, {**proved, "environment": {"A": "old"}}, stays=here)
    settings = {one["code"]: one["settings"] for one in found["actions"]}
    assert settings == {"dataloader-workers": {"num_workers": workers}, "tf32": {}}
    assert found["option"] == "o7"
    assert found["environment"] == {"A": "old" if here else "new"}
