"""The fitted coefficients that ship with the planner: tables of `planner/models/data`."""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"
_NOTHING: Mapping[str, Mapping[str, Any]] = {}
_instead: ContextVar[Mapping[str, Mapping[str, Any]]] = ContextVar("_instead")


def coefficients(name: str) -> Mapping[str, Any]:
    """Return a shipped table of fitted coefficients, `planner/models/data/NAME.toml`."""
    return _instead.get(_NOTHING).get(name) or _shipped(name)


@cache
def _shipped(name: str) -> Mapping[str, Any]:
    return tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))


@contextmanager
def fitted_as(**tables: Mapping[str, Any]) -> Iterator[None]:
    """Predict by other coefficients within a block: evaluations leave out what they ask about."""
    token = _instead.set({**_instead.get(_NOTHING), **tables})
    try:
        yield
    finally:
        _instead.reset(token)
