"""Whatever goes wrong, nothing of ours is left and nothing else is touched: a few trials."""

import pytest

from tests.chaos.programme import faults_of, some
from tests.chaos.trials import LAUNCHES, Count, stage
from tests.chaos.worlds import WORLDS


@pytest.mark.parametrize("kind", WORLDS)
def test_nothing_is_left_and_nothing_else_is_touched(kind: str) -> None:
    """Killed, cut off, starved: after down and reap 0 of ours, all of others, a right ledger."""
    total = Count()
    with stage(kind) as here:
        for _, count in some(here):
            total.add(count)
    assert total.told == []
    assert total.is_clean
    assert total.kills >= 3
    assert total.billed > 0


def test_a_dirty_trial_is_seen() -> None:
    """Anything left, touched or wrongly billed makes the whole programme fail."""
    assert Count(trials=9).is_clean
    for name in ("machines", "side_resources", "foreign", "ledger", "refused"):
        assert not Count(**{name: 1}).is_clean


def test_every_provider_has_its_troubles() -> None:
    """Each world has launches, and faults of each kind that the programme names."""
    assert set(LAUNCHES) == set(WORLDS)
    kinds = [set(faults_of(kind)) for kind in WORLDS]
    assert all(one == kinds[0] and len(one) == 5 for one in kinds)
