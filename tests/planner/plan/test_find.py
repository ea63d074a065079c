"""One look-up of options: JOB/ID, ID alone, `o0`, and what is said where nothing fits."""

from copy import deepcopy

import pytest

from planner.plan.read import every_option, find_option, find_recommended
from pricing.errors import InputError
from tests.planner.plan.kept import LAST, as_values, kept

ONE = as_values(kept(f"{LAST}-visual-search"))
FLEET = as_values(kept(f"{LAST}-fleet"))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("visual-search/o1", "visual-search/o1"),
        ("o1", "visual-search/o1"),
        ("visual-search/o0", "visual-search/o0"),
        ("o0", "visual-search/o0"),
        ("Visual-Search/O1", "visual-search/o1"),
        ("O0", "visual-search/o0"),
    ],
)
def test_an_option_is_found_by_its_name(name: str, found: str) -> None:
    """The job may be left out of a plan of one, capitals may differ, and o0 is today's machine."""
    assert find_option(ONE, name).name == found


def test_a_job_is_found_among_several() -> None:
    """JOB/ID names one of many jobs."""
    assert find_option(FLEET, "infer-ranking/o0").job.name == "infer-ranking"


@pytest.mark.parametrize("name", ["o99", "nobody/o1", "visual-search", "", "/", "visual-search/"])
def test_what_is_not_there_is_answered_with_what_is(name: str) -> None:
    """The message lists today's machine and every option by the name to type."""
    with pytest.raises(InputError, match="known: visual-search/o0, visual-search/o1") as caught:
        find_option(ONE, name)
    assert repr(name) in str(caught.value)


def test_an_id_alone_is_ambiguous_among_several_jobs() -> None:
    """Every job with that id is listed."""
    with pytest.raises(InputError, match="fits 4 options; say which: infer-captions/o1, "):
        find_option(FLEET, "o1")


def test_names_that_differ_in_capitals_only_are_kept_apart() -> None:
    """The exact name wins; where none is exact, both are listed."""
    document = kept(f"{LAST}-visual-search")
    document["jobs"].append(deepcopy(document["jobs"][0]) | {"name": "VISUAL-SEARCH"})
    two = as_values(document)
    assert find_option(two, "VISUAL-SEARCH/o1").job is two.jobs[1]
    with pytest.raises(InputError, match="say which: visual-search/o1, VISUAL-SEARCH/o1"):
        find_option(two, "Visual-search/o1")


def test_todays_machine_costs_what_is_paid() -> None:
    """`o0` has the offer, hours and bill of today, without an interval."""
    found, today = find_option(ONE, "o0"), ONE.jobs[0].baseline
    assert (found.offer, found.hours, found.count) == (today.offer, today.hours, today.count)
    assert found.cost is not None
    assert {found.cost.low, found.cost.mid, found.cost.high} == {today.cost.total}
    assert found.actions == ()


def test_without_a_price_today_there_is_no_cost() -> None:
    """An unknown bill is None, never 0."""
    document = kept(f"{LAST}-visual-search")
    document["jobs"][0]["baseline"]["offer"] = None
    document["jobs"][0]["baseline"]["cost"] |= {"total": None, "lines": []}
    found = find_option(as_values(document), "o0")
    assert found.offer is None
    assert found.cost is None


def test_the_recommended_option_of_the_only_job_needs_no_name() -> None:
    """One job: its recommendation; several: each is listed to choose from."""
    assert find_recommended(ONE).is_recommended
    with pytest.raises(InputError, match="the plan has 4 jobs; say --option JOB/ID, of: infer-"):
        find_recommended(FLEET)


def test_todays_machine_is_the_first_way() -> None:
    """Every way to run a job begins with o0, then the options in the plan's order."""
    job = ONE.jobs[0]
    assert [one.id for one in every_option(job)] == ["o0", *(option.id for option in job.options)]


def test_a_long_list_is_cut() -> None:
    """A plan of hundreds of options is answered with thirty and a count."""
    with pytest.raises(InputError, match=r"and \d+ more\.$"):
        find_option(FLEET, "nobody/o1")
