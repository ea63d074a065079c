"""A recipe as the configuration of a framework: what it can be told, and what is left to do.

Which setting of which framework an action is stands in its entry in planner/actions/actions.toml.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.actions import ACTIONS
from planner.documents.recipe import Recipe, RecipeAction

Value = bool | int | float | str
Sections = Mapping[str, Value | Mapping[str, Value]]

_BY_ITSELF = "as in PyTorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkConfig:
    """What a recipe sets in one framework.

    Attributes:
        framework: its word.
        option: JOB/ID that it is of.
        settings: by name; a section where the name has a dot.
        environment: variables that go with it.
        manual_steps: what is not in it, by action: what is known for this framework, else that
            nothing is.
    """

    framework: str
    option: str
    settings: Sections
    environment: Mapping[str, str]
    manual_steps: Mapping[str, str]


def framework_config(framework: str, recipe: Recipe) -> FrameworkConfig:
    """Return what a recipe sets in a framework.

    Args:
        framework: one of `FRAMEWORKS`, or another: nothing is set then, and what is known beside
            them is left to do.
        recipe: of an option.
    """
    flat: dict[str, Value] = {}
    manual_steps = {}
    for action in recipe.actions:
        settings = dict(_settings(framework, action, recipe.launcher))
        flat |= settings
        if not settings:
            manual_steps[action.code] = _how(framework, action)
    if framework == "accelerate" and flat:
        flat = {**_launched(recipe), **flat}
    return FrameworkConfig(
        framework=framework,
        option=f"{recipe.job}/{recipe.option}",
        settings=_in_sections(flat),
        environment={
            name: value
            for name, value in recipe.environment.items()
            if not name.startswith("GPUCOST_")
        },
        manual_steps=manual_steps,
    )


def _settings(
    framework: str, action: RecipeAction, launcher: Mapping[str, float | str]
) -> Iterator[tuple[str, Value]]:
    """Yield what an action sets; a value that the recipe could not work out is left out."""
    values = {**launcher, **action.settings}
    way = ACTIONS[action.code].frameworks.get(framework)
    for setting, text in way.sets.items() if way else ():
        value = _value(text if isinstance(text, str) else _chosen(text, values), values)
        if value is not None:
            yield setting, value


def _chosen(by_condition: Mapping[str, str], values: Mapping[str, float | str]) -> str | None:
    """Return the value whose condition, such as `dtype=bf16`, holds; None where none does."""
    pairs = ((condition.partition("="), value) for condition, value in by_condition.items())
    return next((v for (name, _, expected), v in pairs if str(values.get(name)) == expected), None)


def _value(text: str | None, values: Mapping[str, float | str]) -> Value | None:
    """Return a value as JSON has it, with the recipe's own in the place of `{name}`."""
    if text is None:
        return None
    try:
        filled = text.format_map(values)
    except KeyError:
        return None
    try:
        value: Value = json.loads(filled)
    except ValueError:
        return filled
    return value


def _launched(recipe: Recipe) -> dict[str, Value]:
    """Return what Accelerate's file must say of machines and processes."""
    launcher = recipe.launcher
    per_node, nodes = int(launcher.get("nproc_per_node", 1)), int(launcher.get("nnodes", 1) or 1)
    return {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU" if per_node * nodes > 1 else "NO",
        "num_machines": nodes,
        "num_processes": per_node * nodes,
        "machine_rank": 0,
        "use_cpu": False,
    }


def _in_sections(flat: Mapping[str, Value]) -> Sections:
    sections: dict[str, Value | dict[str, Value]] = {}
    for name, value in flat.items():
        section, _, inner = name.rpartition(".")
        if not section:
            sections[name] = value
            continue
        inner_values = sections.setdefault(section, {})
        if isinstance(inner_values, dict):
            inner_values[inner] = value
    return sections


def _how(framework: str, recipe_action: RecipeAction) -> str:
    """Return what is known of an action beside settings: of the framework, of PyTorch, in words."""
    action = ACTIONS[recipe_action.code]
    line = action.lines.get(framework, "")
    if line == _BY_ITSELF:
        line = action.lines.get("pytorch", line)
    words = "; ".join(part for part in (line, action.words) if part)
    values = ", ".join(f"{name} {value}" for name, value in recipe_action.settings.items())
    text = words or f"nothing is known of it for {framework}"
    return f"{text} ({values})" if values and words else text
