"""No first screen contradicts itself: over our examples, and cases that experts answered."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.plan.job import JobPlan
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
from templates.reports.decision import wastes
from templates.reports.first_screen import first_screen
from templates.reports.job_screen import FirstScreen
from tests.conftest import ROOT
from tests.diagnosis.labelled import LabelledCase, cases

DAY = date(2026, 11, 22)
EXAMPLES = sorted((ROOT / "examples").glob("*.json")) + sorted(
    (ROOT / "examples/hard").glob("*.json")
)
REFUSED = {"misnamed-field", "tpu-v5e"}  # not a field; not a GPU
SPINS = ("spin", "hang", "wait for it in a collective")  # kernels that run and do nothing
UNREAD = re.compile(r"was not recorded|is not known")
ELSEWHERE = ("Next", "Cheapest")


def contradictions(job: JobPlan, screen: FirstScreen) -> Iterator[str]:
    """Yield what a reader of the screen of one job would take for a contradiction."""
    labels = [action.label for action in screen.actions]
    lines = [line.text for line in (*screen.facts, *screen.notes)]
    keeps = any(text.startswith("Keep it") for text in lines)
    saves = [action for action in screen.actions if "saves" in " ".join(action.figures)]
    first = job.program_finding
    if keeps and saves:
        yield f"keep it, and {saves[0].label} saves"
    if keeps and ("Now" in labels or wastes(job)):
        yield "keep it, and something is to be done now, or most of it is wasted"
    if first is None:
        return
    spins = any(word in first.cause for word in SPINS)
    idle = first.code in {"idle", "idle-held", "left-on"} and not spins
    if idle and (screen.busy_fraction or 0.0) > 0.5:
        yield f"idle, and busy {screen.busy_fraction}"
    if (
        first.code == "well-used"
        and (screen.busy_fraction or 1.0) < 0.5
        and "video" not in first.cause
    ):
        yield f"used well, and busy {screen.busy_fraction}"
    if first.confidence == "measured" and UNREAD.search(first.cause):
        yield "measured, and not recorded"
    if job.answer.now is not None and job.answer.now.kind == "end" and set(labels) & {*ELSEWHERE}:
        yield "the job is to end, and to move"
    if "Not enough was measured" in " ".join(lines) and "Now" in [a.label for a in saves]:
        yield "nothing was measured, and a step here saves"
    wasted, paid = screen.wasted_usd, screen.paid_usd
    if wasted is not None and paid is not None and wasted > paid:
        yield "more is wasted than is paid"


def plan_of(jobs: tuple[Profile, ...]) -> Plan:
    """The plan of the day of these tests."""
    return to_plan(draft_plan(jobs, load_catalog(DAY), Requirements(), as_of=DAY))


def of_job(profile: Profile) -> list[str]:
    """The contradictions of the screen of one job."""
    plan = plan_of((profile,))
    return list(contradictions(plan.jobs[0], first_screen(plan)))


def of_file(path: Path) -> list[str]:
    """The contradictions of the job of a file."""
    (profile,) = parse_profiles(path.read_bytes(), path.name)
    return of_job(profile)


@pytest.mark.parametrize(
    "case", [case for case in cases() if not case.recorded], ids=lambda case: case.name
)
def test_a_labelled_case_is_answered_without_a_contradiction(case: LabelledCase) -> None:
    """Nor any case of the labelled set."""
    profile = case.profile(None)
    assert profile is not None
    assert of_job(profile) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_does_not_contradict_itself(path: Path) -> None:
    """Keep and save, idle and busy, measured and unread stand on no screen together."""
    assert of_file(path) == []


def test_no_case_of_an_expert_is_answered_with_a_contradiction(shared: Path) -> None:
    """The same over the cases that experts answered."""
    answers = {}
    for path in sorted((shared / "cases/advice").glob("*.json")):
        try:
            answers[path.stem] = of_file(path)
        except InputError:
            assert path.stem in REFUSED
    assert len(answers) >= 20
    assert {name: found for name, found in answers.items() if found} == {}


def test_a_contradiction_is_seen() -> None:
    """What the check looks for, it finds: a reason to keep above what is cheaper."""
    path = ROOT / "examples/hard/kaggle-unet.json"
    plan = to_plan(
        draft_plan(
            parse_profiles(path.read_bytes(), "p"), load_catalog(DAY), Requirements(), as_of=DAY
        )
    )
    screen = first_screen(plan)
    why = next(line for line in screen.notes if line.label == "Why stay")
    kept = type(why)(label="Advice", text=f"Keep it for now: {why.text}")
    facts = (*screen.facts, kept)
    clash = replace(screen, facts=facts)
    assert list(contradictions(plan.jobs[0], clash)) == [
        "keep it, and Cheapest saves",
        "keep it, and something is to be done now, or most of it is wasted",
    ]
