"""Every job has a name of its own, whatever the order of the inputs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.profile.source import name_apart
from tests.planner.factories import a_profile


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (["b", "a"], ["a", "b"]),
        (["a", "a"], ["a", "a-2"]),
        (["a", "a-2", "a"], ["a", "a-2", "a-3"]),
        ([], []),
    ],
)
def test_equal_names_are_numbered(names: list[str], apart: list[str]) -> None:
    """The second of a name is `name-2`, past the names that are taken."""
    profiles = [a_profile(name=name, hours=float(i + 1)) for i, name in enumerate(names)]
    assert sorted(p.job.name for p in name_apart(profiles)) == apart


NAMES = st.lists(
    st.tuples(st.sampled_from(("a", "a-2", "a-2-2", "b")), st.integers(1, 3)), max_size=6
)


@given(NAMES, st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_does_not_show(jobs: list[tuple[str, int]], random: Any) -> None:
    """Any order gives the same names to the same jobs, and no name twice."""
    profiles = [a_profile(name=name, hours=float(hours)) for name, hours in jobs]
    shuffled = list(profiles)
    random.shuffle(shuffled)
    named = name_apart(profiles)
    assert named == name_apart(shuffled)
    assert len({p.job.name for p in named}) == len(profiles)
