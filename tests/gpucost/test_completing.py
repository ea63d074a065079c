"""What a shell offers while a value is typed: known names, at once and without a network."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from gpucost.machines.state import open_journal
from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.profiling.test_profile import GPUCOST
from tests.gpucost.profiling.test_profile_terminal import Shell, shell
from tests.providers.launches import a_spec

__all__ = ["shell"]  # a fixture

EXAMPLE = str(ROOT / "examples" / "visual-search.json")
HEAVY = ("pandas", "numpy", "rich", "jinja2", "planner.pipeline", "providers.registry")
MOST_CPU_S = 0.3


@pytest.fixture
def planned(empty_folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with plan.json and a journal of one run."""
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(empty_folder / "state"))
    assert call("plan", EXAMPLE, "-q", "-o", "plan.json", "--as-of", "2026-11-22").code == 0
    return empty_folder


def offered(*words: str) -> list[str]:
    """What bash is told after these words, the last of which is half typed."""
    typed = {"COMP_WORDS": " ".join(("gpucost", *words)), "COMP_CWORD": str(len(words))}
    environment = {**os.environ, **typed, "_GPUCOST_COMPLETE": "bash_complete"}
    command = [GPUCOST]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert said.stderr == ""
    return said.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("plan", "--provider", "digi"), ["plain,digitalocean"]),
        (("prices", "--gpu", "GH2"), ["plain,GH200"]),
        (("prices", "list", "--region", "eu-west-"), ["plain,eu-west-1"]),
        (("plan", "--provider", "aws", "--region", "us-west"), ["plain,us-west-2"]),
        (("plan", "--current", "digitalocean/gpu-h100x8"), ["plain,digitalocean/gpu-h100x8-640gb"]),
        (("provision", "--type", "lambda/gpu_1x_gh"), ["plain,lambda/gpu_1x_gh200"]),
        (("quote", "aws/p5.48xlarge/us-east-"), ["plain,aws/p5.48xlarge/us-east-1"]),
        (("explain", "data-l"), ["plain,data-loading"]),
        (("explain", "gpu-pre"), ["plain,gpu-preprocessing"]),
        (("recipe", "--numeric", "mixed"), ["plain,mixed-precision"]),
        (("recipe", "--option", "visual-search/o1"), ["plain,visual-search/o1"]),
        (("recipe", "--option", "=", "visual-search/o1"), ["plain,visual-search/o1"]),
        (("prices", "update", "--feed", "non"), ["plain,none"]),
        (("dia",), ["plain,diagnose"]),
        (("plan", "--horiz"), ["plain,--horizon"]),
        (("diagnose", "pla"), ["file,pla"]),
        (("quote", "plan.j"), ["file,plan.j"]),
    ],
)
def test_a_value_that_is_half_typed(
    words: tuple[str, ...], expected: list[str], planned: Path
) -> None:
    """Providers, GPUs, regions, offers, codes, options of the plan, feeds, commands and files."""
    assert planned.is_dir()
    assert set(expected) <= set(offered(*words))
    assert len(offered(*words)) < 60


def test_runs_are_offered_where_an_id_is_asked(planned: Path) -> None:
    """Runs that have not ended come first; where there is no journal, nothing fails."""
    assert [line for line in offered("down", "") if line.startswith("plain")] == []
    ended, living = a_spec(), a_spec()
    with open_journal() as journal:
        for spec in (living, ended):
            journal.open_run(spec, Decimal(1), datetime.now(UTC))
        journal.mark_run(ended.marks.run, "ended", datetime.now(UTC))
    runs = [f"plain,{living.marks.run}", f"plain,{ended.marks.run}"]
    for command in ("list", "logs", "ssh", "extend", "down"):
        assert offered(command, "") == runs
    assert offered("down", "--yes", living.marks.run[:4]) == runs[:1]
    assert (planned / "state").is_dir()


def test_an_answer_comes_at_once(planned: Path) -> None:
    """Less than 0.3 s of the processor, and nothing that takes long to import."""
    for words in (
        ("plan", "--provider", ""),
        ("plan", "--region", ""),
        ("quote", ""),
        ("recipe", "--option", ""),
        ("explain", ""),
        ("list", ""),
        ("",),
    ):
        assert min(_used_s(words) for _ in range(3)) < MOST_CPU_S, words  # the first compiles
        assert not set(HEAVY) & _imported(words)
    assert planned.is_dir()


def test_a_damaged_plan_offers_nothing(planned: Path) -> None:
    """A plan.json that cannot be read leads to files, not to a traceback on the screen."""
    for text in ("", "{", "[]", '{"jobs": [{"name": 3}]}', '{"jobs": null}'):
        (planned / "plan.json").write_text(text)
        assert not any(offered("recipe", "--option", ""))


def test_bash_completes_on_a_terminal(planned: Path, shell: Callable[..., Shell]) -> None:
    """In a real bash with the generated script, a key completes values, and the line runs."""
    bash = shell()
    bash.type(f"PATH={Path(GPUCOST).parent}:$PATH; cd {planned}\n")
    bash.type('eval "$(gpucost completion bash)"; echo set-$((1+1))\n')
    assert bash.shows("set-2")
    for typed, whole in (
        ("gpucost explain data-lo", "data-loading"),
        ("gpucost recipe plan.json --option visual-search/o1", "visual-search/o1"),
        ("gpucost prices --provider digi", "digitalocean"),
        ("gpucost recipe pla", "plan.json"),
    ):
        bash.type(f"{typed}\t")
        assert bash.shows(re.escape(whole.removeprefix(typed.split()[-1]))), bash.seen
        bash.type("\x15")


def _used_s(words: tuple[str, ...]) -> float:
    """Return the seconds of the processor that an answer takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert offered(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _imported(words: tuple[str, ...]) -> set[str]:
    typed = {"COMP_WORDS": " ".join(("gpucost", *words)), "COMP_CWORD": str(len(words))}
    environment = {**os.environ, **typed, "_GPUCOST_COMPLETE": "bash_complete"}
    command = [sys.executable, "-X", "importtime", "-m", "gpucost"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
