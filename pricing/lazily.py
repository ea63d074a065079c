"""Values of frozen dataclasses that are worked out when they are first asked for."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):  # noqa: N801 - a decorator, named as `property` is
    """`functools.cached_property` without the lock that Python 3.11 takes at each first use.

    Candidates have a few such values each and are made by the hundred for every job. Two threads
    may work out the same value, which is the same.
    """

    def __init__(self, work_out: Callable[[Any], _Value]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, holder: None, owner: type) -> Self: ...

    @overload
    def __get__(self, holder: object, owner: type) -> _Value: ...

    def __get__(self, holder: object, owner: type) -> _Value | Self:
        """Return the value; from now on the holder's own dictionary answers."""
        if holder is None:
            return self
        value = holder.__dict__[self._name] = self._work_out(holder)
        return value
