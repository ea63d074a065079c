"""What of a recipe is done how, around a command that starts here and now.

Some actions the probe applies in the program's own process, some are variables or a launcher in
front of the command; the others are left, with what there is to do by hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.actions import ACTIONS
from planner.actions.settings import Settings
from planner.documents.launcher import THREADS, Surroundings, launch
from planner.documents.recipe import AskedRecipe
from planner.profile.kinds import APPLIED, LEFT
from planner.profile.trials import Change
from pricing.errors import InputError

IN_PROCESS = tuple(code for code, action in ACTIONS.items() if action.in_process)
"""Codes of the actions that the probe applies."""

SWITCHED = tuple(code for code, action in ACTIONS.items() if action.in_turns)
"""Codes of those that can be tried on and off within one run."""

_IN_TURNS = "cannot be tried on and off within one run: gpucost run without --ab applies it"
_FRAMEWORK = "pytorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """How a recipe is applied to one command.

    Attributes:
        command: the command, with what is put in front of it.
        environment: variables that are added.
        in_process: settings of the actions that the probe applies, by code.
        experiment: how the probe tries them on and off in turns; None where they stay on.
        changes: what is settled before the command starts.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    in_process: Mapping[str, Settings] = field(default_factory=dict)
    experiment: Mapping[str, object] | None = None
    changes: tuple[Change, ...] = ()


def application(
    recipe: AskedRecipe,
    command: Sequence[str],
    environ: Mapping[str, str],
    surroundings: Surroundings,
) -> Application:
    """Return how a recipe is applied to a command.

    Args:
        recipe: what is asked for.
        command: the program and its arguments.
        environ: the caller's environment; what it sets stays.
        surroundings: this machine.
    """
    started = launch(recipe, command, environ, surroundings)
    reasons = {
        name: why
        for name, value in recipe.environment.items()
        if (why := _why_not(name, value, environ, surroundings, started.processes)) is not None
    }
    environment = {n: v for n, v in recipe.environment.items() if n not in reasons}
    changes = [*started.changes]
    settled = {change.action for change in changes} | set(IN_PROCESS)
    for code in recipe.actions:
        if code not in settled:
            changes += _settled(code, environment, reasons)
    changes += _variable_changes(recipe, environment, reasons)
    return Application(
        command=started.command,
        environment=environment,
        in_process={code: recipe.actions[code] for code in recipe.actions if code in IN_PROCESS},
        changes=tuple(changes),
    )


def in_turns(
    recipe: AskedRecipe, command: Sequence[str], experiment: Mapping[str, object]
) -> Application:
    """Return how a recipe is tried on and off within one run of a command.

    What cannot be switched is left, so that the gain is that of what is named.

    Args:
        recipe: what is asked for.
        command: the program and its arguments.
        experiment: what the probe is told of it.

    Raises:
        InputError: nothing of the recipe can be switched.
    """
    switched = {code: recipe.actions[code] for code in recipe.actions if code in SWITCHED}
    unswitched = [code for code in recipe.actions if code not in switched]
    if not switched:
        named = (
            f"{', '.join(unswitched)} {_IN_TURNS}" if unswitched else "the recipe has no actions"
        )
        raise InputError(
            f"--ab: nothing to try in turns: {named}. What can: {', '.join(SWITCHED)}."
        )
    changes = [Change(action=code, outcome=LEFT, what=_IN_TURNS) for code in unswitched]
    changes += [
        Change(action="environment", outcome=LEFT, what=f"{name}={value} {_IN_TURNS}")
        for name, value in _of_no_action(recipe).items()
    ]
    return Application(
        command=tuple(command), in_process=switched, experiment=experiment, changes=tuple(changes)
    )


def _why_not(
    name: str, value: str, environ: Mapping[str, str], surroundings: Surroundings, processes: int
) -> str | None:
    """Return why a variable is not set; None where it is."""
    if name in environ:
        return f"{name} is set in the environment already"
    if name == THREADS and processes == 1:  # torchrun sets one of its own
        return f"{name}={value} may change sums in their last bits; set it yourself if you want it"
    top = "/".join(value.split("/")[:2])
    if value.startswith("/") and not surroundings.exists(top):
        return f"{name} would be {value}, and there is no {top} on this machine"
    return None


def _settled(
    code: str, environment: Mapping[str, str], reasons: Mapping[str, str]
) -> Iterator[Change]:
    """Yield what is settled of an action before the command starts."""
    how = ACTIONS[code]
    names = list(how.environment)
    if names:
        for name in names:
            if name in environment:
                yield Change(action=code, outcome=APPLIED, what=f"{name}={environment[name]}")
            else:
                yield Change(action=code, outcome=LEFT, what=reasons.get(name, f"no {name}"))
        return
    if how.by == "machine" or how.kind == "structural":
        text = f"a matter of the machine: {how.words}"
    else:
        by_hand = how.lines.get(_FRAMEWORK) or how.words or f"gpucost explain {code}"
        text = f"the program itself must do it: {by_hand}"
    yield Change(action=code, outcome=LEFT, what=text)


def _variable_changes(
    recipe: AskedRecipe, environment: Mapping[str, str], reasons: Mapping[str, str]
) -> Iterator[Change]:
    """Yield what became of the variables that belong to no action of the recipe."""
    for name in _of_no_action(recipe):
        applied = name in environment
        text = f"{name}={environment[name]}" if applied else reasons[name]
        outcome = APPLIED if applied else LEFT
        yield Change(action="environment", outcome=outcome, what=text)


def _of_no_action(recipe: AskedRecipe) -> dict[str, str]:
    of_actions = {name for code in recipe.actions for name in ACTIONS[code].environment}
    return {name: v for name, v in recipe.environment.items() if name not in of_actions}
