"""The judge of the replay: what is late and what overflows, on numbers one can add up."""

import numpy as np
import pytest

from research.replay import Recorded, Service, judge_services

PAIR = {("x", "x"): 0.5, ("x", "y"): 0.5, ("y", "x"): 0.25, ("y", "y"): 0.5}


@pytest.mark.parametrize(
    ("held", "use", "found"),
    [
        (5.0, 0.5, (0, 0, 4)),  # x takes 1.5, y 2.5 times as long; the targets are 2 and 3
        (5.5, 0.5, (1, 0, 4)),  # 11 GiB and two contexts of 0.6
        (5.0, 1.0, (0, 2, 4)),  # y takes 4 times as long
        (5.0, 0.0, (0, 0, 0)),
    ],
)
def test_pairs_delay_each_other_while_both_are_on(
    held: float, use: float, found: tuple[int, int, int]
) -> None:
    """A neighbour delays by what the pair was measured to, times the share of time it is on."""
    judged = np.array([True, False, False])
    pod = Recorded(use=np.full(3, use), held=np.full(3, held), is_known=judged)
    group = [Service("a", "x", "p", 2.1), Service("b", "y", "p", 3.0)]
    assert judge_services([group], {"p": pod}, PAIR) == found
