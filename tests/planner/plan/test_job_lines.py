"""The lines of jobs, written before it is known who shares a GPU, are those of the whole plan."""

from datetime import date
from pathlib import Path

import msgspec
import pytest

from planner.choice.requirements import Requirements
from planner.models.document import to_text
from planner.pipeline import draft_plan
from planner.plan.job_lines import (
    job_lines,
    open_lines,
    replaced,
    shared_lines,
    text_around,
)
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.codec import parse_profiles
from pricing.catalog.catalog import load_catalog

FLEET = Path(__file__).resolve().parents[3] / "examples" / "fleet"
DAY = date(2026, 11, 22)


@pytest.fixture(scope="module")
def packed() -> Plan:
    """A plan of jobs of which some are to share a GPU."""
    files = sorted(FLEET.glob("*.json"))
    jobs = tuple(one for file in files for one in parse_profiles(file.read_bytes(), file.name))
    return to_plan(draft_plan(jobs, load_catalog(DAY), Requirements(), as_of=DAY))


def test_text_around_jobs_and_their_lines_are_the_text_of_the_plan(packed: Plan) -> None:
    """Nothing else stands between them but a comma and a line break."""
    before, after = text_around(packed)
    between = ",\n".join(map(job_lines, packed.jobs))
    assert f"{before}{between}{after}" == to_text(packed)


def test_what_is_known_late_is_set_in_place_of_what_was_written(packed: Plan) -> None:
    """Lines of a job alone, with another confidence, become those of the job that shares."""
    shared = [job for job in packed.jobs if job.placement is not None]
    assert shared, "no job shares a GPU, so nothing is tried"
    for job in shared:
        alone = msgspec.structs.replace(job, placement=None, confidence=packed.jobs[0].confidence)
        lines = job_lines(alone).encode()
        places = open_lines(lines)
        assert places is not None
        confidence, placement = (one.encode() for one in shared_lines(job))
        assert replaced(lines, places, (confidence, placement)).decode() == job_lines(job)


@pytest.mark.parametrize("hidden", [b"confidence", b"placement"])
def test_lines_that_are_not_found_are_not_guessed(hidden: bytes, packed: Plan) -> None:
    """Where a secret was hidden in the name of a field there are no places."""
    lines = job_lines(msgspec.structs.replace(packed.jobs[0], placement=None)).encode()
    assert open_lines(lines.replace(b'   "%s":' % hidden, b'   "[secret]":')) is None
