"""Builds frozen dataclasses many at a time, and takes them apart.

Their own `__init__` sets each field around its frozen `__setattr__`, one call a field. Here the
fields of a twin that is not frozen are set, which is several times as fast, and the twin becomes
one of them, which it has the layout of. `__post_init__` runs as ever, and sets what `__init__` does
not take.
"""

from collections.abc import Callable
from dataclasses import Field, field, fields, make_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

_Kind = TypeVar("_Kind")
_Given = ParamSpec("_Given")


def builder(kind: type[_Kind]) -> Callable[..., _Kind]:
    """Return a function that makes a `kind` of all values that its `__init__` takes, by position.

    Args:
        kind: a dataclass.
    """
    twins = [(one.name, Any, field(init=one.init)) for one in _fields(kind)]
    made: Callable[..., _Kind] = _twin(kind, twins, _check_of(kind), by_name_only=False)
    return made


def by_name(kind: Callable[_Given, _Kind]) -> Callable[_Given, _Kind]:
    """Return a function that makes a `kind` as its own constructor does.

    Args:
        kind: a dataclass whose fields are given by name.
    """
    twins = [
        (
            one.name,
            Any,
            field(default=one.default, default_factory=one.default_factory, init=one.init),
        )
        for one in _fields(kind)
    ]
    made: Callable[_Given, _Kind] = _twin(kind, twins, _check_of(kind), by_name_only=True)
    return made


@cache
def values_of(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what tells the values of all fields of a `kind`, as `remade` takes them.

    None where it is not a dataclass with slots, or has a way of its own to be copied.
    """
    copied = vars(kind).get("__getstate__")  # as dataclasses makes it: a list of all values
    if getattr(copied, "__module__", None) != "dataclasses":
        return None
    names = [one.name for one in _fields(kind)]
    if len(vars(kind)["__slots__"]) < len(names):  # others are inherited, and laid out apart
        return None
    return attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)


def remade(kind: Any, *values: object) -> object:  # noqa: ANN401 - any dataclass
    """Return a `kind` of the values of all its fields, none of which is looked at again."""
    made: object = _remaker(kind)(*values)
    return made


@cache
def _remaker(kind: Any) -> Any:  # noqa: ANN401 - any dataclass
    return _twin(kind, [(one.name, Any) for one in _fields(kind)], None, by_name_only=False)


def _fields(kind: Any) -> tuple[Field[Any], ...]:  # noqa: ANN401 - any dataclass
    return fields(kind)


def _check_of(kind: Any) -> Callable[[Any], None] | None:  # noqa: ANN401 - any dataclass
    return getattr(kind, "__post_init__", None)


def _twin(
    kind: Any,  # noqa: ANN401 - any dataclass
    twins: list[Any],
    check: Callable[[Any], None] | None,
    *,
    by_name_only: bool,
) -> Any:  # noqa: ANN401 - makes one
    def become(made: Any) -> None:  # noqa: ANN401 - the twin
        made.__class__ = kind

    def become_checked(made: Any) -> None:  # noqa: ANN401 - the twin
        made.__class__ = kind
        check(made)  # type: ignore[misc] # only where there is one

    after = become if check is None else become_checked
    return make_dataclass(
        kind.__name__,
        twins,
        namespace={"__post_init__": after},
        slots="__slots__" in vars(kind),
        repr=False,
        eq=False,
        match_args=False,
        kw_only=by_name_only,
    )
