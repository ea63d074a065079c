"""A fleet packed where its jobs run today, or at homes that a test names."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from planner.choice.baseline import Baseline
from planner.choice.requirements import Requirements
from planner.fleet.consolidate import drafts
from planner.fleet.fleet import Fleet
from planner.fleet.placements import Home, today
from planner.fleet.tenant import PackingCache
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog


def consolidate(  # noqa: PLR0913 - what a packing is made of
    jobs: Iterable[tuple[Profile, Baseline]],
    requirements: Requirements,
    homes: Mapping[str, Home | None] | None = None,
    catalog: Catalog | None = None,
    *,
    quick: bool = False,
    packed_before: PackingCache | None = None,
    ended: Mapping[str, Decimal] | None = None,
) -> Fleet:
    """Return the fleet on fewer GPUs; without homes each job is packed where it runs today.

    The other arguments are those of `drafts`.
    """
    pairs = list(jobs)
    at = {p.job.name: today(p, b) for p, b in pairs} if homes is None else homes
    (draft,) = drafts(
        pairs,
        requirements,
        [at],
        catalog,
        quick=quick,
        packed_before=packed_before or PackingCache(),
        ended=ended or {},
    )
    return draft.fleet()
