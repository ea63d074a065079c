"""Reads the actions, and how each is applied, from the tables beside this module.

input.toml, compute.toml and machines.toml hold the actions, each by its code; instructions.toml
holds how they are applied.
"""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from planner.actions.action import Action
from planner.signals import thresholds
from planner.signals.condition import Test

_THEMES = ("input", "compute", "machines")


def table(name: str) -> dict[str, dict[str, Any]]:
    """Return a table of this package by its name, in the order of the file."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def actions() -> Iterator[Action]:
    """Yield every action, theme by theme, in the order of the files."""
    for theme in _THEMES:
        for code, fields in table(theme).items():
            yield Action(code=code, **{name: _value(name, one) for name, one in fields.items()})


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - what TOML holds
    if name in {"when", "needs"}:
        return tuple(_test(**one) for one in value)
    return tuple(value) if isinstance(value, list) else value


def _test(*, limit: Any = None, named: str = "", **fields: Any) -> Test:  # noqa: ANN401 - the same
    if named:
        limit = getattr(thresholds, named)
    return Test(limit=tuple(limit) if isinstance(limit, list) else limit, **fields)
