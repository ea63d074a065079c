"""What of a recipe is done how, before the command starts."""

import pytest

from planner.actions import ACTIONS
from planner.actions.instructions import HOW_TO
from planner.documents.application import IN_PROCESS, application
from planner.documents.recipe_read import AskedRecipe

COMMAND = ("python", "train.py", "--epochs", "3")


def test_an_empty_recipe_changes_nothing() -> None:
    """Without actions and variables the command runs as it is, and nothing is said."""
    done = application(AskedRecipe(), COMMAND, {}, lambda _: False)
    assert (done.command, done.environment, done.in_process, done.changes) == (COMMAND, {}, {}, ())


@pytest.mark.parametrize("code", ACTIONS)
def test_every_action_is_applied_or_left_with_a_reason(code: str) -> None:
    """No action of the catalog is silently ignored: it is the probe's, or something is said."""
    done = application(AskedRecipe(actions={code: {}}), COMMAND, {}, lambda _: False)
    if code in IN_PROCESS:
        assert code in done.in_process
        return
    assert [change.action for change in done.changes] == [code] * len(done.changes)
    assert all(change.outcome == "left" and change.what for change in done.changes)
    assert done.changes


def test_what_the_program_must_do_comes_with_the_way_to_do_it() -> None:
    """An action that cannot be applied from outside names its how-to."""
    done = application(AskedRecipe(actions={"async-copy": {}}), COMMAND, {}, lambda _: False)
    assert HOW_TO["async-copy"].frameworks["pytorch"] in str(done.changes[0].what)


@pytest.mark.parametrize(
    ("name", "value", "environ", "there", "reason"),
    [
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1", {}, "", None),
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1", {"HOME": "/"}, "", None),
        (
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "1",
            {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": ""},
            "",
            "in the environment already",
        ),
        ("OMP_NUM_THREADS", "4", {}, "", "last bits"),
        ("TORCH_HOME", "/scratch/cache/torch", {}, "", "no /scratch on this machine"),
        ("TORCH_HOME", "/scratch/cache/torch", {}, "/scratch", None),
    ],
)
def test_a_variable_is_set_where_it_is_free_and_safe(
    name: str, value: str, environ: dict[str, str], there: str, reason: str | None
) -> None:
    """The caller's variables stay, thread counts and folders that are not there are left."""
    recipe = AskedRecipe(environment={name: value})
    done = application(recipe, COMMAND, environ, lambda path: path == there)
    assert (name in done.environment) == (reason is None)
    (change,) = done.changes
    assert change.outcome == ("applied" if reason is None else "left")
    assert (reason or name) in str(change.what)
