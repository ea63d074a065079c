"""A recipe as the configuration of a framework: what it can be told, and what is left to do.

Which setting of which framework an action is lies in framework_settings.csv: `{name}` stands for
the recipe's setting of that name, `when` for the value of one on which the row depends. Facts are
of Transformers 4 and 5, Accelerate 1, Lightning 2, Keras 3 and PyTorch 2, as in instructions.toml.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planner.actions.instructions import HOW_TO
from planner.documents.recipe import Applied, Recipe

Value = bool | int | float | str
Sections = Mapping[str, Value | Mapping[str, Value]]

_BY_ITSELF = "as in PyTorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftToDo:
    """An action that the configuration cannot hold.

    Attributes:
        code: of the action.
        how: what to do; what is known for this framework, else that nothing is.
    """

    code: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkConfig:
    """What a recipe sets in one framework.

    Attributes:
        framework: its word.
        option: JOB/ID that it is of.
        settings: by name; a section where the name has a dot.
        environment: variables that go with it.
        left: what is not in it.
    """

    framework: str
    option: str
    settings: Sections
    environment: Mapping[str, str]
    left: tuple[LeftToDo, ...]


@cache
def framework_rows() -> tuple[Mapping[str, str], ...]:
    """Return the rows of the table: framework, action, when, setting, value."""
    text = files("planner.documents").joinpath("framework_settings.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def framework_config(framework: str, recipe: Recipe) -> FrameworkConfig:
    """Return what a recipe sets in a framework.

    Args:
        framework: a word of `instructions.FRAMEWORKS`, or another: nothing is set then, and what is
            known beside them is told.
        recipe: of an option.
    """
    flat: dict[str, Value] = {}
    left = []
    for one in recipe.actions:
        found = dict(_settings(framework, one, recipe.machine.launcher))
        flat |= found
        if not found:
            left.append(LeftToDo(code=one.code, how=_how(framework, one)))
    if framework == "accelerate" and flat:
        flat = {**_launched(recipe), **flat}
    return FrameworkConfig(
        framework=framework,
        option=f"{recipe.job}/{recipe.option}",
        settings=_in_sections(flat),
        environment={
            name: value
            for name, value in recipe.machine.environment.items()
            if not name.startswith("GPUCOST_")
        },
        left=tuple(left),
    )


def _settings(
    framework: str, one: Applied, launcher: Mapping[str, float | str]
) -> Iterator[tuple[str, Value]]:
    """Yield what an action sets; a value that the recipe could not work out is left out."""
    known = {**launcher, **one.settings}
    for row in framework_rows():
        if (row["framework"], row["action"]) != (framework, one.code):
            continue
        name, _, wanted = row["when"].partition("=")
        if name and str(known.get(name)) != wanted:
            continue
        value = _value(row["value"], known)
        if value is not None:
            yield row["setting"], value


def _value(text: str, known: Mapping[str, float | str]) -> Value | None:
    """Return a value as JSON has it, with the recipe's own in the place of `{name}`."""
    try:
        filled = text.format_map(known)
    except KeyError:
        return None
    try:
        value: Value = json.loads(filled)
    except ValueError:
        return filled
    return value


def _launched(recipe: Recipe) -> dict[str, Value]:
    """Return what Accelerate's file must say of machines and processes."""
    launcher = recipe.machine.launcher
    each, nodes = int(launcher.get("nproc_per_node", 1)), int(launcher.get("nnodes", 1) or 1)
    return {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if each * nodes > 1 else "NO",
        "num_machines": nodes,
        "num_processes": each * nodes,
        "machine_rank": 0,
        "use_cpu": False,
    }


def _in_sections(flat: Mapping[str, Value]) -> Sections:
    found: dict[str, Value | dict[str, Value]] = {}
    for name, value in flat.items():
        section, _, inner = name.rpartition(".")
        if not section:
            found[name] = value
            continue
        held = found.setdefault(section, {})
        if isinstance(held, dict):
            held[inner] = value
    return found


def _how(framework: str, one: Applied) -> str:
    """Return what is known of an action beside settings: of the framework, of PyTorch, in words."""
    how = HOW_TO[one.code]
    said = how.frameworks.get(framework, "")
    if said == _BY_ITSELF:
        said = how.frameworks.get("pytorch", said)
    words = "; ".join(part for part in (said, how.words) if part)
    values = ", ".join(f"{name} {value}" for name, value in one.settings.items())
    known = words or f"nothing is known of it for {framework}"
    return f"{known} ({values})" if values and words else known
