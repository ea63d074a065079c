"""Calls that do not depend on each other; the front door may make them in several processes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class AtOnce(Protocol):
    """Makes calls, wherever it does so; what they return must be worth handing over."""

    def __call__(self, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yield what each call returns, in their order."""


def in_turn(calls: Sequence[Callable[[], T]]) -> Iterator[T]:
    """Yield what each call returns, made here when it is asked for."""
    return (call() for call in calls)
