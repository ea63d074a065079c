"""What a job may be made of, what is refused before anything is launched, and how steps fail."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.jobs.conftest import PATH, known_machine
from tests.gpucost.jobs.test_job_run import OURS, provision, results
from tests.providers.fakes.sshd import Machine

DRY = ("provision", "--type", "digitalocean/gpu-h100x1-80gb", "--ttl", "2h", "--dry-run")
RECIPE = {"schema": "gpucost.recipe/v1", "job": "a", "option": "o1", "actions": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--sync", "."), "--sync: only with --run"),
        (("--recipe", "r.json", "--collect", "x/"), "--collect, --recipe: only with --run"),
        (("--run", " "), "--run is empty"),
        (("--run", "x", "--no-wait"), "--no-wait leaves them before"),
        (("--run", "x", "--sync", "none"), "--sync none: there is no such folder"),
        (("--run", "x", "--data", "none"), "nor an address that begins with s3://"),
        (("--run", "x", "--collect", "../up"), "name a file or folder below the code"),
        (("--run", "x", "--collect", "/etc"), "name a file or folder below the code"),
        (("--run", "x", "--collect", "."), "name a file or folder below the code"),
        (("--run", "x", "--recipe", "none.json"), "--recipe none.json: cannot be read"),
        (("--run", "x", "--recipe", "other.json"), "not a recipe"),
    ],
    ids=str,
)
def test_what_is_refused_before_anything_is_looked_at(
    call: Call, write: Write, words: tuple[str, ...], told: str
) -> None:
    """Exit 2, in a sentence that names the option."""
    write("other.json", {"schema": "gpucost.plan/v1"})
    ran = call(*DRY, *words)
    assert ran.code == 2
    assert told in ran.err


def test_the_preview_lists_steps_and_what_is_sent(call: Call, write: Write, project: Path) -> None:
    """Files and megabytes, what is fetched there, what comes back, what must be known."""
    (project / ".env").write_text("TOKEN=1", encoding="utf-8")
    (project / "requirements.txt").write_text("numpy\n", encoding="utf-8")
    recipe = write("recipe.json", RECIPE)
    job = ("--sync", str(project), "--data", "s3://b/c", "--run", "python train.py")
    words = (*DRY, *job, "--collect", "outputs/", "--recipe", recipe)
    told = call(*words, "-f", "json").json["job"]
    assert [step["step"] for step in told["steps"]] == [
        "data",
        "code",
        "environment",
        "gpucost",
        "job",
    ]
    assert "8 files" in told["steps"][1]["what"]
    assert told["collect"] == ["outputs/", "after.json"]
    shown = call(*words).out
    assert "s3://b/c, fetched there" in shown
    assert ".env may hold secrets" in shown
    assert "uv, from requirements.txt" in shown
    assert "under the recipe" in shown


def test_a_failing_step_says_which_and_why_and_ends_the_machine(
    quick_machine: Machine, project: Path, call: Call
) -> None:
    """Exit 5 with the last lines of its log; the command never ran, and nothing is left there."""
    data = ("--data", "https://127.0.0.1:1/none.tar")
    ran = call(*provision(quick_machine, project, "python3 train.py", *data))
    assert ran.code == 5
    assert "step data failed" in ran.err
    assert "curl: (7)" in ran.err
    assert "trains" not in ran.out
    assert [path for path in OURS if (quick_machine.root / path).exists()] == []


def test_results_that_do_not_come_keep_the_machine(
    quick_machine: Machine, project: Path, call: Call
) -> None:
    """A path that the job did not write: exit 6, the machine stays, and is said how to look."""
    words = provision(quick_machine, project, "python3 train.py", "--collect", "model.bin")
    ran = call(*words)
    assert ran.code == 6
    assert "model.bin of" in ran.err
    run = ran.err.split("gpucost ssh ")[1][:8]
    code = quick_machine.root / "scratch/gpucost/code"
    assert (code / "outputs").is_dir()
    program = str(Path(sys.executable).with_name("gpucost"))
    inside = ("ssh", run, "--", "ls", str(code / "outputs"))
    there = subprocess.run((program, *inside), check=False, capture_output=True, text=True)
    assert there.stdout == "Gewichte für später.txt\n", there.stderr
    (code / "model.bin").write_bytes(b"m")
    again = call("logs", run, "-f")
    assert again.code == 0, again.err
    assert (results() / "model.bin").read_bytes() == b"m"
    assert [path for path in OURS if (quick_machine.root / path).exists()] == []


def test_the_environment_of_a_project_is_made_by_uv(
    tmp_path: Path, quick_machine: Machine, project: Path, call: Call
) -> None:
    """The command runs in the Python that `uv sync` made of pyproject.toml."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv")
    text = '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.8"\n'
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    program = "import sys; print(sys.prefix)"
    (project / "train.py").write_text(program, encoding="utf-8")
    _ = quick_machine
    told = {"PATH": f"{tmp_path / 'programs'}:{Path(uv).parent}:{PATH}", "HOME": os.environ["HOME"]}
    with known_machine(tmp_path, "uv", told | _stub()) as one:
        ran = call(*provision(one, project, "python train.py"))
        assert ran.code == 0, ran.err
        assert ran.out.strip() == str(one.root / "scratch/gpucost/env")


DOCKER = """#!/bin/sh
echo "$@" >>"$GPUCOST_ROOT/docker.log"
case "$1" in run) ;; *) exit 0 ;; esac
while [ "$1" != example/image:1 ]; do shift; done
shift
exec "$@"
"""


def test_a_command_runs_in_a_container(
    tmp_path: Path, quick_machine: Machine, project: Path, call: Call
) -> None:
    """The image is pulled where it is missing; the folders of the job are there, not the token."""
    docker = tmp_path / "programs" / "docker"
    docker.write_text(DOCKER, encoding="utf-8")
    docker.chmod(0o755)
    words = provision(quick_machine, project, "python3 train.py", "--container", "example/image:1")
    ran = call(*words)
    assert ran.code == 0, ran.err
    assert "trains in" in ran.out
    asked = (quick_machine.root / "docker.log").read_text(encoding="utf-8")
    assert "image inspect example/image:1" in asked
    assert f"--volume {quick_machine.root}/scratch/gpucost:" in asked
    assert "/etc/gpucost/environment:ro" in asked
    assert "/etc/gpucost:" not in asked


def _stub() -> dict[str, str]:
    from gpucost.version import __version__  # noqa: PLC0415 - beside its use

    return {"GPUCOST_VERSION": __version__}


def test_the_request_is_for_its_owner_alone(
    quick_machine: Machine, project: Path, call: Call, tmp_path: Path
) -> None:
    """A command may hold a secret: its file is 0600, and neither journal nor events have it."""
    secret = "python3 -c 'import os' --token hunter2hunter2"  # noqa: S105 - a test's
    words = provision(quick_machine, project, secret, "--collect", "none")
    assert call(*words).code == 6  # the machine is kept, and the request with it
    (folder,) = (tmp_path / "my state" / "jobs").iterdir()
    request = folder / "request.json"
    assert request.stat().st_mode & 0o777 == 0o600
    assert json.loads(request.read_text(encoding="utf-8"))["command"] == secret
    assert b"hunter2hunter2" not in (tmp_path / "my state" / "journal.sqlite").read_bytes()
    assert call("down", folder.name, "--yes").code == 0
    assert not request.exists()
