"""A recipe: what to set so that an option of a plan runs as the plan says (`gpucost.recipe/v1`).

The option's own actions are in it, and the numeric ones that were asked for by code. What only the
program can do is marked `code`, with a line for each framework; nothing is changed by the recipe
itself.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from planner.actions import ACTIONS
from planner.actions.action import compatible
from planner.actions.settings import VARIABLES, Settings
from planner.documents.machine import read_machine
from planner.models.estimate import Interval
from planner.plan.read import FoundOption
from pricing.errors import InputError

SCHEMA = "gpucost.recipe/v1"


class RecipeAction(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a recipe.

    Attributes:
        code: the action code.
        kind: `safe` or `numeric`.
        settings: values worked out for the job.
        effect: low, mid and high speed-up of what it acts on; None where unknown.
        by: what applies it: `launcher`, `code` or `machine`.
        how: by framework, a line that applies it; `also` for everything else.
    """

    code: str
    kind: str = msgspec.field(name="class")
    settings: Settings
    effect: Interval | None
    by: str
    how: Mapping[str, str]


class RecipeMachine(msgspec.Struct, frozen=True, kw_only=True):
    """How the GPUs of a machine are set: shared or not, and kept awake between processes.

    Attributes:
        sharing: `mig`, `mps` or `time-slicing`; None: not shared.
        persistence_mode: whether the driver keeps GPUs awake.
    """

    sharing: str | None
    persistence_mode: bool


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What to set for one option, as its file holds it (`gpucost.recipe/v1`).

    Attributes:
        schema: name and version of this form.
        job: the job's name.
        option: the option's id.
        actions: what is applied, in order.
        environment: variables of the job.
        launcher: what the launcher of the processes is told.
        checkpoint_every_s: work between checkpoints; None where nothing is trained.
        machine: how the GPUs are set.
    """

    schema: str = SCHEMA
    job: str
    option: str
    actions: tuple[RecipeAction, ...]
    environment: Mapping[str, str]
    launcher: Settings
    checkpoint_every_s: float | None
    machine: RecipeMachine


def make_recipe(option: FoundOption, numeric: Iterable[str] = ()) -> Recipe:
    """Return the recipe of an option of a plan.

    Args:
        option: the option, or the job as it runs today.
        numeric: codes of actions that may change results and were asked for.

    Raises:
        InputError: a code is unknown, needs no asking, does not apply to the job, or excludes
            another one; every problem is listed.
    """
    remedies = _remedies(option)
    codes_asked = tuple(dict.fromkeys(numeric))
    problems = [
        problem for code in codes_asked if (problem := _refusal(code, remedies, option.job.name))
    ]
    own = [code for code in option.actions if code in remedies]
    codes = [*own, *(code for code in codes_asked if code not in own)]
    allowed = {
        action.code for action in compatible(ACTIONS[code] for code in codes if code in ACTIONS)
    }
    problems += [
        f"--numeric {code}: not together with {', '.join(_excluding(code, codes))}; leave one out."
        for code in codes_asked
        if code in ACTIONS and code not in allowed
    ]
    if problems:
        raise InputError(problems)
    machine = read_machine(option).also(codes, option.settings)
    sharing = option.option.sharing if option.option else None
    return Recipe(
        job=option.job.name,
        option=option.id,
        actions=tuple(remedies[code] for code in codes),
        environment=machine.environment,
        launcher=machine.launcher,
        checkpoint_every_s=machine.checkpoint_every_s,
        machine=RecipeMachine(sharing=sharing, persistence_mode=True),
    )


def _remedies(option: FoundOption) -> dict[str, RecipeAction]:
    """Return the actions that apply, with what they set on the option's machine."""
    today = {remedy.code: remedy for remedy in option.job.remedies}
    return {
        code: RecipeAction(
            code=code,
            kind=action.kind,
            settings=settings,
            effect=today[code].effect if code in today else None,
            by=action.by,
            how={**action.lines, **({"also": action.words} if action.words else {})},
        )
        for code, settings in option.settings.items()
        if (action := ACTIONS.get(code)) is not None
    }


def _refusal(code: str, remedies: Mapping[str, RecipeAction], job: str) -> str | None:
    """Return why a code cannot be asked for; None where it can."""
    if code in remedies:
        return _not_numeric(code)
    return _not_numeric(code) or (
        f"--numeric {code}: does not apply to {job}; `gpucost explain {code}` says where it does."
    )


def _not_numeric(code: str) -> str | None:
    """Return that a code is none of an action that may change results; None where it is."""
    action = ACTIONS.get(code)
    if action is not None and action.kind == "numeric":
        return None
    numeric = ", ".join(c for c, action in ACTIONS.items() if action.kind == "numeric")
    reason = "no action code" if action is None else f"{action.kind}, so it needs no asking"
    return f"--numeric {code}: {reason}; numeric are {numeric}."


def _excluding(code: str, codes: Iterable[str]) -> Iterable[str]:
    excluded = ACTIONS[code].excludes
    return (excluded_code for excluded_code in codes if excluded_code in excluded)


_ANY_LOADER = "dataloader-workers"
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
    launcher: Settings = field(default_factory=dict)

    def also(self, numeric: Iterable[str]) -> "AskedRecipe":
        """Return the recipe with actions that may change results, each asked for by its code.

        Loader workers are safe, and need no asking, where a loader is certified; asked for, every
        loader gets them, also one that sets its own number or draws random items.

        Raises:
            InputError: a code is not a numeric action, or excludes another one; every problem.
        """
        codes_asked = tuple(dict.fromkeys(numeric))
        problems = [problem for code in codes_asked if (problem := _excluded(code, self.actions))]
        if problems:
            raise InputError(problems)
        added: dict[str, Settings] = {code: {} for code in codes_asked if code not in self.actions}
        if _ANY_LOADER in codes_asked:
            added[_ANY_LOADER] = {**self.actions.get(_ANY_LOADER, {}), "any_loader": 1}
        variables = {
            name: text
            for code in added
            for name, text in ACTIONS[code].environment.items()
            if "{" not in text
        }
        return replace(
            self, actions={**self.actions, **added}, environment={**self.environment, **variables}
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
        actions={
            action["code"]: action.get("settings") or {} for action in raw.get("actions") or ()
        },
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
    for i, action in enumerate(actions):
        code = action.get("code") if isinstance(action, dict) else None
        if not isinstance(code, str) or code not in ACTIONS:
            yield f"actions[{i}].code is not an action code"
        elif not _plain(action.get("settings") or {}):
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


def _excluded(code: str, actions: Mapping[str, Settings]) -> str | None:
    """Return why a code cannot be asked for beside the others; None where it can."""
    if code == _ANY_LOADER:
        return None
    if (refusal := _not_numeric(code)) is not None:
        return refusal
    excluded = [excluding for excluding in actions if excluding in ACTIONS[code].excludes]
    if excluded:
        return f"--numeric {code}: not together with {', '.join(excluded)}; leave one out."
    return None
