"""`gpucost quote own`: hardware of one's own beside the cloud."""

from pathlib import Path

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF

EIGHT = "digitalocean/gpu-h100x8-640gb"
OWN = """
[own_hardware]
name = "rack 1"
gpu = "H100"
gpus = 8
capex_usd = 250000
years = 4
power_kw = [6, 7.5, 9]
usd_per_kwh = 0.12
"""


def test_own_hardware_beside_the_cloud(call: Call) -> None:
    """62,500 of capital and 7.5 x 8760 x 0.12 of power, against 8 x 4.41 an hour."""
    Path("gpucost.toml").write_text(OWN, encoding="utf-8")
    own, cloud = call(
        "quote", "own", EIGHT, "--duration", "1h", "--as-of", AS_OF, "-f", "json"
    ).json
    assert (own["schema"], own["gpu"], own["annual_usd"]) == (
        "gpucost.ownership/v1",
        "H100-SXM-80GB",
        "70384.00",
    )
    assert cloud["total"] == "35.28"
    (against,) = own["against"]
    assert against["offer"] == EIGHT
    assert against["break_even_fraction"] == round(70384 / 8760 / 35.28, 4)
    swings = {swing["figure"]: (swing["low"], swing["high"]) for swing in against["sensitivity"]}
    assert swings["power_kw"] == ("6", "9")
    assert swings["capex_usd"] == ("200000", "300000")
    alone = call("quote", "own")
    assert alone.code == 0, alone.err
    assert "70,384.00" in alone.out
    table = call("quote", "own", EIGHT, "--monthly", "--as-of", AS_OF)
    assert "owning pays off from 22.8 % utilization" in " ".join(table.out.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has a section [own_hardware]"),
        (OWN.replace("years = 4", ""), "years is missing"),
        (OWN + "colour = 1\n", "colour is not one of its figures"),
        (OWN.replace("= 0.12", '= "cheap"'), "'cheap' is not a number"),
        (OWN.replace("= 0.12", "= true"), "True is not a number"),
        (OWN.replace("= 0.12", "= nan"), "nan is not a finite number"),
        (OWN.replace("[6, 7.5, 9]", "[9, 7.5, 6]"), "does not rise"),
        (OWN.replace("[6, 7.5, 9]", "[6, 9]"), "[low, mid, high]"),
        (OWN.replace('"H100"', '"H1000"'), "H100"),
        (OWN.replace("250000", "-1"), "capex_usd is -1"),
    ],
)
def test_wrong_figures_of_ones_own_are_refused(text: str, told: str, call: Call) -> None:
    """Each mistake in the section exits 2 and names the figure."""
    Path("gpucost.toml").write_text(text, encoding="utf-8")
    ran = call("quote", "own")
    assert ran.code == 2, ran.out
    assert told in ran.err
    assert ran.out == ""
