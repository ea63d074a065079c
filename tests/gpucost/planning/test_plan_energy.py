"""`gpucost plan --grid-g-per-kwh --pue --host-power-share`: energy beside the dollars."""

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, training

POWER = ("gpus", 0, "metrics", "power.board_w")


def test_measured_power_becomes_energy_and_carbon(call: Call, write: Write) -> None:
    """50 W for 730 h are 36.5 kWh; x 1.2 / 0.8 of the site are 54.75, and 21.9 kg at 400 g/kWh."""
    write("profile.json", changed(training(), POWER, {"mean": 50.0}))
    site = ("--grid-g-per-kwh", "400", "--pue", "1.2", "--host-power-share", "0.2")
    asked = ("plan", "--as-of", AS_OF, "--report", "report.md", "-q", "-f", "json")
    (job,) = call(*asked, *site).json["jobs"]
    today = job["baseline"]["energy"]
    assert (today["kwh"]["mid"], today["kgco2e"]["mid"]) == (54.75, 21.9)
    assert "PUE 1.2" in today["kwh"]["basis"]
    (job,) = call(*asked).json["jobs"]
    assert (job["baseline"]["energy"]["kwh"]["mid"], job["baseline"]["energy"]["kgco2e"]) == (
        36.5,
        None,
    )


def test_the_report_has_a_row_only_where_energy_is_known(call: Call, write: Write) -> None:
    """Known energy stands in the table with what it covers; unknown energy has no row at all."""
    write("profile.json", changed(training(), POWER, {"mean": 50.0}))
    report = call("plan", "--as-of", AS_OF, "-f", "md", "-q").out
    assert "| energy a month | 36.5 kWh |" in report
    assert "energy today: measured board power; GPU boards alone" in report
    write("profile.json", training())
    assert "energy" not in call("plan", "--as-of", AS_OF, "-f", "md", "-q").out


@pytest.mark.parametrize(
    "given",
    [
        ("--pue", "0.9"),
        ("--host-power-share", "1"),
        ("--grid-g-per-kwh", "-1"),
        ("--pue", "nan"),
    ],
)
def test_a_site_that_cannot_be_is_refused(given: tuple[str, str], call: Call, write: Write) -> None:
    """A value outside its range exits 2 and names the option."""
    write("profile.json", training())
    ran = call("plan", *given)
    assert (ran.code, ran.out) == (2, "")
    assert given[0] in ran.err
