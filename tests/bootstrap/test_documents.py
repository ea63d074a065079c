"""Every bootstrap is a valid cloud-init document whose scripts shellcheck finds nothing in."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pricing.errors import InputError
from templates.bootstrap_files import render_bootstrap, render_files
from tests.bootstrap.machines import HOSTILE, MACHINES, Machine, a_machine

_MOST_USER_DATA = 16_384  # bytes that EC2 takes
machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def _files(machine: Machine) -> dict[str, dict[str, Any]]:
    document = yaml.safe_load(render_bootstrap(machine))
    return {file["path"]: file for file in document["write_files"]}


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; `make test-tools` installs it on Debian")
    return found


@machines
def test_cloud_init_takes_it(machine: Machine, tmp_path: Path) -> None:
    """`cloud-init schema` finds nothing, and the document fits every provider's limit."""
    path = tmp_path / "user-data"
    path.write_text(render_bootstrap(machine), encoding="utf-8")
    assert path.stat().st_size <= _MOST_USER_DATA
    ran = subprocess.run(
        [_tool("cloud-init"), "schema", "--config-file", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Valid" in ran.stdout + ran.stderr


@machines
def test_shellcheck_finds_nothing(machine: Machine, tmp_path: Path) -> None:
    """Every script passes shellcheck without an exception but those that it names itself."""
    scripts = []
    for name, file in _files(machine).items():
        if file["content"].startswith("#!"):
            scripts.append(tmp_path / Path(name).name)
            scripts[-1].write_text(file["content"], encoding="utf-8")
    assert len(scripts) >= 3
    ran = subprocess.run(
        [_tool("shellcheck"), *map(str, scripts)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


@machines
def test_the_document_is_what_was_meant(machine: Machine) -> None:
    """Only known keys, modes as text, and the bootstrap as the one command."""
    document = yaml.safe_load(render_bootstrap(machine))
    assert set(document) == {"ssh_pwauth", "write_files", "runcmd"}
    assert document["runcmd"] == [["/opt/gpucost/bootstrap.sh"]]
    assert all(isinstance(file["permissions"], str) for file in document["write_files"])
    told = {file["path"]: file["text"] for file in json.loads(render_files(machine))}
    assert told == {path: file["content"] for path, file in _files(machine).items()}


@machines
def test_a_machine_with_an_end_has_a_timer(machine: Machine) -> None:
    """The deadline is there as a time of day and as a time since boot, or not at all."""
    files = _files(machine)
    timer = files.get("/etc/systemd/system/gpucost-deadline.timer", {}).get("content", "")
    if machine["end"] == "none":
        assert timer == ""
        assert "gpucost-deadline" not in render_bootstrap(machine)
        return
    assert "OnCalendar=2026-11-21 20:15:00 UTC" in timer
    assert "OnBootSec=28800s" in timer
    assert "enable --now gpucost-deadline.timer" in files["/opt/gpucost/bootstrap.sh"]["content"]


def test_the_end_is_the_providers() -> None:
    """DigitalOcean destroys by its API; at AWS what powers off is terminated."""
    ocean = _files(a_machine())["/opt/gpucost/end.sh"]["content"]
    assert 'DELETE "https://api.digitalocean.com/v2/droplets/$id"' in ocean
    assert "poweroff" not in ocean
    assert "poweroff" in _files(a_machine(end="poweroff"))["/opt/gpucost/end.sh"]["content"]


def test_the_environment_is_the_plans() -> None:
    """Every variable of the plan is there as it was told, and the place for temporary files."""
    text = _files(MACHINES["eight H100, starved"])["/etc/gpucost/environment"]["content"]
    assert text.splitlines() == [
        "GPUCOST_DATALOADER_WORKERS=16",
        "OMP_NUM_THREADS=10",
        "TMPDIR=/scratch",
    ]


def test_jobs_that_share_find_mps() -> None:
    """Under MPS the environment names the places of its daemon; in turns there is none."""
    shared, turns = (
        _files(MACHINES[name])["/etc/gpucost/environment"]["content"]
        for name in ("shared by MPS", "shared in turns")
    )
    assert "CUDA_MPS_PIPE_DIRECTORY=/run/gpucost-mps" in shared
    assert "MPS" not in turns


def test_names_of_jobs_cannot_become_code() -> None:
    """A job's name is reduced to plain letters."""
    text = render_bootstrap(MACHINES["hostile names"])
    assert "reboot)" not in text
    assert "rm -rf / #" not in text
    assert HOSTILE not in text


@pytest.mark.parametrize("change", [{"end": "explode"}, {"sharing": "mig"}])
def test_what_no_machine_can_do_is_refused(change: Machine) -> None:
    """An end or a sharing mode without a script is an error, not an empty script."""
    with pytest.raises(InputError):
        render_bootstrap(a_machine(**change))
