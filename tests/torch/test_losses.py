"""Losses are recorded digit for digit, where that costs nothing and means the loss."""

from tests.torch.conftest import Runner


def test_losses_are_the_programs_own(program: Runner) -> None:
    """Each line of steps has the loss of its last step, exactly."""
    done = program("losses.py")
    printed = [float(line) for line in done.out.split()]
    lines = done.of("step")
    assert lines
    assert all(line["loss"] == printed[line["step"] - 1] for line in lines)


def test_a_scaled_loss_is_not_taken_for_one(program: Runner) -> None:
    """What a factor was put on, as for half precision, is left out."""
    assert {line["loss"] for line in program("losses.py", "scaled").of("step")} == {None}
