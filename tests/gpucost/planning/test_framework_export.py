"""`gpucost export --to FRAMEWORK`: what a recipe sets, in the form that the framework reads."""

import json
from typing import Any

import pytest
import yaml

from gpucost.commands.planning.export import WORDS
from planner.actions import ACTIONS
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, training


@pytest.fixture
def plan(call: Call, write: Write) -> str:
    """The plan of a job whose loader is slow, on a T4."""
    write("profile.json", changed(training(), ("job", "framework"), "pytorch"))
    assert call("plan", "--as-of", AS_OF, "-q", "-o", "plan.json").code == 0
    return "plan.json"


def _export(call: Call, plan: str, word: str, *more: str) -> Any:
    ran = call("export", plan, "--to", word, "--option", "train/o0", *more)
    assert ran.code == 0, ran.err
    return ran


def test_transformers_reads_json(plan: str, call: Call) -> None:
    """Workers and, where asked, half precision are arguments of TrainingArguments."""
    safe = json.loads(_export(call, plan, "transformers").out)
    assert "fp16" not in safe
    asked = json.loads(_export(call, plan, "transformers", "--numeric", "mixed-precision").out)
    assert asked["fp16"] is True  # a T4 has no bf16
    assert "bf16" not in asked


def test_pytorch_gets_python(plan: str, call: Call) -> None:
    """The file runs, and holds the arguments of the loader."""
    options = json.loads(call("plan", "--as-of", AS_OF, "-f", "json").out)["jobs"][0]["options"]
    one = next(o for o in options if "dataloader-workers" in o["actions"])
    ran = call("export", plan, "--to", "pytorch", "--option", f"train/{one['id']}")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = {}
    exec(ran.out, found)  # noqa: S102 - what was just written
    wanted = one["settings"]["dataloader-workers"]
    assert found["DATA_LOADER"]["num_workers"] == wanted["num_workers"]
    assert found["DATA_LOADER"]["prefetch_factor"] == wanted["prefetch_factor"]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("lightning", {"trainer": {"precision": "16-mixed"}}),
        ("accelerate", {"mixed_precision": "fp16", "num_processes": 1}),
    ],
)
def test_yaml_is_read(word: str, wanted: dict[str, Any], plan: str, call: Call) -> None:
    """Half precision that was asked for stands where the framework looks for it."""
    found = yaml.safe_load(_export(call, plan, word, "--numeric", "mixed-precision").out)
    assert wanted.items() <= found.items()


@pytest.mark.parametrize("word", WORDS)
def test_what_is_left_is_said(word: str, plan: str, call: Call) -> None:
    """Each action of the option is in the file or named on standard error, for each framework."""
    options = json.loads(call("plan", "--as-of", AS_OF, "-f", "json").out)["jobs"][0]["options"]
    one = next(o for o in options if "dataloader-workers" in o["actions"])
    ran = call("export", plan, "--to", word, "--option", f"train/{one['id']}")
    assert ran.code == 0, ran.err
    set_here = {a.code for a in ACTIONS.values() if (w := a.frameworks.get(word)) and w.sets}
    for code in one["settings"].keys() & set(one["actions"]):
        assert code in set_here or f"{code}: " in ran.err


def test_xgboost_has_nothing_to_set(plan: str, call: Call) -> None:
    """Where nothing is known to set, that is the sentence."""
    assert "nothing of train/o0 is a setting of xgboost" in _export(call, plan, "xgboost").err


def test_two_options_are_refused(plan: str, call: Call) -> None:
    """One file holds one option."""
    ran = call("export", plan, "--to", "keras", "--option", "train/o0", "--option", "train/o1")
    assert (ran.code, ran.out) == (2, "")
