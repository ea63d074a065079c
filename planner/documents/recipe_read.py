"""Reads a recipe back: what `gpucost run` applies. Every problem is said, each with its place."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.actions import ACTIONS
from planner.actions.settings import VARIABLES
from planner.documents.recipe import SCHEMA
from planner.plan.option import Settings
from pricing.errors import InputError

_AGAIN = "write it again with `gpucost recipe PLAN -o recipe.json`"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRecipe:
    """What a recipe asks for.

    Attributes:
        job: the job's name.
        actions: settings by code, in the recipe's order.
        environment: variables by name.
        launcher: what the launcher of the processes is told.
    """

    job: str | None = None
    actions: Mapping[str, Settings] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher: Mapping[str, int | str] = field(default_factory=dict)

    def also(self, numeric: Iterable[str]) -> "AskedRecipe":
        """Return the recipe with actions that may change results, each asked for by its code.

        Raises:
            InputError: a code is not a numeric action, or excludes another one; every problem.
        """
        asked = tuple(dict.fromkeys(numeric))
        problems = [problem for code in asked if (problem := _refusal(code, self.actions))]
        if problems:
            raise InputError(problems)
        added: dict[str, Settings] = {code: {} for code in asked if code not in self.actions}
        variables = {
            name: text
            for code in added
            for name, text in ACTIONS[code].environment.items()
            if "{" not in text
        }
        return replace(
            self,
            actions={**self.actions, **added},
            environment={**self.environment, **variables},
        )


def read_recipe(text: str, origin: str) -> AskedRecipe:
    """Return what a recipe asks for.

    Args:
        text: of recipe.json.
        origin: the file's name, for messages.

    Raises:
        InputError: it is not JSON, not a recipe, or some of its values cannot be; each is listed.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin}: not valid JSON ({error}); {_AGAIN}.") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise InputError(f"{origin}: not a recipe ({SCHEMA}); {_AGAIN}.")
    problems = [f"{origin}: {problem}; {_AGAIN}." for problem in _problems(raw)]
    if problems:
        raise InputError(problems)
    return AskedRecipe(
        job=raw.get("job"),
        actions={one["code"]: one.get("settings") or {} for one in raw.get("actions") or ()},
        environment=raw.get("environment") or {},
        launcher=raw.get("launcher") or {},
    )


def _problems(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong; a variable that no action sets is not of our making."""
    if not isinstance(raw.get("job"), str | None):
        yield "job is not a text"
    actions = raw.get("actions") or []
    if not isinstance(actions, list):
        yield "actions is not a list"
        actions = []
    for i, one in enumerate(actions):
        code = one.get("code") if isinstance(one, dict) else None
        if not isinstance(code, str) or code not in ACTIONS:
            yield f"actions[{i}].code is not an action code"
        elif not _plain(one.get("settings") or {}):
            yield f"actions[{i}].settings holds more than numbers and words"
    odd = [name for name in ("environment", "launcher") if not _plain(raw.get(name) or {})]
    yield from (f"{name} holds more than numbers and words" for name in odd)
    if not odd:
        yield from _odd_variables(raw.get("environment") or {})


def _odd_variables(environment: Mapping[str, Any]) -> Iterator[str]:
    for name, value in environment.items():
        if name not in VARIABLES:
            yield f"environment.{name} is set by no action"
        elif not isinstance(value, str) or "\0" in value:
            yield f"environment.{name} is not a text"


def _plain(values: object) -> bool:
    return isinstance(values, dict) and all(
        isinstance(name, str) and isinstance(value, str | int | float)
        for name, value in values.items()
    )


def _refusal(code: str, others: Mapping[str, Settings]) -> str | None:
    found = ACTIONS.get(code)
    if found is None or found.kind != "numeric":
        known = ", ".join(c for c, one in ACTIONS.items() if one.kind == "numeric")
        words = "no action code" if found is None else f"{found.kind}, so it needs no asking"
        return f"--numeric {code}: {words}; numeric are {known}."
    excluded = [other for other in others if other in found.excludes]
    if excluded:
        return f"--numeric {code}: not together with {', '.join(excluded)}; leave one out."
    return None
