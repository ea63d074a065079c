"""What `verify` says of an interval that holds no change."""

import re

from planner.proof.verify import Assumptions, verify
from pricing.catalog.catalog import Catalog
from tests.planner.proof.runs import run, series


def catalog() -> Catalog:
    """No prices: the speed alone is compared."""
    return Catalog(as_of=None, rows=())  # type: ignore[arg-type] # nothing is priced


def test_a_drift_that_widens_the_interval_is_the_reason() -> None:
    """Steps of the run after grow by half within it: more of the same run would not narrow it."""
    steady, drifting = series(0.2), (*series(0.16, 200), *series(0.24, 200, seed=3))
    verdicts = [
        verify(run(steps=steady), run(steps=after), Assumptions(), catalog).verification
        for after in (series(0.2, seed=2), drifting)
    ]
    assert [v.verdict for v in verdicts] == ["not-proved", "not-proved"]
    assert verdicts[0].why.endswith("holds no change, too: run longer.")
    assert re.search(r"a drift within a run \(after \+(4[5-9]|5[0-5])%", verdicts[1].why)
    assert verdicts[1].why.endswith("widens it. Run again once it has settled.")
