"""Whatever goes wrong, nothing of ours is left, nothing else is touched, nothing untrue is said."""

import pytest

from tests.chaos.accounts import ACCOUNTS
from tests.chaos.programme import CASES, some
from tests.chaos.trials import LAUNCHES, stage
from tests.chaos.troubles import faults_of
from tests.chaos.truth import BAD, Count


@pytest.mark.parametrize("kind", ACCOUNTS)
def test_nothing_is_left_and_nothing_untrue_is_said(kind: str) -> None:
    """Killed, cut off, starved, in worlds that lag: all counts of the programme are 0."""
    total = Count()
    with stage(kind) as here:
        for job in some(kind).values():
            total.add(job(here))
    assert total.told == []
    assert total.is_clean
    assert total.kills >= 10
    assert total.billed > 0


def test_a_dirty_trial_is_seen() -> None:
    """Anything left, late, touched, dear, wrongly billed or untrue makes the programme fail."""
    assert Count(trials=9, may_stay=1).is_clean
    for name in BAD:
        assert not Count(**{name: 1}).is_clean


def test_every_provider_has_its_troubles() -> None:
    """Each account has launches, faults of each kind, and most of the worlds."""
    assert set(LAUNCHES) == set(ACCOUNTS)
    kinds = [set(faults_of(kind)) for kind in ACCOUNTS]
    assert all(one == kinds[0] and len(one) == 5 for one in kinds)
    for kind in ACCOUNTS:
        assert sum(kind in case.kinds for case in CASES.values()) >= 30
