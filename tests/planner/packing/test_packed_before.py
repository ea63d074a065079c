"""What a search packed stays packed so while the fleet is looked at with some jobs elsewhere."""

from planner.choice.baseline import Baseline
from planner.choice.requirements import Requirements
from planner.fleet.fleet import Fleet
from planner.fleet.placements import Home, today
from planner.fleet.tenant import PackingCache
from planner.profile.model import Profile, Statistics
from tests.planner.factories import a_baseline, a_profile, running
from tests.planner.packing.at_home import consolidate

SHARES = ".53 .24 .14 .1 .26 .54 .28 .16 .45 .38 .22 .3 .18 .55 .17 .15 .46 .29"
"""Eighteen jobs for six GPUs; each order of first fit needs seven."""


def jobs() -> list[tuple[Profile, Baseline]]:
    """Jobs on one machine type, with such shares of a GPU."""
    made = [
        running(
            a_profile(
                {"util.kernel_time": float(share), "mem.used_gib": Statistics(max=0.1)},
                name=f"j{number:02}",
                kind="interactive",
            )
        )
        for number, share in enumerate(SHARES.split())
    ]
    return [(profile, a_baseline(profile)) for profile in made]


ASKED = Requirements(max_slowdown=100.0)
PAIRS = jobs()
HOMES: dict[str, Home | None] = {p.job.name: today(p, b) for p, b in PAIRS}


def quick(known: PackingCache | None, homes: dict[str, Home | None] = HOMES) -> Fleet:
    """The jobs packed without a search."""
    return consolidate(PAIRS, ASKED, homes, quick=True, packed_before=known)


def test_a_quick_look_at_the_same_jobs_takes_what_the_search_found() -> None:
    """Six GPUs are enough; a look without a search knows so, else first fit takes seven."""
    known = PackingCache()
    found = consolidate(PAIRS, ASKED, HOMES, packed_before=known)
    again = quick(known)
    assert (found.gpus_after, again.gpus_after, quick(None).gpus_after) == (6, 6, 7)
    assert again.placements == found.placements


def test_a_quick_look_is_not_what_is_known() -> None:
    """A search after a quick look still searches."""
    known = PackingCache()
    assert quick(known).gpus_after == 7
    assert consolidate(PAIRS, ASKED, HOMES, packed_before=known).gpus_after == 6


def test_a_job_on_another_machine_is_another_packing() -> None:
    """Who moves is not where the search had it, and those it leaves are packed anew."""
    known = PackingCache()
    consolidate(PAIRS, ASKED, HOMES, packed_before=known)
    left = quick(known, HOMES | {"j00": None})
    assert "j00" not in {name for place in left.placements for name in place.jobs}
    assert left.gpus_after == 7  # six or more for the others, and its own
