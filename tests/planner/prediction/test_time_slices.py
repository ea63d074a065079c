"""Two jobs that take turns on one GPU."""

import pytest

from planner.prediction.sharing import predict_sharing, shared_speed
from planner.profile.model import Profile, Step
from tests.planner.factories import a_profile


def job(name: str, step_s: float | None, busy: float = 1.0, gpu: str = "K80") -> Profile:
    """A training job that was measured alone on a K80."""
    step = Step(mean_s=step_s) if step_s else None
    return a_profile({"util.kernel_time": busy}, name=name, gpu=gpu, step=step)


def test_short_steps_beside_long_ones_suffer_more() -> None:
    """A job of 0.1 s a step beside one of 1 s keeps less of its speed, and both lose."""
    short, long = predict_sharing([job("short", 0.1), job("long", 1.0)], "time-slicing")
    assert short.low < short.mid < long.mid < 1.0
    assert "fitted on pairs on this GPU" in short.basis


@pytest.mark.parametrize(
    "pair",
    [
        [job("a", 0.1), job("b", None)],
        [job("a", 0.1), job("b", 60.0)],
        [job("a", 0.1), job("b", 0.1, busy=0.3)],
        [job("a", 0.1), job("b", 0.1), job("c", 0.1)],
        [job("a", 0.1, gpu="V100"), job("b", 0.1, gpu="V100")],
        [job("a", 0.1), job("b", 0.1, gpu="V100")],
    ],
    ids=["no step", "steps never seen", "half idle", "three", "another GPU", "two GPUs"],
)
def test_elsewhere_the_rule_of_shares_holds(pair: list[Profile]) -> None:
    """What no law was fitted for is predicted by shares."""
    assert predict_sharing(pair, "time-slicing") == shared_speed(pair, in_turns=True)
