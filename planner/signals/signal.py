"""What a signal is: how it is read from a profile, what it is called, and its unit."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.profile.model import Profile

Value = float | str | None
FRACTION = "fraction"
"""The unit of a share, from 0 to 1; people read it in percent."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A number or a word that rules and actions look at.

    Attributes:
        read: returns it; None where it was not measured.
        name: what people call it.
        unit: FRACTION, or as it is written (`MiB/s`); None for words, counts and ratios.
    """

    read: Callable[[Profile], Value]
    name: str
    unit: str | None = None
