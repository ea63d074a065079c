"""How few GPUs are enough: several jobs of one machine type share its GPU (MPS, or MIG slices).

Jobs share a GPU only when memory, compute share, slowdown and latency all hold for everyone there;
who does not is told why. A GPU freed in a machine of several saves nothing by itself: what counts
is the machines that are left (planner/fleet/machines_left.py).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from planner.baseline.baseline import Baseline
from planner.baseline.requirements import Requirements
from planner.fleet.draft import Draft
from planner.fleet.fleet import Alternative, Fleet, Placement, Together
from planner.fleet.home import Home, today
from planner.fleet.tenant import CONTEXT_GIB, PackedBefore, Tenant, Unmoved, why_alone
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog

__all__ = [
    "CONTEXT_GIB",
    "Alternative",
    "Fleet",
    "Placement",
    "Together",
    "Unmoved",
    "consolidate",
    "draft",
]


def consolidate(  # noqa: PLR0913 - as of a draft
    jobs: Iterable[tuple[Profile, Baseline]],
    asked: Requirements,
    homes: Mapping[str, Home | None] | None = None,
    catalog: Catalog | None = None,
    *,
    quick: bool = False,
    known: PackedBefore | None = None,
) -> Fleet:
    """Return the fleet on fewer GPUs; the arguments are those of `draft`."""
    return draft(jobs, asked, homes, catalog, quick=quick, known=known).fleet()


def draft(  # noqa: PLR0913 - what a packing is made of
    jobs: Iterable[tuple[Profile, Baseline]],
    asked: Requirements,
    homes: Mapping[str, Home | None] | None = None,
    catalog: Catalog | None = None,
    *,
    quick: bool = False,
    known: PackedBefore | None = None,
) -> Draft:
    """Return the fleet on fewer GPUs, packed and with its bill.

    Args:
        jobs: what was measured, and what runs it today.
        asked: the limits of sharing.
        homes: the machine on whose GPU each job would share, by its name; else today's.
        catalog: where smaller machines are looked for; without it machines stay as they are.
        quick: first fit, without a search, a bound, or why who stays cannot join others.
        known: what was searched for before: the same jobs of a machine type are packed as then.
    """
    from planner.fleet.packing import unmoved, with_fewer_moves  # noqa: PLC0415 - numpy comes in with it

    known, pairs = known or PackedBefore(), list(jobs)
    at = {p.job.name: today(p, b) for p, b in pairs} if homes is None else homes
    tenants = [known.tenant(p, b, at[p.job.name], asked, quick=quick) for p, b in pairs]
    alone = {t.name: reason for t in tenants if (reason := why_alone(t, asked)) is not None}
    pools = [
        (group, known.packed([t for t in group if t.name not in alone], asked, quick=quick))
        for group in _by_machine(tenants)
    ]
    if asked.max_moves is not None:
        with_fewer_moves([packing for _, packing in pools], asked.max_moves)
    found = Draft(tenants, alone.values())
    for group, packing in pools:
        found.add(packing, [t for t in group if t.name in alone], catalog)
        if not quick:
            found.unmoved.extend(unmoved(packing, asked))
    found.add_alone(t for t in tenants if t.home is None)
    return found


def _by_machine(tenants: list[Tenant]) -> list[list[Tenant]]:
    groups: dict[tuple[str, str, str, str], list[Tenant]] = defaultdict(list)
    for one in tenants:
        if one.home is not None:
            offer = one.home.offer
            groups[offer.provider, offer.instance_type, offer.region, offer.purchase].append(one)
    return [groups[key] for key in sorted(groups)]
