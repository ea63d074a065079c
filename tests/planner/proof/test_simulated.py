"""Experiments in simulated worlds: rarely wrong, mostly able, and as sure as they say."""

from research.experiments import COVERAGE, GAIN, LEAST_POWER, MOST_FALSE, OURS, simulate


def test_simulated_worlds_keep_the_bars() -> None:
    """Of 500 worlds: false "proved", power and coverage as promised, within the draw's error.

    `make experiments` draws 10,000 and holds the bars themselves; two standard errors of
    1,000 draws are 1.4 %.
    """
    worlds, slack = 500, 0.014
    none, some = (simulate(worlds, gain, (OURS,))[OURS] for gain in (1.0, GAIN))
    assert none.proved / worlds <= MOST_FALSE
    assert some.proved / worlds >= LEAST_POWER
    covered = (none.covered + some.covered) / (2 * worlds)
    assert COVERAGE[0] - slack <= covered <= COVERAGE[1] + slack
