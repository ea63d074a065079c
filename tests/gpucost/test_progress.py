"""Long work says how far it is on a terminal, and nowhere else."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpucost.views import output
from pricing.listing import counted
from tests.conftest import ROOT
from tests.gpucost.terminal import HERE, Terminal

EXAMPLE = ROOT / "examples" / "visual-search.json"
JOBS = 6
WORK = (
    "import time\n"
    "from gpucost.views.output import progress\n"
    "told = progress('planned {done:,} of {total:,} jobs', quiet=QUIET)\n"
    "told(1, 5000); time.sleep(1.2); told(1200, 5000); time.sleep(0.3); told(5000, 5000)\n"
    "print('the answer')\n"
)


@pytest.fixture
def fleet(empty_folder: Path) -> Path:
    """A folder of many jobs that are alike but for their names."""
    folder = empty_folder / "fleet"
    folder.mkdir()
    document = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    for number in range(JOBS):
        job = {**document["job"], "name": f"job-{number}"}
        text = json.dumps({**document, "job": job})
        (folder / f"job-{number}.json").write_text(text, encoding="utf-8")
    return folder


def _seen(terminal: Terminal) -> str:
    return "\n".join(line for view in terminal.views for line in view)


def _environment() -> dict[str, str]:
    return {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("quiet", [False, True])
def test_a_line_that_is_gone_at_the_end(quiet: bool) -> None:  # noqa: FBT001 - a case
    """After a second of work a line tells how far it is; quiet, and when it is done, none does."""
    script = WORK.replace("QUIET", str(quiet))
    shown = Terminal([sys.executable, "-c", script], _environment())
    assert shown.code == 0
    assert ("planned 1,200 of 5,000 jobs" in _seen(shown)) is not quiet
    assert "planned 1 of" not in _seen(shown)
    assert shown.printed == ["the answer"]


def test_a_pipe_is_told_nothing() -> None:
    """Standard error of a pipe has no line of it."""
    command = [sys.executable, "-c", WORK.replace("QUIET", "False")]
    ran = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("the answer\n", "")


def test_a_plan_of_many_jobs_says_how_far_it_is(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal `plan` counts its jobs; the answer is on the screen alone afterwards."""
    monkeypatch.setattr(output, "_FIRST_S", 0.0)  # else only what takes a second is told
    command = [HERE, "plan", str(fleet), "--as-of", "2026-11-22", "--no-color"]
    shown = Terminal(command, _environment())
    assert shown.code == 0
    assert re.search(rf"planned \d+ of {JOBS} jobs", _seen(shown))
    assert not any("planned" in line for line in shown.printed)
    quiet = Terminal([*command, "-q"], _environment())
    assert "planned" not in _seen(quiet)


def test_one_of_a_kind_is_singular() -> None:
    """One job, two jobs, thousands with a comma, no job."""
    told = [counted(n, "job") for n in (0, 1, 2, 1200, 1.5)]
    assert told == ["0 jobs", "1 job", "2 jobs", "1,200 jobs", "1.5 jobs"]
