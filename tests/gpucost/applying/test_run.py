"""`gpucost run`: which recipe is applied, what passes through, and what is said."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import training

GPUCOST = str(Path(sys.executable).parent / "gpucost")
WORKERS = {"num_workers": 2, "prefetch_factor": 4}


def recipe(*codes: str, **more: Any) -> dict[str, Any]:
    """Return a recipe of these actions."""
    actions = [
        {"code": code, "settings": WORKERS if code == "dataloader-workers" else {}}
        for code in codes
    ]
    return {"schema": "gpucost.recipe/v1", "job": "train", "actions": actions, **more}


BAD = {
    "no command": (("--recipe", "r.json"), "no COMMAND"),
    "nothing to apply": (("--", "true"), "nothing to apply"),
    "both": (("plan.json", "--recipe", "r.json", "--", "true"), "one of the two"),
    "missing": (("--recipe", "none.json", "--", "true"), "gpucost recipe PLAN -o none.json"),
    "not a recipe": (("--recipe", "profile.json", "--", "true"), "not a recipe"),
    "no folder": (("--recipe", "r.json", "-o", "no/a.json", "--", "true"), "no folder no"),
    "safe code": (
        ("--recipe", "r.json", "--numeric", "pinned-memory", "--", "true"),
        "safe, so it needs no asking",
    ),
    "no code": (("--recipe", "r.json", "--numeric", "amp", "--", "true"), "no action code"),
    "excluded": (
        ("--recipe", "tf32.json", "--numeric", "mixed-precision", "--", "true"),
        "not together with tf32",
    ),
    "nothing to switch": (
        ("--ab", "--recipe", "machine.json", "--", "true"),
        "allocator-tuning, fused-optimizer cannot be tried on and off within one run",
    ),
    "no actions": (("--ab", "--recipe", "none-of-it.json", "--", "true"), "has no actions"),
    "search and recipe": (
        ("--find-batch", "--recipe", "r.json", "--", "true"),
        "--find-batch applies no recipe",
    ),
    "no plan": (("--option", "j/o1", "--", "true"), "plan.json: no such file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_call_runs_nothing(name: str, call: Call, write: Write) -> None:
    """Exit 2, one sentence that says what to type; the command was not started."""
    write("r.json", recipe())
    write("tf32.json", recipe("tf32"))
    write("machine.json", recipe("allocator-tuning", "fused-optimizer"))
    write("none-of-it.json", recipe())
    write("profile.json", training())
    arguments, words = BAD[name]
    command = ("sh", "-c", "touch started")
    given = [*arguments[:-1], *command] if arguments[-1] == "true" else list(arguments)
    ran = call("run", *given)
    assert ran.code == 2
    assert words in ran.err
    assert not Path("started").exists()


def test_every_problem_of_a_recipe_is_said_at_once(call: Call, write: Write) -> None:
    """Unknown codes and variables that no action sets are named, each with its place."""
    bad = recipe("dataloader-workers", "make-faster", environment={"LD_PRELOAD": "x.so"})
    ran = call("run", "--recipe", write("r.json", bad), "--", "true")
    assert ran.code == 2
    assert "actions[1].code" in ran.err
    assert "environment.LD_PRELOAD is set by no action" in ran.err


def _run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [GPUCOST, "run", "--no-gpu", "--no-metadata", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_a_command_keeps_its_output_its_words_and_its_exit_code(write: Write) -> None:
    """Words after -- are the command's, also those that look like ours; its code is ours."""
    write("r.json", recipe("dataloader-workers", "async-copy"))
    program = "import sys; print(sys.stdin.read(), sys.argv[1:]); sys.exit(7)"
    ran = _run(
        "--recipe", "r.json", "-o", "a.json", "--", sys.executable, "-c", program, "--option", "--",
        input="word",
    )  # fmt: skip
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout == "word ['--option', '--']\n"
    assert "left dataloader-workers: the program was never seen to use" in ran.stderr
    changes = json.loads(Path("a.json").read_text(encoding="utf-8"))["changes"]
    assert {change["action"]: change["outcome"] for change in changes} == {
        "async-copy": "left",
        "dataloader-workers": "left",
    }


def test_an_option_of_a_plan_is_applied_with_its_variables(call: Call, write: Write) -> None:
    """PLAN --option works as its recipe; variables reach the command, the caller's stay."""
    write("profile.json", training())
    assert call("plan", "-q", "-o", "plan.json").code == 0
    assert call("recipe", "-q", "-o", "r.json").code == 0
    program = "import os; print(sorted(n for n in os.environ if n.startswith('GPUCOST_')))"
    command = ("--", sys.executable, "-c", program)
    (job,) = json.loads(Path("plan.json").read_text(encoding="utf-8"))["jobs"]
    option = f"{job['name']}/{job['recommended']}"
    by_plan = _run("plan.json", "--option", option, *command)
    by_recipe = _run("--recipe", "r.json", *command)
    assert by_plan.returncode == by_recipe.returncode == 0, by_plan.stderr
    assert by_plan.stdout == by_recipe.stdout
    assert "GPUCOST_PROBE_DIR" in by_plan.stdout


def test_an_experiment_says_what_it_cannot_switch(write: Write) -> None:
    """With --ab the rest runs as it is; what cannot be tried in turns is named, and left."""
    write("r.json", recipe("dataloader-workers", "allocator-tuning"))
    program = "import os; print(sorted(os.environ))"
    ran = _run("--ab", "--recipe", "r.json", "-o", "a.json", "--", sys.executable, "-c", program)
    assert ran.returncode == 0, ran.stderr
    assert "ALLOC_CONF" not in ran.stdout
    assert "left allocator-tuning: cannot be tried on and off within one run" in ran.stderr
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["experiment"] is None


def test_a_search_that_finds_no_steps_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that trains nothing: exit 2, how it ended, and no file."""
    monkeypatch.chdir(tmp_path)
    ran = _run("--find-batch", "-o", "b.json", "--", sys.executable, "-c", "raise SystemExit(5)")
    assert ran.returncode == 2
    assert "it ended with 5 before 4 optimizer steps were seen" in ran.stderr
    assert not Path("b.json").exists()
