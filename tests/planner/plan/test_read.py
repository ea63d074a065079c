"""Plans are read back as values: those of earlier versions too, every problem with its place."""

import contextlib
import json
import subprocess
import sys
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucost.files import plan_file
from gpucost.files.plan_file import load_plan
from planner.models.document import digest, encode
from planner.plan.plan import Plan
from planner.plan.read import read_plan
from pricing.errors import InputError
from tests.planner.plan.kept import LAST, PLANS, as_values, kept, text_of

ONE = kept(f"{LAST}-visual-search")
FLEET = kept(f"{LAST}-fleet")


def problems(document: object) -> list[str]:
    """What reading a document refuses, the file's name and the advice taken off."""
    with pytest.raises(InputError) as caught:
        as_values(document)
    return [
        one.removeprefix("plan.json: ").partition("; write the plan")[0]
        for one in caught.value.problems
    ]


def changed(document: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """The document with another value at a place such as `jobs.0.name`; ... removes it."""
    copy: Any = deepcopy(document)
    at = copy
    *steps, last = (int(step) if step.isdigit() else step for step in place.split("."))
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return copy  # type: ignore[no-any-return]


def lost(before: Any, after: Any, place: str = "") -> list[str]:
    """Where a document says something that another does not."""
    if isinstance(before, dict):
        return [
            one
            for key, value in before.items()
            for one in (
                [place + key] if key not in after else lost(value, after[key], f"{place}{key}.")
            )
        ]
    if isinstance(before, list):
        pairs = zip(before, after, strict=True)
        return [one for old, new in pairs for one in lost(old, new, f"{place}[]")]
    return [] if before == after and type(before) is type(after) else [place.rstrip(".")]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_plans_of_earlier_versions_are_read_whole(path: Path) -> None:
    """Whatever an earlier version wrote is in the values, to the digit."""
    said = json.loads(text_of(path))
    gone = set(lost(said, encode(read_plan(text_of(path), path.name))))
    moved = {"jobs.[]first_step", "jobs.[]probe", "jobs.[]shapes"}  # in `answer`, by `compare`
    assert gone <= {"jobs.[]remedies.[]effect.basis", *moved}  # one early version had it


def test_there_are_plans_of_several_versions() -> None:
    """The kept plans are of five versions, the first one of the schema among them."""
    assert len({path.name.partition("-")[0] for path in PLANS}) == 5


@pytest.mark.parametrize("document", [ONE, FLEET], ids=["one", "fleet"])
def test_what_is_not_known_is_left_alone(document: dict[str, Any]) -> None:
    """Fields that a later version may add, in every object of the file, change nothing."""

    def add(value: Any) -> Any:
        if isinstance(value, dict):
            return {"later": [{"deep": 1}]} | {key: add(inner) for key, inner in value.items()}
        return [add(inner) for inner in value] if isinstance(value, list) else value

    more = add(document)
    for named in ("actions",):  # free names, not fields
        more[named] = document[named]
    for job, plain in zip(more["jobs"], document["jobs"], strict=True):
        job["remedies"] = plain["remedies"]
        for option, same in zip(job["options"], plain["options"], strict=True):
            option["settings"] = same["settings"]
    for place in more["fleet"]["placements"] if more["fleet"] else ():
        del place["relative_speed"]["later"]
    assert as_values(more) == as_values(document)


@pytest.mark.parametrize("document", [ONE, FLEET], ids=["one", "fleet"])
def test_a_plan_is_the_same_however_it_is_read(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text, as bytes, mapped, and by the standard library, which knows what JSON does not."""
    text, path = json.dumps(document, indent=1), tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8-sig")  # as some editors write it; for that library only
    found = [read_plan(text, "plan.json"), read_plan(text.encode(), "plan.json"), load_plan(path)]
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(plan_file, "_LARGE_BYTES", 0)
    found.append(load_plan(path))
    assert found == [found[0]] * 4
    assert {plan.id for plan in found} == {digest(document)}


def test_jobs_share_what_is_said_alike() -> None:
    """Two jobs of which the same is said of an offer have one value for it in memory."""
    jobs = as_values(FLEET).jobs
    first = {one: one for one in jobs[0].rejected}
    alike = [one for job in jobs[1:] for one in job.rejected if one in first]
    assert alike
    assert all(one is first[one] for one in alike)


OPTION = "jobs.0.options.1"
AT = "jobs[0].options[1]"
# What is changed, to what (... removes it), and what is said of it.
MISFITS: tuple[tuple[str, object, str], ...] = (
    ("jobs.0.name", ..., "jobs[0].name is missing"),
    ("jobs.0.name", 7, "jobs[0].name is 7, not text"),
    ("jobs", {}, "jobs is {}, not a list"),
    (f"{OPTION}.id", ..., f"{AT}.id is missing"),
    (f"{OPTION}.count", "2", f'{AT}.count is "2", not a whole number'),
    (f"{OPTION}.count", 1.5, f"{AT}.count is 1.5, not a whole number"),
    (f"{OPTION}.count", 0, f"{AT}: count is below 1"),
    (f"{OPTION}.cost.mid", 1.5, f"{AT}.cost.mid is 1.5, not an amount as text"),
    (f"{OPTION}.cost.mid", "1e99", f'{AT}.cost.mid is "1e99", not an amount as text'),
    (f"{OPTION}.cost.mid", "-1.00", f"{AT}.cost: low, mid and high are not in order"),
    (f"{OPTION}.hours.mid", float("nan"), f"{AT}.hours.mid is NaN, not a number"),
    (f"{OPTION}.hours.low", 1e9, f"{AT}.hours: no interval"),
    (f"{OPTION}.offer", None, f"{AT}.offer is null, not an object"),
    (f"{OPTION}.id", "o1", "jobs[0]: two options are called o1"),
    ("jobs.0.recommended", "o99", "jobs[0]: recommended is o99, which is not an option of"),
    (
        "jobs.0.findings.0.confidence",
        "sure",
        'jobs[0].findings[0].confidence is "sure", not one of likely, measured, possible',
    ),
    ("jobs.0.placement", 3, "job visual-search is on placement 3, which fleet lacks"),
    ("as_of", "soon", 'as_of is "soon", not a day such as 2026-11-22'),
    ("period", "week", 'period is "week", not one of month, run'),
    ("currency", "EUR", 'currency is "EUR", not one of USD'),
    ("roi", ..., "roi is missing"),
)


@pytest.mark.parametrize(("place", "value", "problem"), MISFITS)
def test_a_value_that_cannot_be_is_named(place: str, value: object, problem: str) -> None:
    """A missing field, a wrong kind, an impossible amount: the message begins with its place."""
    (found,) = problems(changed(ONE, place, value))
    assert found.startswith(problem)


def test_every_problem_is_listed() -> None:
    """Three mistakes in three corners of the file are three problems of one error."""
    wrong = changed(FLEET, "jobs.3.baseline.count", None)
    wrong = changed(wrong, "fleet.placements.0.cost", 12)
    wrong = changed(wrong, "assumptions.0", ...)
    wrong = changed(wrong, "assumptions.0", 5)
    assert problems(wrong) == [
        "jobs[3].baseline.count is null, not a whole number",
        "fleet.placements[0].cost is 12, not an amount as text",
        "assumptions[0] is 5, not text",
    ]


def test_a_flood_of_problems_is_cut() -> None:
    """A file with hundreds of mistakes is answered in ten lines and a count."""
    many = deepcopy(FLEET)
    for job in many["jobs"]:
        for option in job["options"]:
            option["why"] = None
    found = problems(many)
    assert len(found) == 11
    assert found[-1].startswith("and ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a plan"),
        ('{"schema": "gpucost.profile/v1"}', "not a plan"),
    ],
)
def test_a_file_that_is_not_a_plan_says_so(text: str, problem: str) -> None:
    """Other files are refused by what they are, with the command that makes a plan."""
    with pytest.raises(InputError, match=problem):
        read_plan(text, "plan.json")


def places(value: Any, place: str = "") -> list[str]:
    """Every place of a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        one
        for step, inner in steps
        for one in (
            f"{place}{step}",
            *(places(inner, f"{place}{step}.") if isinstance(inner, dict | list) else ()),
        )
    ]


PLACES = places(ONE)
ODD = st.one_of(
    st.just(...), st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(["o1", "1.00", "2026-11-22", "month", "-0", "Infinity"]),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=2), st.integers()),
)  # fmt: skip


@pytest.mark.slow
@given(place=st.sampled_from(PLACES), value=ODD)
def test_no_change_of_a_file_is_a_crash(place: str, value: object) -> None:
    """A plan with any value replaced or removed is read, or refused; nothing else is raised."""
    with contextlib.suppress(InputError):
        assert isinstance(as_values(changed(ONE, place, value)), Plan)


def test_money_is_exact_and_what_is_unknown_is_none() -> None:
    """Dollars are decimals as they stand in the file; null is None."""
    plan = as_values(changed(ONE, "jobs.0.findings.0.waste_usd", None))
    option = plan.jobs[0].options[0]
    assert isinstance(option.cost.mid, Decimal)
    assert str(option.cost.mid) == ONE["jobs"][0]["options"][0]["cost"]["mid"]
    assert plan.jobs[0].findings[0].waste_usd is None


@pytest.mark.slow
def test_only_who_reads_a_plan_back_pays_for_it() -> None:
    """Planning, and reading a plan that is whole, import nothing that tells problems."""
    code = (
        "import sys, gpucost.cli, planner.pipeline, planner.plan.making, "
        "planner.models.document, planner.plan.read, planner.plan.read; "
        "print(sorted({'jsonschema'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
