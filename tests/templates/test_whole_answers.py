"""A first screen is a whole answer: a verdict ends in a step, a share says of what it is."""

import re

import pytest
from msgspec.structs import replace

from planner.plan.making import to_plan
from planner.profile.model import Profile
from templates.reports.first_screen import first_screen
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
