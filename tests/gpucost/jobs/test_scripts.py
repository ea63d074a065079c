"""What runs on the machine: scripts that shellcheck has nothing against, for every sort of job."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from templates import job_scripts
from templates.job_scripts import (
    JobScript,
    data_script,
    data_sent_script,
    environment_script,
    gpucost_script,
    job_script,
    prepare_script,
    sent_script,
    task_script,
)
from tests.gpucost.full_disk import full
from tests.waiting import until

__all__ = ["full"]  # a fixture

ODD = '/scratch/it\'s "odd" $(reboot) `x`'


def _job(command: str = "python train.py", *, container: str = "", recipe: bool = False) -> str:
    job = JobScript(run="k3f9", work=ODD, command=command, container=container, recipe=recipe)
    return job_script(job)


SCRIPTS = {
    "task": task_script(),
    "prepare": prepare_script(),
    "sent": sent_script(ODD, [f"{'0' * 64}  a $(b)"], ["out $(x)/"], "3 files"),
    "data sent": data_sent_script(ODD, 3, 10**12, "3 files"),
    "s3": data_script(ODD, "s3://bucket/$(reboot)/x"),
    "https": data_script(ODD, "https://example.com/a%20b.tar?x=$(y)"),
    **{
        kind: environment_script(ODD, kind)
        for kind in ("uv.lock", "pyproject.toml", "requirements.txt")
    },
    "container": environment_script(ODD, "container", "ghcr.io/a/b:1"),
    "gpucost": gpucost_script(ODD, f"{ODD}/gpucost-0.1.0-py3-none-any.whl", "0" * 64, "0.1.0"),
    "job": _job(),
    "job under a recipe": _job(recipe=True),
    "job in a container": _job(container="ghcr.io/a/b:1"),
    "job that launches itself": _job("torchrun --nproc-per-node=8 train.py"),
    "job for a shell": _job("A=1 python train.py > 'it''s' && echo done"),
}


def test_shellcheck_has_nothing_against_any_script(tmp_path: Path) -> None:
    """Hostile names included: no value is taken apart or evaluated.

    SC2016 is what is wanted here: nothing is evaluated between single quotes.
    """
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck; `make test-tools` installs it on Debian")
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.sh").write_text(text, encoding="utf-8")
    files = sorted(str(path) for path in tmp_path.glob("*.sh"))
    done = subprocess.run(
        ["shellcheck", "--shell=sh", "--exclude=SC2016", *files],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python train.py --name 'a b'", "set -- python train.py --name 'a b'\n"),
        ("python train.py > log", "set -- sh -c 'python train.py > log'\n"),
        ("A=1 python train.py", "set -- sh -c 'A=1 python train.py'\n"),
        ("python ~/train.py", "set -- sh -c 'python ~/train.py'\n"),
        ("python train.py 'odd", "set -- sh -c "),
    ],
)
def test_a_command_goes_through_a_shell_only_where_it_needs_one(command: str, words: str) -> None:
    """Plain words stay words, so that what measures them knows the program."""
    assert words in _job(command)


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("python train.py", True),
        ("torchrun train.py", False),
        ("/usr/bin/torchrun train.py", False),
        ("accelerate launch train.py", False),
        ("python -m torch.distributed.run train.py", False),
        ("python torchrun.py", True),
    ],
)
def test_what_starts_its_own_processes_gets_no_second_torchrun(command: str, ours: bool) -> None:  # noqa: FBT001 - a table
    """Everything else starts through the machine's launcher."""
    assert ('set -- "$root/opt/gpucost/run" "$@"' in _job(command)) == ours


def test_the_end_token_stays_outside_of_a_container() -> None:
    """Of the machine's own folders a container sees programs and settings, not the token."""
    text = _job(container="a/b")
    assert "end.header" not in text
    assert '"$root/etc/gpucost" ' not in text


def test_nothing_is_fetched_and_run_unseen() -> None:
    """No script pipes an address into a shell; what is fetched to run has a sum, per machine."""
    folder = Path(job_scripts.__file__).parent
    texts = {path.name: path.read_text("utf-8") for path in folder.rglob("*.j2")}
    assert not [name for name, text in texts.items() if re.search(r"curl[^\n]*\|[^\n]*sh\b", text)]
    uv = texts["uv.j2"]
    assert len(set(re.findall(r"sum=([0-9a-f]{64})\b", uv))) == 2
    assert "--require-hashes" in uv
    assert "sha256sum --check" in uv
    unpinned = re.compile(r"pip install(?![^\n]*(?:--require-hashes|--requirements \{\{ kind))")
    assert not [name for name, text in texts.items() if unpinned.search(text)]


def test_a_job_that_fills_the_disk_of_its_machine_keeps_its_exit_status(full: Path) -> None:
    """What it ended with is told, and so its results are fetched, though not a byte is left."""
    (full / "filler").unlink()
    (full / "task").write_text(task_script(), encoding="utf-8")
    fill = f"cat /dev/zero >{full}/fill; exit 7\n"

    def task(*words: str, **more: str) -> str:
        line = ("sh", str(full / "task"), *words)
        env = {**os.environ, "GPUCOST_ROOT": str(full)}
        ran = subprocess.run(line, env=env, capture_output=True, text=True, check=True, **more)
        return ran.stdout

    task("start", "job", str(len(fill)), "once", input=fill)
    until(lambda: not task("read", "job", "0", "1").startswith("running"))
    assert task("read", "job", "0", "0").split()[:2] == ["ended", "7"]


@pytest.mark.parametrize("gpus", [("0", "1"), ()], ids=["two GPUs", "none"])
def test_every_gpu_of_a_rented_machine_is_measured(tmp_path: Path, gpus: tuple[str, ...]) -> None:
    """Those of a job in a container, too, whose processes are another's; without any, the host."""
    work, programs = tmp_path / "work", tmp_path / "bin"
    (work / "code").mkdir(parents=True)
    programs.mkdir()
    lists = "".join(f"echo {index}; " for index in gpus)
    for path, text in (
        (work / "gpucost", f'echo "$@" >{tmp_path}/words'),
        (programs / "nvidia-smi", f"{lists}true" if gpus else "exit 9"),
    ):
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    job = JobScript(run="k3f9", work=str(work), command="true", container="", recipe=False)
    places = {"PATH": f"{programs}:{os.environ['PATH']}", "GPUCOST_ROOT": str(tmp_path)}
    subprocess.run(["sh", "-c", job_script(job)], check=True, env=os.environ | places)
    asked = (tmp_path / "words").read_text(encoding="utf-8")
    assert ("--gpu-index 0,1" if gpus else "--no-gpu") in asked
