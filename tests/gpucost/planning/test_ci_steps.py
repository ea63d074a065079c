"""The steps of action.yml and of the GitLab snippet run as they stand, with stand-ins for services.

`gh` is a script that keeps what it is asked; `gpucost` is this program; nothing is installed.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.gpucost.conftest import Write
from tests.gpucost.documents import AS_OF, training

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")

_GH = """#!/bin/sh
printf '%s\\n' "$*" >> gh-calls.txt
case "$*" in *--jq*) cat gh-answer.txt ;; esac
"""


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """Return an environment with gpucost, a gh that notes its calls, a pip that does nothing."""
    folder = tmp_path / "tools"
    folder.mkdir()
    python = shlex.quote(sys.executable)
    for name, text in (
        ("gpucost", f'#!/bin/sh\nexec {python} -m gpucost "$@"\n'),
        ("gh", _GH),
        ("pip", "#!/bin/sh\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GPUCOST_CACHE_DIR": str(tmp_path / "cache"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_REPOSITORY": "someone/project",
        "NUMBER": "7",
        "GH_TOKEN": "none",
    }


def _steps() -> list[dict[str, Any]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps: list[dict[str, Any]] = action["runs"]["steps"]
    return steps


def _bash(script: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(bash, env=env, capture_output=True, text=True, check=False)


def test_inputs_reach_the_shell_as_variables_only() -> None:
    """No step pastes an input into its script, where its text would be run."""
    for step in _steps():
        assert "${{" not in step["run"], step["name"]
        assert step["shell"] == "bash"


@pytest.mark.parametrize("known", ["", "4711"], ids=["first", "again"])
def test_the_action_comments_once_and_holds_the_limit(
    known: str, tools: dict[str, str], write: Write, empty_folder: Path
) -> None:
    """Plan, comment and gate run; a comment that is there is updated, else one is added; exit 7."""
    write("profile.json", training())
    (empty_folder / "gh-answer.txt").write_text(f"{known}\n" if known else "")
    canary = empty_folder / "canary"
    canary.write_text("as it was")
    for name in ("plan.json", "plan.txt", "gpucost-comment.md"):  # as a pull request may bring them
        (empty_folder / name).symlink_to(canary)
    asked = {
        "PROFILE": "profile.json",
        "PLAN_OPTIONS": f"--as-of {AS_OF}",
        "BASE_PLAN": "",
        "FAIL_OVER": "1",
        "FAIL_OVER_INCREASE": "",
    }
    ran = [_bash(step["run"], {**tools, **asked}) for step in _steps()[1:]]
    assert [one.returncode for one in ran] == [0, 0, 0, 7], [one.stderr for one in ran]
    assert "is above --fail-over $1.00" in ran[-1].stderr
    assert canary.read_text() == "as it was"
    written = (empty_folder / "gpucost-comment.md").read_text()
    assert written == Path(tools["GITHUB_STEP_SUMMARY"]).read_text()
    _, call = (empty_folder / "gh-calls.txt").read_text().splitlines()
    place = f"comments/{known}" if known else "issues/7/comments"
    assert f"repos/someone/project/issues/{place.removeprefix('issues/')}" in call
    assert ("PATCH" if known else "POST") in call


def test_the_gitlab_lines_run(tools: dict[str, str], write: Write) -> None:
    """Each script line of the snippet in the guide runs, and the last one holds the limit."""
    page = (ROOT / "docs/how-to/use-in-ci.md").read_text(encoding="utf-8")
    found = re.search(r"```yaml\n(gpu-cost:.*?)```", page, re.DOTALL)
    assert found is not None
    job = yaml.safe_load(found[1])["gpu-cost"]
    write("profile.json", training())
    asked = {**tools, "GPU_COST_LIMIT": "1"}
    ran = _bash("\n".join(job["script"]), asked)
    assert ran.returncode == 7, ran.stderr
    assert "is above --fail-over $1.00" in ran.stderr
    assert set(job["artifacts"]["paths"]) == {"plan.json", "gpucost-comment.md"}
    assert all(Path(name).is_file() for name in job["artifacts"]["paths"])
