"""Student's t against the tables, and ratios that are in order."""

import pytest

from planner.proof.speed import MeasuredRatio, ratio_of_logs, t_quantile

# Probability, degrees of freedom, quantile: NIST/SEMATECH e-Handbook, 1.3.6.7.2.
TABLE = (
    (0.975, 2, 4.303),
    (0.975, 3, 3.182),
    (0.975, 5, 2.571),
    (0.975, 10, 2.228),
    (0.975, 30, 2.042),
    (0.995, 5, 4.032),
    (0.995, 20, 2.845),
    (0.9, 8, 1.397),
)


@pytest.mark.parametrize(("probability", "freedom", "quantile"), TABLE)
def test_the_quantiles_are_those_of_the_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    """Within 1 % of the printed table at 2 degrees of freedom, 0.3 % above."""
    bound = 0.01 if freedom == 2 else 0.003
    assert t_quantile(probability, freedom) == pytest.approx(quantile, rel=bound)


def test_too_few_degrees_are_refused() -> None:
    """One degree of freedom has no quantile here."""
    with pytest.raises(ValueError, match="at least 2"):
        t_quantile(0.975, 1)


@pytest.mark.parametrize("ends", [(1.1, 1.0, 1.2), (0.0, 1.0, 2.0), (1.0, float("inf"), 2.0)])
def test_a_ratio_is_in_order_and_finite(ends: tuple[float, float, float]) -> None:
    """Ends out of order, of nothing or without end are no interval."""
    low, mid, high = ends
    with pytest.raises(ValueError, match="no interval"):
        MeasuredRatio(low=low, mid=mid, high=high, basis="")


def test_faster_and_slower_need_both_ends() -> None:
    """An interval that holds 1 is neither faster nor slower."""
    assert not ratio_of_logs(0.05, 0.06, "").is_faster
    assert ratio_of_logs(0.05, 0.04, "").is_faster
    assert ratio_of_logs(-0.05, 0.04, "").is_slower
