"""budget.toml: held before every launch and every later deadline, and shown by `scan`."""

from pathlib import Path

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.launching import OCEAN, Ready
from tests.gpucost.machines.accounts import BUSY, run_droplets
from tests.providers.fakes.digitalocean import DigitalOcean

pytestmark = pytest.mark.slow
BUDGET = Path("budget.toml")


def test_a_launch_over_a_budget_makes_nothing(
    ocean: DigitalOcean, login: Ready, call: Call
) -> None:
    """Exit 4 before anything is made; a dry run says it and exits 0; without --yes, too."""
    BUDGET.write_text("[vision]\nusd-per-month = 1\nowners = ['ada']\n")
    dry = call(*OCEAN, "--ttl", "2h", "--dry-run")
    assert dry.code == 0
    assert "warning: a launch would be refused: budget vision" in dry.err
    ran = call(*OCEAN, "--ttl", "2h")
    assert ran.code == 4, ran.err
    assert "of $1.00 is spent or promised" in ran.err
    assert not login.delivered
    assert not ocean.estate.things["droplets"]


def test_what_runs_counts_until_its_deadline(ocean: DigitalOcean, login: Ready, call: Call) -> None:
    """A second launch and a later deadline find the first one's dollars; others' budgets do not."""
    assert ocean
    assert login
    BUDGET.write_text("[ada]\nusd-per-month = 1000\n[ben]\nusd-per-month = 1\n")
    first = call(*OCEAN, "--ttl", "2h", "-f", "json")  # 2 h and 50 s of 35.28 USD/h: 71.05
    assert first.code == 0, first.err
    BUDGET.write_text("[ada]\nusd-per-month = 30\n")  # in whichever month most of it falls
    again = call(*OCEAN, "--ttl", "2h")
    assert (again.code, "budget ada" in again.err) == (4, True)
    later = call("extend", first.json["run"], "24h", "--yes")
    assert (later.code, "budget ada" in later.err) == (4, True)
    BUDGET.write_text("[ada]\nusd-per-month = 9999\n")
    assert call("extend", first.json["run"], "1h", "--yes").code == 0


def test_a_wrong_budget_stops_a_launch(ocean: DigitalOcean, login: Ready, call: Call) -> None:
    """A file that cannot be understood is no budget: exit 2, and nothing is made."""
    BUDGET.write_text("[vision]\nusd = 5\n")
    ran = call(*OCEAN, "--ttl", "2h")
    assert ran.code == 2, ran.err
    assert "usd is not known here" in ran.err
    assert not login.delivered
    assert not ocean.estate.things["droplets"]


def test_scan_says_what_is_left_and_exits_7(ocean: DigitalOcean, call: Call) -> None:
    """By tag of team or owner; a launch of ours counts once though the account lists it, too."""
    run_droplets(ocean, 2, BUSY, tags=["team:vision"])
    BUDGET.write_text("[vision]\nusd-per-month = 90000\n")
    ran = call("scan", "-f", "json")
    assert ran.code == 0, ran.err
    (use,) = ran.json["budgets"]
    assert use["limit_usd"] == "90000"
    # two droplets at 4.41 USD/h: never more than 31 days of 8.82 USD/h, and something by its end
    assert 0 < float(use["month_end_usd"]) <= 31 * 24 * 8.82
    BUDGET.write_text("[vision]\nusd-per-month = 0.01\n")
    assert "Budget vision" in call("scan").out
    over = call("scan", "-f", "json")  # what runs costs more with every second
    (use,) = over.json["budgets"]
    assert over.code == (7 if float(use["spent_usd"]) > 0.01 else 0)
    launched = call(*OCEAN, "--ttl", "2h")
    assert launched.code == 0, launched.err
    BUDGET.write_text("[ada]\nusd-per-month = 90000\n")
    (own,) = call("scan", "-f", "json").json["budgets"]
    assert float(own["month_end_usd"]) <= 7251 / 3600 * 35.28 + 0.01
