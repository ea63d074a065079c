"""A machine that stays on without its job: idle hours before and after it are paid, and are said.

The right answers were worked out by hand: hours idle of hours recorded, dollars of 100 h at $2.
"""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from planner.diagnosis.diagnose import diagnose
from planner.plan.draft import JobDraft
from planner.plan.making import to_plan
from planner.profile.kinds import JobKind
from planner.profile.model import Profile, Window
from telemetry.readers.hints import Hints
from templates.language.translate import use_language
from templates.reports.first_screen import first_screen
from templates.reports.job_screen import FirstScreen
from tests.planner.factories import a_profile, codes, plan, running
from tests.telemetry.reading import read_source

EPOCH = 1782907200
MINUTE_S = 60
DAY_22_H = Window(duration_s=7200.0, interval_s=60.0, coverage=1.0, idle_after_s=72000.0)


def recorded(
    folder: Path, hours: float, busy: Callable[[float], bool], gap: float = 0.0
) -> Profile:
    """Return the profile of a log of one reading a minute, none in the two hours from `gap` on."""
    rows = [
        f"{EPOCH + minute * MINUTE_S},{90 if busy(minute / 60) else 0}"
        for minute in range(round(hours * 60))
        if not gap or not gap <= minute / 60 < gap + 2
    ]
    file = folder / "log.csv"
    file.write_text("\n".join(["timestamp,utilization.gpu", *rows]) + "\n", encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    return profile


@pytest.mark.parametrize(
    ("hours", "begin", "end", "gap", "idle_h", "of_h"),
    [
        (22.0, 0.0, 2.0, 0.0, 20.0, 22.0),
        (8.0, 0.0, 6.0, 0.0, 2.0, 8.0),
        (8.0, 4.0, 8.0, 0.0, 4.0, 8.0),
        (40.0, 1.0, 2.0, 0.0, 39.0, 40.0),  # under 5 % of the log, and yet a job
        (8.0, 0.0, 2.0, 2.02, 3.98, 6.0),  # the gap of 2 h after the job was not seen to be idle
        (8.0, 0.0, 6.0, 2.0, 2.0, 8.0),  # a gap in the job is taken for the job's
    ],
)
def test_recorded_idle_hours_around_a_job_are_kept(  # noqa: PLR0913, PLR0917 - a table
    tmp_path: Path, hours: float, begin: float, end: float, gap: float, idle_h: float, of_h: float
) -> None:
    """What was read and idle before and after the job is in the profile, gaps are not."""
    profile = recorded(tmp_path, hours, lambda hour: begin <= hour < end, gap)
    assert profile.window is not None
    assert profile.window.idle_around_s / 3600 == pytest.approx(idle_h, abs=0.06)
    assert profile.idle_around_fraction == pytest.approx(idle_h / of_h, abs=0.01)
    share = profile.paid_busy_fraction
    assert share == pytest.approx(0.9 * (1 - idle_h / of_h), abs=0.01)
    assert codes(diagnose(profile))[0] == "left-on"


def test_minutes_at_the_ends_of_a_recording_are_not_a_machine_left_on(tmp_path: Path) -> None:
    """A log that begins a minute early and ends a minute late says nothing of idle hours."""
    profile = recorded(tmp_path, 1.0, lambda hour: 1 / 60 <= hour < 59 / 60)
    assert profile.idle_around_fraction == 0.0
    assert profile.paid_busy_fraction == profile.busy_fraction
    assert "left-on" not in codes(diagnose(profile))


@pytest.mark.parametrize("kind", ["unknown", "training", "interactive"])
def test_nights_inside_a_recording_are_idle_like_those_at_its_ends(
    tmp_path: Path, kind: str
) -> None:
    """Busy 9-20 h on three days: 39 of 72 h are idle, 13 of them around and 26 between."""
    profile = recorded(tmp_path, 72.0, lambda hour: 9 <= hour % 24 < 20)
    found = diagnose(replace(profile, job=replace(profile.job, kind=JobKind(kind))))
    idle = {f.code: f.waste_fraction for f in found if "idle-shutdown" in f.actions}
    assert idle["left-on"] == pytest.approx(13 / 72, abs=0.01)
    assert sum(share or 0.0 for share in idle.values()) >= 39 / 72 - 0.01


def test_nights_between_runs_are_not_billed_where_an_idle_machine_ends(tmp_path: Path) -> None:
    """Of 72 h a training runs for 9: 91.25 of 730 h are billed, and a part of the idle ones.

    Of those, 638.75 h, 1/60 stays: a twentieth over three pauses. It is 101.9 h, billed as 102.
    """
    profile = recorded(tmp_path, 72.0, lambda hour: 2 <= hour % 24 < 5)
    job = replace(profile.job, kind=JobKind("training"))
    draft = plan(running(replace(profile, job=job)))
    now = draft.jobs[0].now
    assert now is not None
    assert now.actions == ("idle-shutdown",)
    assert now.usd is not None
    assert now.usd.mid == Decimal("204.00")


def test_a_session_in_bursts_stays_one(tmp_path: Path) -> None:
    """Of a notebook the pauses are the verdict; the last one is counted once."""
    profile = recorded(tmp_path, 8.0, lambda hour: hour < 5 and hour % 1.5 < 0.2)
    findings = diagnose(profile)
    assert codes(findings)[:2] == ["bursty-interactive", "left-on"]
    wasted = sum(finding.waste_fraction or 0.0 for finding in findings)
    assert profile.paid_busy_fraction is not None
    assert wasted == pytest.approx(1.0 - profile.paid_busy_fraction, abs=0.01)


def of_22_hours(**fields: str) -> tuple[JobDraft, FirstScreen]:
    """Return the plan of a job of 2 h on a machine that was on for 22, and its first lines."""
    metrics = {"util.kernel_time": 0.5, "mem.used_gib": 20.0}
    draft = plan(running(a_profile(metrics, window=DAY_22_H, **fields)))
    with use_language("en"):
        return draft.jobs[0], first_screen(to_plan(draft))


@pytest.mark.parametrize("kind", ["training", "unknown", "interactive"])
def test_a_machine_left_on_is_dollars_and_ends_first(kind: str) -> None:
    """Of $200, 10/11 are idle; ending the machine when idle leaves the job and a twentieth of them.

    The GPU is busy for half of 1/11 of the hours that are paid.
    """
    job, screen = of_22_hours(kind=kind)
    left_on = next(finding for finding in job.findings if finding.code == "left-on")
    assert left_on.waste_usd == Decimal("181.82")
    assert screen.busy_fraction == pytest.approx(0.5 / 11, abs=1e-4)
    assert "20 of 22 h" in " ".join(line.text for line in screen.facts)
    assert job.now is not None
    assert job.now.actions == ("idle-shutdown",)
    assert job.now.usd is not None
    assert job.now.usd.mid == Decimal("28.00")  # 9.1 + 4.5 h, billed as 14


def test_a_job_is_no_faster_where_its_machine_only_ends_sooner() -> None:
    """Hours that fall away after the job are no speed-up of it."""
    job, _ = of_22_hours(kind="training")
    assert job.now is not None
    assert job.now.time_factor == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("kind", "asks"), [("unknown", True), ("training", False)])
