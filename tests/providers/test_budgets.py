"""Budgets of a calendar month: what counts against them, in which month, and what is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import InputError
from pricing.money import sum_exactly
from providers.budgets import (
    Spending,
    budget_uses,
    months,
    names_of,
    over_budget,
    read_budgets,
    run_spending,
)
from providers.interface import Deployment
from tests.providers.launches import a_spec, an_offer

NOON = datetime(2026, 12, 10, 12, tzinfo=UTC)
VISION = read_budgets({"Vision": {"usd-per-month": 100, "owners": ["Ada", "ben"]}}, "b.toml")
HOUR = timedelta(hours=1)


def _spent(usd: str, begins: datetime, hours: float, *names: str) -> Spending:
    return Spending(
        names=names_of(*(names or ("ada--5hq2mzt8",))),
        begins=begins,
        ends=begins + hours * HOUR,
        usd=Decimal(usd),
    )


@pytest.mark.parametrize(
    ("used", "launch", "over"),
    [
        (["60"], "40", None),  # 60 + 40 is the limit, not over it
        (["60"], "40.01", "0.01"),
        (["60", "50"], "1", "11.00"),  # 110 + 1 - 100
        ([], "100.01", "0.01"),
    ],
)
def test_a_launch_over_the_month_is_refused_with_its_dollars(
    used: list[str], launch: str, over: str | None
) -> None:
    """What is spent and promised plus the launch, to the cent; the limit itself is allowed."""
    spent = [_spent(usd, NOON - 5 * HOUR, 2) for usd in used]
    refusals = [*over_budget(VISION, spent, _spent(launch, NOON, 8))]
    assert [f"${over} too much" in text for text in refusals] == ([True] if over else [])


def test_a_launch_over_midnight_of_the_first_counts_in_both_months() -> None:
    """8 h at 20 $ from 18:00: 6 h are 120 $ of December, 2 h are 40 $ of January."""
    eve = datetime(2026, 12, 31, 18, tzinfo=UTC)
    (refusal,) = over_budget(VISION, [], _spent("160", eve, 8))
    assert "2026-12" in refusal
    assert "$120.00 in that month: $20.00 too much" in refusal
    assert "2027-01" in next(
        iter(over_budget(VISION, [_spent("61", eve + 7 * HOUR, 1)], _spent("100", eve, 10)))
    )  # 40 + 61 > 100


@pytest.mark.parametrize(
    ("name", "counts"),
    [("ada", True), ("ADA", True), ("ben--12345678", True), ("vision", True), ("adam", False)],
)
def test_a_budget_holds_its_members_alone(name: str, *, counts: bool) -> None:
    """By readable name, in any case; another name that begins alike is another owner."""
    refused = bool([*over_budget(VISION, [], _spent("101", NOON, 1, name))])
    assert refused is counts


def test_an_open_run_counts_to_its_deadline_and_an_ended_one_with_its_bill() -> None:
    """Promised 70.56 $ (2 h of 35.28); nothing was billed of a run that ended without machines."""
    spec = a_spec(an_offer("digitalocean"), ttl_s=Decimal(7200))
    run = Deployment(
        marks=spec.marks,
        provider="digitalocean",
        offer=spec.places[0].offer,
        region="nyc2",
        count=1,
        state="ready",
        started_at=spec.marks.deadline - 2 * HOUR,
        ended_at=None,
        predicted_usd=Decimal("70.56"),
    )
    assert run_spending(run, run.started_at).usd == Decimal("70.56")
    assert run_spending(run, run.started_at).ends == spec.marks.deadline
    ended = replace(run, state="ended", ended_at=run.started_at + HOUR)
    assert run_spending(ended, run.started_at + 9 * HOUR).usd == 0


def test_what_runs_is_told_until_now_and_by_the_end_of_the_month() -> None:
    """2 $/h since 30 November noon: 228 h of December are 456 $, 516 h to come 1,032 $ more."""
    begun = datetime(2026, 11, 30, 12, tzinfo=UTC)
    seen = [_spent("480", begun, 240), _spent("1488", NOON, 744)]
    (use,) = budget_uses(VISION, seen, NOON)
    assert (use.month, use.limit_usd) == ("2026-12", 100)
    assert (use.spent_usd, use.month_end_usd) == (Decimal(456), Decimal(1488))
    (use,) = budget_uses(VISION, [_spent("10", NOON - HOUR, 7)], NOON)  # 10/7 of a dollar
    assert f"{use.spent_usd} {use.month_end_usd}" == "1.43 10.00"  # cents, as on a bill


@given(
    days=st.integers(-1000, 1000),
    hours=st.integers(1, 5000),
    usd=st.decimals("0.01", "99999", places=2),
)
def test_the_months_hold_every_dollar_once(days: int, hours: int, usd: Decimal) -> None:
    """The parts of all months are the whole."""
    spending = _spent(str(usd), NOON + timedelta(days=days), hours)
    parts = [spending.within(*month) for month in months(spending.begins, spending.ends)]
    assert abs(sum_exactly(parts) - usd) < Decimal("1e-15")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"vision": 5}, "a budget is a table"),
        ({"vision": {}}, "dollars above 0"),
        ({"vision": {"usd-per-month": 0}}, "dollars above 0"),
        ({"vision": {"usd-per-month": float("inf")}}, "dollars above 0"),
        ({"vision": {"usd-per-month": True}}, "dollars above 0"),
        ({"vision": {"usd-per-month": 5, "owners": "ada"}}, "list of names"),
        ({"vision": {"usd-per-month": 5, "members": ["ada"]}}, "members is not known"),
    ],
)
def test_what_is_wrong_in_a_budget_is_named(document: dict[str, object], problem: str) -> None:
    """With the file and the table; nothing is ignored in a file that people write."""
    with pytest.raises(InputError) as error:
        read_budgets(document, "b.toml")
    assert problem in error.value.problems[0]
    assert "b.toml: " in error.value.problems[0]
