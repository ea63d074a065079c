"""A first screen is a whole answer: a verdict ends in a step, a share says of what it is."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpucost.api import read_telemetry
from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from planner.signals.program_places import has_guessed_times
from pricing.catalog.catalog import load_catalog
from templates.reports.first_screen import first_screen
from templates.reports.fleet_screen import fleet_screen
from templates.reports.job_screen import FirstScreen
from tests.diagnosis.labelled import LabelledCase, cases
from tests.planner.factories import a_profile, plan, running

STEPS = ("Settle it", "Try", "Advice")
OPEN = re.compile(r"^Keep it\b|^Keep it for now")


def screen_of(*profiles: Profile) -> FirstScreen:
    """The first screen of jobs on a machine that is rented by the hour."""
    return first_screen(to_plan(plan(*map(running, profiles))))


def ends_in_a_step(screen: FirstScreen) -> bool:
    """Whether something is to be done, tried or measured."""
    lines = (line for line in (*screen.facts, *screen.notes) if line.label in STEPS)
    return bool(screen.actions) or any(not OPEN.match(line.text) for line in lines)


NO_SERIES = [case for case in cases() if not case.recorded and "series" not in case.given]


@pytest.mark.parametrize("case", NO_SERIES, ids=lambda case: case.name)
def test_no_verdict_is_bare(case: LabelledCase) -> None:
    """What is wrong, or not known, comes with a step, a test or a question; owned or rented."""
    profile = case.profile(None)
    assert profile is not None
    for owned in (False, True):
        hardware = replace(profile.hardware, gpu="A100-SXM-80GB", owned=owned)
        made = to_plan(plan(running(replace(profile, hardware=hardware))))
        verdict = made.jobs[0].verdict
        assert verdict is not None
        if verdict.code != "well-used":
            screen = first_screen(made)
            assert ends_in_a_step(screen), screen.lines


@pytest.mark.parametrize(
    ("metrics", "words"),
    [({"util.sm_active": 0.4}, "SM active 40 %"), ({"util.kernel_time": 0.4}, "GPU busy 40 %")],
)
def test_a_share_of_sm_activity_is_called_so(metrics: dict[str, float], words: str) -> None:
    """The verdict says what it rests on where nobody read a busy share."""
    screen = screen_of(a_profile(metrics))
    assert screen.busy_text == words
    said = any("the verdict rests on SM activity" in line.text for line in screen.lines)
    assert said == ("SM" in words)


def test_a_gpu_that_nobody_read_is_not_in_the_share() -> None:
    """Of two GPUs one was read, at 99 %: that says nothing of the other."""
    each = ({"util.kernel_time": 0.99}, {"mem.used_gib": 10.0})
    text = " ".join(line.text for line in screen_of(a_profile(each=each, gpu_count=2)).lines)
    assert "Only 1 of its 2 GPUs reported their use" in text


def log(folder: Path, spans: tuple[tuple[int, int], ...], *, times: bool = True) -> str:
    """Write a log of an A100: for each span its minutes and how busy the GPU was, in percent."""
    columns = ["name", "utilization.gpu [%]", "memory.used [MiB]", "power.draw [W]"]
    rows, t_s = [", ".join([*(["timestamp"] if times else []), *columns])], 0
    for minutes, busy in spans:
        for _ in range(minutes * 6):
            clock = f"2026/11/20 {8 + t_s // 3600:02d}:{t_s // 60 % 60:02d}:{t_s % 60:02d}.000, "
            power = 380 if busy else 70
            row = f"NVIDIA A100-SXM4-80GB, {busy} %, 60000 MiB, {power:.2f} W"
            rows.append(clock * times + row)
            t_s += 10
    path = folder / "gpu.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_a_log_without_times_has_no_verdict_by_times(tmp_path: Path) -> None:
    """Of 340 rows the last tenth are busy; whether those before are a start-up nobody knows."""
    path = log(tmp_path, ((51, 0), (5, 97)), times=False)
    guessed, told = read_telemetry(path), read_telemetry(path, interval_s=10.0)
    assert has_guessed_times(guessed)
    assert (guessed.phases, has_guessed_times(told)) == ((), False)
    assert told.phases
    text = str(screen_of(guessed).lines)
    assert "start-up" not in text
    assert "minutes are" not in text


@pytest.mark.parametrize(("rest_min", "said"), [(25, True), (3, False)])
def test_a_log_that_ends_long_idle_says_so_first(
    tmp_path: Path, rest_min: int, *, said: bool
) -> None:
    """An hour of work, then 25 minutes of rest: the share of the time before is not all of it."""
    screen = screen_of(read_telemetry(log(tmp_path, ((60, 97), (rest_min, 0)))))
    rest = [line.text for line in screen.facts if line.label == "Idle"]
    whole = (
        "for 25 min at the end of the 85 min recorded no GPU works; shares are of the time before."
    )
    assert rest == [whole] * said


def test_minutes_are_told_in_minutes(tmp_path: Path) -> None:
    """40 of 60 min at rest at the end are not 0.667 of 1 h."""
    screen = screen_of(read_telemetry(log(tmp_path, ((20, 97), (40, 0)))))
    assert "for 40 of 60 min." in screen.cause


def test_keep_it_does_not_stand_above_what_is_cheaper() -> None:
    """$12 in place of $33 does not pay for $1,300 of work: that is why the job stays, a note."""
    path = Path(__file__).resolve().parents[2] / "examples" / "hard" / "kaggle-unet.json"
    jobs, day = parse_profiles(path.read_bytes(), path.name), date(2026, 11, 22)
    screen = first_screen(to_plan(draft_plan(jobs, load_catalog(day), Requirements(), as_of=day)))
    assert [action.label for action in screen.actions] == ["Cheapest"]
    assert "Keep it" not in str(screen.lines)
    why = next(line.text for line in screen.notes if line.label == "Why stay")
    assert "the work and the move cost" in why


def test_gpus_that_jobs_leave_are_called_so() -> None:
    """They cost nothing today and $10,025 once jobs have moved: nobody "held" them for $0."""
    jobs = [running(a_profile(name=name, team=name)) for name in ("one", "two")]
    made = to_plan(plan(*jobs))
    assert made.teams
    free = replace(
        made.teams[0],
        name=None,
        held=False,
        jobs=(),
        usd=Decimal(0),
        recommended_usd=Decimal(10025),
    )
    screen = fleet_screen(replace(made, teams=(*made.teams, free)))
    by_team = next(line.text for line in screen.facts if line.label == "By team")
    assert by_team.endswith("; GPUs that jobs leave, still billed: $10,025")


@pytest.mark.parametrize(("wrong", "said"), [(180, 2), (1, 0)])
def test_a_unit_that_changes_half_way_is_said(tmp_path: Path, wrong: int, said: int) -> None:
    """From W to mW and from MiB to bytes in half of the rows; one stray value is none of that."""
    path = Path(log(tmp_path, ((60, 97),)))
    lines = path.read_text().splitlines()
    for row in range(len(lines) - wrong, len(lines)):
        name, busy, _memory, _power = lines[row].rsplit(", ", 3)
        lines[row] = f"{name}, {busy}, {60000 * 2**20} MiB, 380000.00 W"
    path.write_text("\n".join(lines) + "\n")
    texts = [line.text for line in screen_of(read_telemetry(path)).notes]
    assert len([text for text in texts if "unit of the column may have changed" in text]) == said


@pytest.mark.parametrize("is_stated", [False, True])
def test_a_saving_of_an_assumed_fleet_says_what_it_rests_on(*, is_stated: bool) -> None:
    """Nobody named today's machine: what is saved is saved of an assumption."""
    made = plan_of_fleet(is_stated=is_stated)
    screen = fleet_screen(made)
    saving = [action.text for action in screen.actions if action.cost is not None]
    assert saving
    assert {"against the assumed machine" in text for text in saving} == {not is_stated}


def plan_of_fleet(*, is_stated: bool) -> Plan:
    """The plan of the fleet of the examples, with its machine or without."""
    folder, day = Path(__file__).resolve().parents[2] / "examples" / "fleet", date(2026, 11, 22)
    paths = sorted(folder.glob("infer-*.json"))
    jobs = [parse_profiles(path.read_bytes(), path.name)[0] for path in paths]
    if not is_stated:
        nothing = {"provider": None, "instance_type": None, "region": None}
        jobs = [replace(job, hardware=replace(job.hardware, **nothing)) for job in jobs]
    return to_plan(draft_plan(tuple(jobs), load_catalog(day), Requirements(), as_of=day))
