"""Times are those that the program itself knows."""

import json

import pytest

from tests.torch.conftest import Runner

# seconds an item, workers, seconds a step, workers persist
CASES = {
    "slow, in the process": ("0.002", "0", "0.005", "0"),
    "slow, two workers": ("0.004", "2", "0.005", "0"),
    "slow, two workers that stay": ("0.004", "2", "0.005", "1"),
    "healthy": ("0.0003", "0", "0.02", "0"),
}


@pytest.mark.parametrize("case", CASES)
def test_waits_are_true(program: Runner, case: str) -> None:
    """Data wait is within 5 % of what the program timed; so are evaluation and saving."""
    done = program("waits.py", *CASES[case])
    truth = json.loads(done.out)
    assert done.total("data_wait_s") == pytest.approx(truth["wait_s"], rel=0.05)
    assert done.total("evaluation_s") == pytest.approx(truth["evaluation_s"], rel=0.05)
    assert done.total("checkpoint_s") == pytest.approx(truth["save_s"], rel=0.1, abs=0.001)
    assert done.total("items") == truth["items"] == 600


def test_the_parts_add_up(program: Runner) -> None:
    """Steps and evaluations together are the time from the first batch to the last step."""
    done = program("waits.py", *CASES["slow, in the process"])
    truth = json.loads(done.out)
    whole_s = done.total("step_s") + done.total("evaluation_s")
    # The time in which the probe looks at the model after the first step is in neither.
    assert whole_s == pytest.approx(truth["all_s"], rel=0.05, abs=0.3)
    assert done.total("data_wait_s") < done.total("step_s")
