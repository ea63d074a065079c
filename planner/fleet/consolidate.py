"""How few GPUs are enough: several jobs of one machine type share its GPU (MPS, or MIG slices).

Jobs share a GPU only when memory, compute share, slowdown and latency all hold for everyone there;
who does not is told why. A GPU freed in a machine of several saves nothing by itself: what counts
is the machines that are left (planner/fleet/machines_left.py).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from planner.baseline.baseline import Baseline
from planner.baseline.requirements import Requirements
from planner.fleet.draft import Draft
from planner.fleet.fleet import Fleet
from planner.fleet.home import Home, today
from planner.fleet.tenant import PackedBefore, Tenant, why_alone
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog


def consolidate(  # noqa: PLR0913 - what a packing is made of
    jobs: Iterable[tuple[Profile, Baseline]],
    asked: Requirements,
    homes: Mapping[str, Home | None] | None = None,
    catalog: Catalog | None = None,
    *,
    quick: bool = False,
    known: PackedBefore | None = None,
) -> Fleet:
    """Return the fleet on fewer GPUs; without homes each job is packed where it runs today.

    The other arguments are those of `drafts`.
    """
    pairs = list(jobs)
    at = {p.job.name: today(p, b) for p, b in pairs} if homes is None else homes
    (found,) = drafts(pairs, asked, [at], catalog, quick=quick, known=known or PackedBefore())
    return found.fleet()


def drafts(  # noqa: PLR0913 - what a packing is made of
    jobs: Sequence[tuple[Profile, Baseline]],
    asked: Requirements,
    homes: Sequence[Mapping[str, Home | None]],
    catalog: Catalog | None,
    *,
    quick: bool,
    known: PackedBefore,
    proves: bool = True,
) -> list[Draft]:
    """Return the fleet on fewer GPUs, packed and with its bill, once for each choice of homes.

    Args:
        jobs: what was measured, and what runs it today.
        asked: the limits of sharing.
        homes: the machine on whose GPU each job would share, by its name; several such choices.
        catalog: where smaller machines are looked for; without it machines stay as they are.
        quick: first fit, without a search, a bound, or why who stays cannot join others.
        known: what was searched for before: the same jobs of a machine type are packed as then.
        proves: whether a good bound is worth work that finds no better packing.
    """
    from planner.fleet.packing import unmoved, with_fewer_moves  # noqa: PLC0415 - numpy comes in with it

    each = [
        _Pools([known.tenant(p, b, at[p.job.name], asked, quick=quick) for p, b in jobs], asked)
        for at in homes
    ]
    pools = [pool for one in each for pool in one.sharing]
    packings = iter(known.packed(pools, asked, quick=quick, proves=proves))
    found = []
    for one in each:
        packed = list(islice(packings, len(one.groups)))
        if asked.max_moves is not None:
            with_fewer_moves(packed, asked.max_moves)
        made = Draft(one.tenants, one.alone.values())
        for group, packing in zip(one.groups, packed, strict=True):
            made.add(packing, [t for t in group if t.name in one.alone], catalog)
            if not quick:
                made.unmoved.extend(unmoved(packing, asked))
        made.add_alone(t for t in one.tenants if t.home is None)
        found.append(made)
    return found


class _Pools:
    """The jobs of a fleet by machine type, and who takes no part in packing."""

    def __init__(self, tenants: list[Tenant], asked: Requirements) -> None:
        self.tenants = tenants
        self.alone = {t.name: reason for t in tenants if (reason := why_alone(t, asked))}
        self.groups = _by_machine(tenants)
        self.sharing = [[t for t in group if t.name not in self.alone] for group in self.groups]


def _by_machine(tenants: list[Tenant]) -> list[list[Tenant]]:
    groups: dict[tuple[str, str, str, str], list[Tenant]] = defaultdict(list)
    for one in tenants:
        if one.home is not None:
            offer = one.home.offer
            groups[offer.provider, offer.instance_type, offer.region, offer.purchase].append(one)
    return [groups[key] for key in sorted(groups)]
