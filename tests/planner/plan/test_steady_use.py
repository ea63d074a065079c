"""A machine that is used for most of a month hears what a term, or spot capacity, would cost."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.planner.factories import TODAY, a_profile, plan, running

SERVICE = {"kind": "inference_online", "requests_per_s": 5.0}
YEAR = replace(TODAY, purchase="reserved_1y", usd_per_hour=TODAY.usd_per_hour * 6 / 10)
THREE = replace(TODAY, purchase="reserved_3y", usd_per_hour=TODAY.usd_per_hour * 4 / 10)
SPOT = replace(TODAY, purchase="spot", usd_per_hour=TODAY.usd_per_hour / 2)


def said(job: dict[str, object], hours: float, **asked: object) -> str | None:
    """What the plan of such a job on today's machine says of its steady use."""
    profile = running(a_profile(hours=hours, **job))  # type: ignore[arg-type]
    (draft,) = plan(profile, offers=(TODAY, YEAR, THREE, SPOT), **asked).jobs
    return draft.steady


@pytest.mark.parametrize(
    ("job", "hours", "words"),
    [
        (SERVICE, 730.0, ("12 months", "from 438 h")),
        (SERVICE, 400.0, ("36 months", "from 292 h")),
        ({}, 730.0, ("12 months", "spot costs", "less than 100%")),
    ],
    ids=["a service", "too little for the shorter term", "work that spot may interrupt"],
)
def test_the_shortest_term_that_pays_is_named(
    job: dict[str, object], hours: float, words: tuple[str, ...]
) -> None:
    """0.6 of the price pays from 438 of 730 hours on, 0.4 from 292; a service is never spot."""
    text = said(job, hours) or ""
    assert [word for word in words if word not in text] == []
    assert ("spot" in text) is ("spot costs" in words)


def test_where_no_term_pays_none_is_named() -> None:
    """Few hours, and a machine that is paid for already, are no reason to commit."""
    assert said(SERVICE, 200.0) is None
    assert said(SERVICE, 730.0, owned=True) is None


def test_a_break_even_is_where_both_cost_the_same() -> None:
    """A term at exactly the hours' price is not cheaper, and is not named."""
    price = YEAR.usd_per_hour * 730 / TODAY.usd_per_hour
    assert price == Decimal(438)
    assert "12 months" not in (said(SERVICE, 438.0) or "")
