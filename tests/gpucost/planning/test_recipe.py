"""`gpucost recipe`: what to set so that an option runs as the plan says."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.actions import ACTIONS
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import EXAMPLES, training

KEYS = {
    "schema",
    "job",
    "option",
    "actions",
    "environment",
    "launcher",
    "checkpoint_every_s",
    "machine",
}


@pytest.fixture
def plan(call: Call, empty_folder: Path) -> dict[str, Any]:
    """The plan of the bundled starved job, as plan.json."""
    example = str(EXAMPLES / "visual-search.json")
    assert call("plan", example, "-q", "-o", "plan.json").code == 0
    document: dict[str, Any] = json.loads((empty_folder / "plan.json").read_text(encoding="utf-8"))
    return document


def test_a_recipe_holds_the_actions_of_the_recommended_option(
    call: Call, plan: dict[str, Any]
) -> None:
    """Its keys are the contract's, its actions those of the option on the job itself, all safe."""
    ran = call("recipe")
    (job,) = plan["jobs"]
    option = next(o for o in job["options"] if o["id"] == job["recommended"])
    assert ran.code == 0
    assert set(ran.json) == KEYS
    assert ran.json["schema"] == "gpucost.recipe/v1"
    assert (ran.json["job"], ran.json["option"]) == (job["name"], job["recommended"])
    of_the_job = [code for code in option["actions"] if ACTIONS[code].kind != "structural"]
    assert [a["code"] for a in ran.json["actions"]] == of_the_job
    assert {a["class"] for a in ran.json["actions"]} == {"safe"}
    for action in ran.json["actions"]:
        low, mid, high = (action["effect"][end] for end in ("low", "mid", "high"))
        assert 0 < low <= mid <= high
        assert action["by"] == ACTIONS[action["code"]].by
    assert ran.json["machine"] == {"sharing": None, "persistence_mode": True}


@pytest.mark.usefixtures("plan")
def test_settings_are_those_of_the_options_machine(call: Call) -> None:
    """28 threads and an L4 (bf16), not the four cores and the T4 that were profiled."""
    ran = call("recipe", "--option", "visual-search/o1", "--numeric", "mixed-precision")
    settings = {a["code"]: a["settings"] for a in ran.json["actions"]}
    assert settings["dataloader-workers"]["num_workers"] == 16
    assert settings["mixed-precision"] == {"dtype": "bf16"}
    assert "mixed-precision" in ran.err
    today = call("recipe", "--option", "o0", "--numeric", "mixed-precision")
    assert [a["settings"] for a in today.json["actions"]] == [{"dtype": "fp16"}]


@pytest.mark.usefixtures("plan")
def test_environment_and_launcher_come_from_the_actions(call: Call, empty_folder: Path) -> None:
    """Variables of the actions in it, half of the 28 threads for the process; -o writes a file."""
    there = ("recipe", "--option", "visual-search/o1", "--numeric", "tf32")
    ran = call(*there, "--numeric", "data-parallel", "-o", "recipe.json")
    assert ran.code == 0
    recipe = json.loads((empty_folder / "recipe.json").read_text(encoding="utf-8"))
    assert recipe["environment"] == {
        "OMP_NUM_THREADS": "14",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
    }
    assert recipe["launcher"] == {"nproc_per_node": 1, "max_restarts": 1}


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--numeric", "amp"), "no action code"),
        (("--numeric", "dataloader-workers"), "safe, so it needs no asking"),
        (("--numeric", "quantization"), "does not apply to visual-search"),
        (("--option", "o0", "--numeric", "tf32"), "does not apply"),
        (("--numeric", "mixed-precision", "--numeric", "tf32"), "not together with"),
        (("--option", "o99"), "not an option of this plan"),
        (("--option", "other/o0"), "not an option of this plan"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments: tuple[str, ...], words: str, call: Call) -> None:
    """Unknown, unneeded, inapplicable and contradicting codes exit 2 with the reason."""
    ran = call("recipe", *arguments)
    assert ran.code == 2
    assert words in ran.err
    assert ran.out == ""


@pytest.mark.usefixtures("plan")
def test_every_problem_is_listed(call: Call) -> None:
    """Two wrong codes are two sentences."""
    ran = call("recipe", "--numeric", "amp", "--numeric", "pinned-memory")
    assert "amp" in ran.err
    assert "pinned-memory" in ran.err


@pytest.mark.usefixtures("plan")
def test_the_job_as_today_changes_nothing(call: Call) -> None:
    """`o0` is the job as it runs now, and the user is told."""
    ran = call("recipe", "--option", "visual-search/o0")
    assert ran.json["actions"] == []
    assert "changes nothing" in ran.err


def test_several_jobs_need_a_name(call: Call, write: Write) -> None:
    """With two jobs the option must be named; the recommended ones are listed."""
    one, other = write("a.json", training(name="a")), write("b.json", training(name="b"))
    assert call("plan", one, other, "-q", "--no-consolidate", "-o", "plan.json").code == 0
    ran = call("recipe")
    assert ran.code == 2
    assert "a/" in ran.err
    assert "b/" in ran.err


@pytest.mark.usefixtures("empty_folder")
def test_without_a_plan_the_way_to_one_is_told(call: Call) -> None:
    """A missing plan.json exits 2 with the two commands that make one."""
    ran = call("recipe")
    assert ran.code == 2
    assert "gpucost plan" in ran.err


def test_no_numeric_action_comes_unasked(plan: dict[str, Any]) -> None:
    """No option of a plan holds an action that may change results."""
    codes = {
        code for job in plan["jobs"] for option in job["options"] for code in option["actions"]
    }
    assert not any(ACTIONS[code].kind == "numeric" for code in codes)


def test_the_diagnosis_says_how_many_workers_and_which_batch(call: Call, write: Write) -> None:
    """`diagnose -f json` gives each action that applies with its settings, gain and class."""
    ran = call("diagnose", write("train.json", training()), "-f", "json")
    (job,) = ran.json["jobs"]
    remedies = {one["code"]: one for one in job["remedies"]}
    assert remedies["dataloader-workers"]["settings"]["num_workers"] == 3
    assert remedies["larger-batch"]["settings"] == {"batch_per_gpu": 112}
    assert remedies["mixed-precision"]["settings"] == {"dtype": "fp16"}
    assert remedies["mixed-precision"]["class"] == "numeric"
    assert "tf32" not in remedies
    assert "smaller-gpu" not in remedies
