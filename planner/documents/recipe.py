"""A recipe: what to set so that an option of a plan runs as the plan says (`gpucost.recipe/v1`).

The option's own actions are in it, and the numeric ones that were asked for by code. What only the
program can do is marked `code`, with a line for each framework; nothing is changed by the recipe
itself.
"""

from collections.abc import Iterable, Mapping

import msgspec

from planner.actions import ACTIONS
from planner.actions.action import compatible
from planner.actions.settings import MachineSettings
from planner.documents.machine import read_machine
from planner.plan.find import FoundOption
from planner.plan.job import Effect
from planner.plan.option import Settings
from pricing.errors import InputError

SCHEMA = "gpucost.recipe/v1"


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a recipe.

    Attributes:
        code: the action code.
        kind: `safe` or `numeric`.
        settings: values worked out for the job.
        effect: low, mid and high speed-up of what it acts on; None where unknown.
    """

    code: str
    kind: str
    settings: Settings
    effect: Effect | None


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What to set for one option.

    Attributes:
        job: the job's name.
        option: the option's id.
        actions: what is applied, in order.
        machine: what is set on each machine.
        sharing: how the GPU is shared; None = not.
    """

    job: str
    option: str
    actions: tuple[Applied, ...]
    machine: MachineSettings
    sharing: str | None

    @property
    def document(self) -> "RecipeDocument":
        """The recipe as its file holds it."""
        return RecipeDocument(
            schema=SCHEMA,
            job=self.job,
            option=self.option,
            actions=tuple(_action(one) for one in self.actions),
            environment=self.machine.environment,
            launcher=self.machine.launcher,
            checkpoint_every_s=self.machine.checkpoint_every_s,
            machine=RecipeMachine(sharing=self.sharing, persistence_mode=True),
        )


class RecipeAction(msgspec.Struct, frozen=True, kw_only=True):
    """One action as a recipe holds it.

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
    effect: Effect | None
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


class RecipeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe as its file holds it (`gpucost.recipe/v1`); `encode` writes it.

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

    schema: str
    job: str
    option: str
    actions: tuple[RecipeAction, ...]
    environment: Mapping[str, str]
    launcher: Mapping[str, int | str]
    checkpoint_every_s: float | None
    machine: RecipeMachine


def _action(one: Applied) -> RecipeAction:
    how = ACTIONS[one.code]
    return RecipeAction(
        code=one.code,
        kind=one.kind,
        settings=one.settings,
        effect=one.effect,
        by=how.by,
        how={**how.lines, **({"also": how.words} if how.words else {})},
    )


def make_recipe(found: FoundOption, numeric: Iterable[str] = ()) -> Recipe:
    """Return the recipe of an option of a plan.

    Args:
        found: the option, or the job as it runs today.
        numeric: codes of actions that may change results and were asked for.

    Raises:
        InputError: a code is unknown, needs no asking, does not apply to the job, or excludes
            another one; every problem is listed.
    """
    remedies = _remedies(found)
    asked = tuple(dict.fromkeys(numeric))
    problems = [problem for code in asked if (problem := _refusal(code, remedies, found.job.name))]
    own = [code for code in found.actions if code in remedies]
    codes = [*own, *(code for code in asked if code not in own)]
    kept = {one.code for one in compatible(ACTIONS[code] for code in codes if code in ACTIONS)}
    problems += [
        f"--numeric {code}: not together with {', '.join(_excluding(code, codes))}; leave one out."
        for code in asked
        if code in ACTIONS and code not in kept
    ]
    if problems:
        raise InputError(problems)
    return Recipe(
        job=found.job.name,
        option=found.id,
        actions=tuple(remedies[code] for code in codes),
        machine=read_machine(found).also(codes),
        sharing=found.option.sharing if found.option else None,
    )


def _remedies(found: FoundOption) -> dict[str, Applied]:
    """Return the actions that apply, with what they set on the option's machine."""
    today = {one.code: one for one in found.job.remedies}
    if found.option is None:
        return {
            code: Applied(code=code, kind=one.kind, settings=one.settings, effect=one.effect)
            for code, one in today.items()
        }
    return {
        code: Applied(
            code=code,
            kind=ACTIONS[code].kind,
            settings=settings,
            effect=today[code].effect if code in today else None,
        )
        for code, settings in found.settings.items()
        if code in ACTIONS
    }


def _refusal(code: str, remedies: Mapping[str, Applied], job: str) -> str | None:
    """Return why a code cannot be asked for; None where it can."""
    found = ACTIONS.get(code)
    if found is None or found.kind != "numeric":
        known = ", ".join(c for c, one in ACTIONS.items() if one.kind == "numeric")
        words = "no action code" if found is None else f"{found.kind}, so it needs no asking"
        return f"--numeric {code}: {words}; numeric are {known}."
    if code not in remedies:
        return (
            f"--numeric {code}: does not apply to {job}; `gpucost explain {code}` says where it "
            "does."
        )
    return None


def _excluding(code: str, codes: Iterable[str]) -> Iterable[str]:
    excluded = ACTIONS[code].excludes
    return (other for other in codes if other in excluded)
