"""Builds frozen dataclasses with slots many at a time."""

from collections.abc import Callable
from dataclasses import field, fields, make_dataclass
from typing import Any, TypeVar

_Kind = TypeVar("_Kind")


def builder(kind: type[_Kind]) -> Callable[..., _Kind]:
    """Return a function that makes a `kind` of the values that its `__init__` takes, by position.

    Its own `__init__` sets each field around its frozen `__setattr__`, one call a field. Here the
    fields of a twin that is not frozen are set, which is several times as fast, and the twin
    becomes a `kind`, which it has the layout of. `__post_init__` runs as ever, and sets what its
    `__init__` does not take.

    Args:
        kind: a dataclass with slots.
    """
    all_of_it = fields(kind)  # type: ignore[arg-type] # any dataclass
    twins = [(one.name, Any, field(init=one.init)) for one in all_of_it]
    check: Callable[[_Kind], None] | None = getattr(kind, "__post_init__", None)

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
        slots=True,
        repr=False,
        eq=False,
        match_args=False,
    )