def test_the_first_screen_asks_for_the_kind_of_job_where_it_decides(kind: str, asks: bool) -> None:  # noqa: FBT001
    """Whether a faster machine saves hours depends on whether the job ends by itself."""
    _, screen = of_22_hours(kind=kind)
    assert any("--kind training" in line.text for line in screen.notes) is asks


def test_what_was_lost_after_a_crash_and_the_rest_of_the_waste_add_up(tmp_path: Path) -> None:
    """Of $1,460 a quarter is lost after the job left; what else of the 55 % waits is the other."""
    minutes = [f"60,{15000 + 1500 * max(0, m - 55)}" for m in range(60)]
    minutes += ["0,0"] * 40 + ["60,15000"] * 60
    rows = "".join(f"{1782907200 + 60 * m},{row}\n" for m, row in enumerate(minutes))
    file = tmp_path / "log.csv"
    file.write_text("timestamp,utilization.gpu,memory.used [MiB]\n" + rows, encoding="utf-8")
    (profile,) = read_source(str(file), Hints(gpu="A100-SXM4-80GB"))
    draft = plan(running(profile))
    with use_language("en"):
        facts = {line.label: line.text for line in first_screen(to_plan(draft)).facts}
    idle, wasted = facts["Idle"], facts["Wasted"]
    assert idle.startswith("$365 of the waste: GPU memory rose")
    assert wasted.startswith("$803 (55 %); the other $438: ")


def test_pauses_and_the_hours_after_the_session_are_one_waste(tmp_path: Path) -> None:
    """What ending an idle machine gives back is said whole, and its two parts add up to it."""
    profile = recorded(tmp_path, 8.0, lambda hour: hour < 5 and hour % 1.5 < 0.2)
    draft = plan(running(profile))
    with use_language("en"):
        screen = first_screen(to_plan(draft))
    parts = [finding.waste_usd or Decimal(0) for finding in draft.jobs[0].findings[:2]]
    assert screen.wasted_usd == sum(parts)
    facts = {line.label: line.text for line in screen.facts}
    assert f", of which ${parts[0]:,.0f}: " in facts["Wasted"]
    assert facts["Idle"].startswith(f"${parts[1]:,.0f} of the waste: ")
