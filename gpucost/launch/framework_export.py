"""Options as configuration of the framework that the program is written in."""

from planner.actions.instructions import FRAMEWORKS
from planner.documents.framework_config import FrameworkConfig, framework_config
from planner.documents.recipe import make_recipe
from planner.plan_document.document import PlanDocument
from planner.plan_document.find import find_option, find_recommended
from pricing.errors import InputError
from templates.task_files import render_config

WORDS = (*FRAMEWORKS, "xgboost")
_READ_BY = {
    "transformers": "HfArgumentParser(TrainingArguments).parse_json_file(...) reads it",
    "accelerate": "accelerate launch --config_file ... reads it",
    "lightning": "LightningCLI reads it with --config, or Trainer(**...['trainer'])",
    "keras": "import it, and pass each on: model.compile(**COMPILE)",
    "pytorch": "import it, and pass each on: DataLoader(..., **DATA_LOADER)",
}


def config_text(
    framework: str, plan: PlanDocument, named: tuple[str, ...], numeric: tuple[str, ...]
) -> tuple[FrameworkConfig, str]:
    """Return what an option sets in a framework, and the file that the framework reads.

    Args:
        framework: one of WORDS.
        plan: read back.
        named: JOB/ID of one option; empty: what the plan recommends.
        numeric: codes of actions that may change results.

    Raises:
        InputError: several options, or there is no such one.
    """
    if len(named) > 1:
        raise InputError("one file holds one option: give --option once.")
    found = find_option(plan, named[0]) if named else find_recommended(plan)
    config = framework_config(framework, make_recipe(found, numeric))
    return config, render_config(config)


def what_is_left(config: FrameworkConfig, target: str) -> tuple[str, ...]:
    """Return what to say beside the file: how it is read, and what it does not hold."""
    said = [] if target == "-" else [f"wrote {target}: {config.option} for {config.framework}."]
    read = _READ_BY.get(config.framework)
    if config.settings and read:
        said.append(f"note: {read}.")
    if not config.settings:
        said.append(f"note: nothing of {config.option} is a setting of {config.framework}.")
    said += [f"note: set {name}={value}" for name, value in config.environment.items()]
    said += [f"note: {one.code}: {one.how}" for one in config.left]
    return tuple(said)
