"""Every bootstrap is the document that was meant; cloud-init itself takes it apart."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pricing.errors import InputError
from templates.bootstrap_files import MOST_PLAIN, MachineBootstrap, render_bootstrap, render_files
from tests.bootstrap.box import parts
from tests.bootstrap.machines import HOSTILE, MACHINES, a_machine

machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


HEREDOC = re.compile(
    r"^put (\d+) (\S+) <<'END_OF_FILE'\n(.*?)^END_OF_FILE$", re.MULTILINE | re.DOTALL
)


def _config(machine: MachineBootstrap) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(parts(render_bootstrap(machine))["cloud-config"])
    return found


def _files(machine: MachineBootstrap) -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in _config(machine)["write_files"]}


def _armed(machine: MachineBootstrap) -> dict[str, str]:
    """The files that the boothook writes, and the boothook itself."""
    hook = parts(render_bootstrap(machine)).get("cloud-boothook", "")
    files = {path: text for _, path, text in HEREDOC.findall(hook)}
    return files | ({"boothook": hook} if hook else {})


def tool(name: str) -> str:
    """Where a program of the system is; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; `make test-tools` installs it on Debian")
    return found


@machines
def test_the_document_is_what_was_meant(machine: MachineBootstrap) -> None:
    """Only known keys, modes as text, and the bootstrap as the one command."""
    document = _config(machine)
    assert set(document) == {"ssh_pwauth", "write_files", "runcmd"}
    assert document["runcmd"] == [["/opt/gpucost/bootstrap.sh"]]
    assert all(isinstance(file["permissions"], str) for file in document["write_files"])
    told = {file["path"]: file["text"] for file in json.loads(render_files(machine))}
    assert told == {path: file["content"] for path, file in _files(machine).items()}


@machines
def test_a_machine_with_an_end_is_armed_by_the_boothook(machine: MachineBootstrap) -> None:
    """The deadline is there, as a time and as a length of life, before cloud-config is read."""
    armed = _armed(machine)
    if machine.end == "none":
        assert armed == {}
        assert "gpucost-deadline" not in render_bootstrap(machine)
        return
    assert next(iter(parts(render_bootstrap(machine)))) == "cloud-boothook"
    assert "echo 'k3f9xw2m 1795292100 28800' | put 0644 /etc/gpucost/deadline" in armed["boothook"]
    timer = armed["/etc/systemd/system/gpucost-deadline.timer"]
    assert "OnCalendar=2026-11-21 20:15:00 UTC" in timer
    assert "OnBootSec=28800s" in timer


def test_the_watch_waits_for_nothing_and_is_kept_alive(tmp_path: Path) -> None:
    """Systemd finds no fault with the units; the watch starts before cloud-init is done."""
    armed = _armed(a_machine())
    units = [name for name in armed if name.startswith("/etc/systemd")]
    for name in units:
        text = armed[name].replace("ExecStart=/opt/gpucost/deadline.sh", "ExecStart=/bin/true")
        (tmp_path / Path(name).name).write_text(text, encoding="utf-8")
        assert "DefaultDependencies=no" in text  # sysinit.target waits for cloud-init
    assert "Restart=always" in armed[units[0]]
    assert "StartLimitIntervalSec=0" in armed[units[0]]
    ran = subprocess.run(
        [tool("systemd-analyze"), "verify", *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "gpucost" not in ran.stderr + ran.stdout


@pytest.mark.parametrize("machine", [a_machine(), MACHINES["spot at AWS"]], ids=["plain", "packed"])
def test_cloud_init_itself_arms_before_it_reads_the_rest(
    tmp_path: Path, machine: MachineBootstrap
) -> None:
    """cloud-init's own code takes the document apart, and runs the boothook as its handler does."""
    tool("cloud-init")
    document = render_bootstrap(machine, most_bytes=MOST_PLAIN)
    assert ("application/gzip" in document) == bool(machine.notices)
    (tmp_path / "user-data").write_text(document, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "systemctl").write_text('#!/bin/sh\necho "$*" >>"$GPUCOST_ROOT/calls"\n')
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "GPUCOST_ROOT": str(tmp_path)}
    ran = subprocess.run(
        ["/usr/bin/python3", "-c", _CLOUD_INIT, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in ran.stderr:
        pytest.skip("cloud-init's modules are not where the system's Python finds them")
    assert ran.stdout.split() == ["text/cloud-boothook", "text/cloud-config"], ran.stderr
    assert (tmp_path / "etc/gpucost/deadline").read_text() == "k3f9xw2m 1795292100 28800\n"
    assert (tmp_path / "opt/gpucost/deadline.sh").stat().st_mode & 0o111
    started = (tmp_path / "calls").read_text().splitlines()[-1]
    assert started == "start --no-block gpucost-deadline.service gpucost-deadline.timer"


_CLOUD_INIT = """
import pathlib, sys
from cloudinit import helpers, user_data
from cloudinit.handlers.boot_hook import BootHookPartHandler
folder = pathlib.Path(sys.argv[1])
paths = helpers.Paths({"cloud_dir": str(folder / "cloud")})
paths.get_ipath = lambda name=None: str(folder / "cloud" / name)
(folder / "cloud" / "boothooks").mkdir(parents=True)
document = user_data.UserDataProcessor(paths).process((folder / "user-data").read_text())
for part in document.walk():
    if part.is_multipart():
        continue
    print(part.get_content_type())
    if part.get_content_type() == "text/cloud-boothook":
        text = part.get_payload(decode=True).decode()
        handler = BootHookPartHandler(paths, None)
        handler.handle_part(None, part.get_content_type(), "part-001", text, None)
"""


def test_the_end_is_the_providers() -> None:
    """DigitalOcean destroys by its API; at AWS what powers off is terminated."""
    ocean = _armed(a_machine())["/opt/gpucost/end.sh"]
    assert 'DELETE https://api.digitalocean.com/v2/droplets/"${id:?}"' in ocean
    assert "poweroff" not in ocean
    assert "poweroff" in _armed(a_machine(end="poweroff"))["/opt/gpucost/end.sh"]


def test_the_environment_is_the_plans() -> None:
    """Every variable of the plan is there as it was told, and the place for temporary files."""
    text = _files(MACHINES["eight H100, starved"])["/etc/gpucost/environment"]["content"]
    assert text.splitlines() == [
        "NCCL_DEBUG=INFO",
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
def test_what_no_machine_can_do_is_refused(change: dict[str, str]) -> None:
    """An end or a sharing mode without a script is an error, not an empty script."""
    with pytest.raises(InputError):
        render_bootstrap(a_machine(**change))
