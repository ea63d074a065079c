"""One rule of age in plan, compare and quote: fresh to 14 days, then its days, old over 60."""

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import training

G4DN = "aws/g4dn.xlarge/us-east-1"  # read on 2026-07-20
UNDATED = "jarvis-labs/1x_L4_28V_124G"
AGES = [("2026-08-03", 14), ("2026-08-04", 15), ("2026-09-18", 60), ("2026-09-19", 61)]


@pytest.mark.parametrize(("day", "days"), AGES)
def test_a_quote_says_how_old_its_price_is(day: str, days: int, call: Call) -> None:
    """Nothing of a fresh one, its days of another, and a warning of an old one."""
    ran = call("quote", G4DN, "--duration", "1h", "--as-of", day)
    assert (f"{days} days old" in ran.out) == (days > 14)
    assert (f"the price is {days} days old" in ran.err) == (days > 60)


@pytest.mark.parametrize(("day", "days"), AGES)
def test_a_comparison_says_how_old_its_prices_are(day: str, days: int, call: Call) -> None:
    """Old ones are called so, with the warning of a quote."""
    ran = call("compare", G4DN, "aws/g4dn.2xlarge/us-east-1", "--as-of", day)
    assert f"{days} days ago" in ran.out
    assert (f"{days} days ago: old" in ran.out) == (days > 60)
    assert (f"the price is {days} days old" in ran.err) == (days > 60)
    side = call("compare", G4DN, "aws/g4dn.2xlarge/us-east-1", "--as-of", day, "-f", "json").json
    assert side["sides"][0]["price_age_days"] == days


@pytest.mark.parametrize(("day", "days"), AGES)
def test_a_plan_says_beside_the_bill_that_its_price_is_old(
    day: str, days: int, call: Call, write: Write
) -> None:
    """What is paid today rests on that price; without a number it is not dated."""
    ran = call("plan", write("train.json", training()), "--as-of", day)
    bill = next(line for line in ran.out.splitlines() if line.startswith("You pay"))
    assert (f"(price {days} d old)" in bill) == (days > 60)


def test_a_price_that_nobody_dated_has_no_age(call: Call) -> None:
    """Its year is no reading: no number of days is made of it, and it counts as old."""
    quoted = call("quote", UNDATED, "--duration", "1h")
    assert "price of 2026, without a day" in quoted.out
    assert "days old" not in quoted.out
    compared = call("compare", G4DN, UNDATED)
    assert "on no stated day: old" in compared.out
    sides = call("compare", G4DN, UNDATED, "-f", "json").json["sides"]
    assert sides[1]["price_age_days"] is None


def test_a_dry_run_says_that_a_launch_reads_an_old_price_anew(call: Call) -> None:
    """It is no refusal yet; the two notes do not contradict each other."""
    launch = ("provision", "--type", G4DN, "--ttl", "1h", "--dry-run", "--no-self-destroy")
    ran = call(*launch)
    assert ran.code == 0
    assert "a launch reads the live price first, and is refused where it cannot" in ran.out
    assert "would be refused" not in ran.err + ran.out
    allowed = call(*launch, "--allow-stale")
    assert "is refused where it cannot" not in allowed.out
    assert "days old (read 2026-07-20)" in allowed.out
