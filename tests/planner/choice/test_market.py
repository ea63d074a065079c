"""What the jobs of a plan share makes it faster and changes no figure of it."""

from pathlib import Path

from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import load_catalog
from tests.pricing.factories import ASKED_ON

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
GIB = 2**30


def example(path: str) -> Profile:
    """A bundled example."""
    (profile,) = parse_profiles((EXAMPLES / path).read_bytes(), path)
    return profile


JOBS = tuple(example(f"fleet/{path.name}") for path in sorted((EXAMPLES / "fleet").glob("*.json")))


def test_a_job_of_a_fleet_is_planned_as_alone() -> None:
    """Options, rejections and advice of a job do not depend on what was planned before it."""
    catalog, asked = load_catalog(ASKED_ON), Requirements(consolidate=False)
    together = draft_plan(JOBS[:4], catalog, asked, as_of=ASKED_ON)
    for job, profile in zip(together.jobs, JOBS, strict=False):
        (alone,) = draft_plan((profile,), catalog, asked, as_of=ASKED_ON).jobs
        assert alone.options == job.options
        assert alone.rejected == job.rejected
        assert alone.named == job.named


def test_a_use_that_offers_share_costs_what_each_pays_alone() -> None:
    """One use for the whole catalog makes the same bills as a new one for each offer."""
    asked = {
        "duration_s": 500_000.5,
        "as_of": ASKED_ON,
        "count": 2,
        "boot_disk_bytes": 100 * GIB,
        "storage_bytes": 500 * GIB,
        "egress_bytes": 3_000 * GIB,
        "addresses": 2,
    }
    shared = Usage(**asked)
    for offer in load_catalog(ASKED_ON).offers:
        assert quote(offer, shared) == quote(offer, Usage(**asked))
