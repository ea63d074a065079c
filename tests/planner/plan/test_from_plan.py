"""A plan made now and the same plan read back are the same values."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.choice.requirements import Requirements
from planner.models.document import encode
from planner.pipeline import draft_plan
from planner.plan.draft import PlanDraft
from planner.plan.making import to_plan
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from planner.profile.source import contradiction
from pricing.catalog.catalog import load_catalog
from pricing.hardware import gpus
from tests.planner.factories import TODAY, plan, running, sold
from tests.planner.jobs_drawn import Drawn, job
from tests.planner.plan.kept import as_values

ROOT = Path(__file__).resolve().parents[3]
DAY = date(2026, 11, 22)
FLEETS = ("fleet", "hard/pods-one-machine")
SINGLE = sorted(
    path.relative_to(ROOT / "examples").as_posix()
    for folder in ("examples", "examples/hard")
    for path in (ROOT / folder).glob("*.json")
)


OFFERS = (
    TODAY,
    sold("cheap", "1.10", as_of=date(2026, 5, 1)),
    sold("two", "3.00", gpu_count=2),
    sold("newer", "2.40", gpu="H100-SXM-80GB"),
    sold("spot", "0.70", purchase="spot"),
)


@st.composite
def drawn_jobs(draw: st.DrawFn) -> Profile:
    """A job of any kind, of which any reading may be missing."""
    return job(Drawn(draw))


def profiles_of(name: str) -> tuple[Profile, ...]:
    """The profiles of an example: a file, or a folder of jobs."""
    path = ROOT / "examples" / name
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return tuple(one for file in files for one in parse_profiles(file.read_bytes(), file.name))


def check_the_same(made: PlanDraft) -> None:
    """Hold the values of a plan made now against those read back from its file."""
    values = to_plan(made)
    assert as_values(encode(values)) == values
    assert encode(as_values(encode(values))) == encode(values)


@pytest.mark.parametrize("name", [*SINGLE, *FLEETS])
def test_an_example_made_now_is_the_example_read_back(name: str) -> None:
    """Field for field, for every example: nothing is lost or rounded on the way."""
    catalog = load_catalog(DAY)
    check_the_same(draft_plan(profiles_of(name), catalog, Requirements(), as_of=DAY))


@pytest.mark.slow
@given(jobs=st.lists(drawn_jobs(), min_size=1, max_size=3))
def test_any_plan_made_now_is_the_plan_read_back(jobs: list[Profile]) -> None:
    """The same for drawn jobs of every kind, packed where there are several."""
    machines = []
    for n, profile in enumerate(jobs):
        gpu = profile.hardware.gpu or "A100-SXM-80GB"
        memory_gib = gpus()[gpu].memory_gib
        machines.append(sold(f"today-{n}", "2.00", gpu, gpu_memory_gib=memory_gib))
    pairs = list(zip(jobs, machines, strict=True))
    assume(not any(contradiction(*pair) for pair in pairs))
    placed = [running(*pair) for pair in pairs]
    check_the_same(plan(*placed, offers=(*OFFERS, *machines)))
