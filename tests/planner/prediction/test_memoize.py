"""What is remembered of a law, for all jobs that ask the same, changes nothing."""

from planner.models.coefficients import coefficients, fitted_as, memoize


def test_what_a_law_answered_is_kept_but_for_other_coefficients() -> None:
    """A law is asked once; within an evaluation it is asked anew, and nothing of that stays."""
    asked = []

    @memoize(8)
    def law(times: float) -> float:
        asked.append(times)
        return times * float(coefficients("scale")["probe_factor"])

    shipped = law(2.0)
    assert law(2.0) == shipped
    with fitted_as(scale={"probe_factor": 7.0}):
        assert law(2.0) == law(2.0) == 14.0
    assert law(2.0) == shipped
    assert asked == [2.0] * 3
