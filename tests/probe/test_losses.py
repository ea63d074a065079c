"""Which loss the hook keeps: one number on the CPU that no factor was put on."""

from types import SimpleNamespace
from typing import Any

import pytest

from telemetry.probe.path.gpucost_probe.hooks.optimizer import loss_of
from telemetry.probe.path.gpucost_probe.tally import Spent


def tensor(device: str = "cpu", numbers: int = 1, made_by: str = "MseLossBackward0") -> Any:
    """Return what looks like a tensor of 0.25."""
    return SimpleNamespace(
        device=SimpleNamespace(type=device),
        numel=lambda: numbers,
        grad_fn=type(made_by, (), {})(),
        detach=lambda: 0.25,
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (tensor(), 0.25),
        ([tensor()], 0.25),
        ((tensor(),), 0.25),
        ([tensor(), tensor()], None),
        (tensor("cuda"), None),
        (tensor(numbers=8), None),
        (tensor(made_by="MulBackward0"), None),
        (None, None),
        ("loss", None),
    ],
)
def test_what_is_kept(given: Any, kept: float | None) -> None:
    """Nothing that would wait for a device, is no single number, or may be scaled."""
    assert loss_of(given) == kept


def test_of_several_steps_the_last_counts() -> None:
    """A line of two steps has the loss of the second."""
    one, other = Spent(1), Spent(1)
    one.loss, other.loss = 1.0, 0.5
    one.add(other)
    assert one.loss == 0.5
