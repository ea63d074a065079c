"""The fitted coefficients that ship with the planner: tables of `planner/models/data`."""

import tomllib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pricing.message import set_within

_DATA = Path(__file__).parent / "data"
_NOTHING: Mapping[str, Mapping[str, Any]] = {}
_instead: ContextVar[Mapping[str, Mapping[str, Any]]] = ContextVar("_instead")

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def coefficients(name: str) -> Mapping[str, Any]:
    """Return a shipped table of fitted coefficients, `planner/models/data/NAME.toml`."""
    return _instead.get(_NOTHING).get(name) or _shipped(name)


@cache
def _shipped(name: str) -> Mapping[str, Any]:
    return tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))


def fitted_as(**tables: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Predict by other coefficients within a block: evaluations leave out what they ask about."""
    return set_within(_instead, {**_instead.get(_NOTHING), **tables})


def memoize(size: int) -> Callable[[Callable[Asked, Answer]], Callable[Asked, Answer]]:
    """Return a decorator that keeps so many answers of a law, for all jobs that ask the same.

    The law is of its arguments and coefficients alone. Kept is what it answers by those that ship;
    within `fitted_as` it is asked each time.
    """

    def decorate(law: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
        answers = lru_cache(maxsize=size)(law)

        @wraps(law)
        def answered(*arguments: Asked.args, **named: Asked.kwargs) -> Answer:
            if _instead.get(_NOTHING):
                return law(*arguments, **named)
            return answers(*arguments, **named)  # type: ignore[arg-type] # all of them are hashable

        return answered

    return decorate
