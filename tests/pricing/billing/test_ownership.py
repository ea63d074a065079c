"""Own hardware: the annuity and the break-even share, worked by hand."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.alternatives import CLOUD, Ownership, sensitivity
from pricing.errors import InputError

EXACT = Decimal("1e-12")


def a_machine(**changes: Any) -> Ownership:
    """A machine of round figures."""
    fields: dict[str, Any] = {
        "name": "ours", "gpu": "L4", "gpus": Decimal(8), "capex_usd": Decimal(100_000),
        "years": Decimal(4), "power_kw": Decimal(5), "usd_per_kwh": Decimal("0.10"),
    }  # fmt: skip
    return Ownership(**fields | changes)


def test_a_year_by_hand() -> None:
    """25,000 of capital, 5 x 1.2 x 8760 x 0.10 of power, 5 % upkeep, space and people."""
    own = a_machine(
        pue=Decimal("1.2"),
        maintenance_fraction=Decimal("0.05"),
        hosting_usd_per_year=Decimal(1000),
        staff_usd_per_year=Decimal(2000),
    )
    assert [(cost.what, cost.usd) for cost in own.costs] == [
        ("capital", Decimal(25_000)),
        ("maintenance", Decimal(5_000)),
        ("power", Decimal(5_256)),
        ("hosting", Decimal(1_000)),
        ("staff", Decimal(2_000)),
    ]
    assert own.annual_usd == 38_256


@pytest.mark.parametrize(
    ("interest", "years", "factor"),
    [("0", "4", "0.25"), ("0.10", "1", "1.1"), ("0.10", "2", "0.576190"), ("0.06", "4", "0.288591"),
     ("0.08", "10", "0.149029")],
)  # fmt: skip
def test_the_annuity_factor(interest: str, years: str, factor: str) -> None:
    """It is r / (1 - (1 + r)^-n): 1.1 for one year at 10 %, 1.21 / 2.1 for two; then tables."""
    own = a_machine(interest_fraction=Decimal(interest), years=Decimal(years))
    assert own.annuity_factor.quantize(Decimal("0.000001")) == Decimal(factor)


def test_the_residual_is_worth_less_later() -> None:
    """11,000 after one year at 10 % are 10,000 today: (100,000 - 10,000) x 1.1."""
    own = a_machine(
        years=Decimal(1), interest_fraction=Decimal("0.1"), residual_usd=Decimal(11_000)
    )
    assert abs(own.costs[0].usd - 99_000) < EXACT


def test_the_break_even_share() -> None:
    """29,380 a year against 8 x 8760 h at 0.5 a GPU-hour."""
    own = a_machine()
    assert own.annual_usd == 29_380
    assert own.break_even_fraction(Decimal("0.5")) == Decimal(29_380) / Decimal(35_040)
    assert abs(own.usd_per_gpu_hour(Decimal("0.5")) - Decimal(29_380) / 35_040) < EXACT


@given(st.decimals("0.01", "10", places=3), st.decimals("0", "0.3", places=3))
def test_at_the_break_even_share_both_cost_the_same(price: Decimal, interest: Decimal) -> None:
    """At the share u*, a year in the cloud costs what owning costs."""
    own = a_machine(interest_fraction=interest)
    share = own.break_even_fraction(price)
    assert abs(share * 8760 * 8 * price - own.annual_usd) < Decimal("1e-9") * own.annual_usd


def test_the_sensitivity_table() -> None:
    """The widest swing comes first, each figure moves as it must, and bounds of one's own hold."""
    bounds = {"usd_per_kwh": (Decimal("0.05"), Decimal("0.50"))}
    found = {swing.figure: swing for swing in sensitivity(a_machine(), Decimal("0.5"), bounds)}
    assert set(found) == {"capex_usd", "years", "power_kw", "usd_per_kwh", "pue", CLOUD}
    widths = [abs(swing.break_even_at_high - swing.break_even_at_low) for swing in found.values()]
    assert widths == sorted(widths, reverse=True)
    assert (found["usd_per_kwh"].low, found["usd_per_kwh"].high) == bounds["usd_per_kwh"]
    assert found["capex_usd"].break_even_at_low < found["capex_usd"].break_even_at_high
    assert found["years"].break_even_at_low > found["years"].break_even_at_high
    assert found[CLOUD].break_even_at_low > found[CLOUD].break_even_at_high
    assert found["pue"].low == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"capex_usd": Decimal(0)}, "capex_usd is 0; it must be above 0"),
        ({"pue": Decimal("0.9")}, "pue is 0.9; it must be at least 1"),
        ({"years": Decimal(31)}, "years is 31; it must be at most 30"),
        ({"interest_fraction": Decimal(6)}, "interest_fraction is 6; it must be at most 1"),
        ({"usd_per_kwh": Decimal("-0.1")}, "usd_per_kwh is -0.1"),
        ({"usd_per_kwh": Decimal("NaN")}, "usd_per_kwh is NaN"),
        ({"residual_usd": Decimal(200_000)}, "more than capex_usd"),
    ],
)
def test_impossible_figures_are_refused(changes: dict[str, Decimal], said: str) -> None:
    """A figure out of its range is named with its value."""
    with pytest.raises(InputError, match=said):
        a_machine(**changes)


def test_all_figures_that_are_wrong_are_named_at_once() -> None:
    """Two mistakes are two sentences."""
    with pytest.raises(InputError) as caught:
        a_machine(pue=Decimal(0), power_kw=Decimal(0))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("share", ["0", "1.01", "-1"])
def test_a_share_lies_between_nothing_and_all(share: str) -> None:
    """Hours that are not used cost nothing that could be divided by."""
    with pytest.raises(InputError, match="used_fraction"):
        a_machine().usd_per_gpu_hour(Decimal(share))
