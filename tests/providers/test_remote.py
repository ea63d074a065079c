"""Machines over SSH, against a real sshd: status, log, and the end token that nobody else sees."""

import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest

from pricing.errors import ProviderError
from providers.interface import Resource
from providers.ssh.connection import Login, SshAccess, drop_key, key_file, make_key
from templates.bootstrap_files import render_bootstrap
from tests.bootstrap.box import parts
from tests.bootstrap.machines import a_machine as settings
from tests.providers.fakes.sshd import Machine, a_machine
from tests.providers.launches import a_spec

TOKEN = "dop_v1_" + "4ea9e4" * 8


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine."""
    with a_machine(tmp_path / "machine") as one:
        yield one


@pytest.fixture
def door(machine: Machine, tmp_path: Path) -> SshAccess:
    """The way in, with a file of host keys that does not exist yet."""
    user = machine.host.partition("@")[0]
    return SshAccess(user=user, key=machine.key, known_hosts=tmp_path / "known_hosts")


def _resource(machine: Machine) -> Resource:
    marks = a_spec().marks
    return Resource(
        kind="machine", id="1", name="one", region="", marks=marks, address=machine.address
    )


def _say(machine: Machine, text: str) -> None:
    path = machine.root / "var/lib/gpucost/status"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "state", "reason"),
    [
        ("ready\n", "ready", ""),
        ("failed: the driver shows 7 GPUs\n", "failed", "the driver shows 7 GPUs"),
        ("", "pending", ""),
    ],
)
def test_the_status_is_read(
    machine: Machine, door: SshAccess, text: str, state: str, reason: str
) -> None:
    """Ready, failed with its reason, or not there yet."""
    login = Login(door=door)
    assert login.status(_resource(machine)).state == "pending"
    _say(machine, text)
    status = login.status(_resource(machine))
    assert (status.state, status.reason) == (state, reason)


def test_a_machine_that_does_not_answer_is_pending(machine: Machine, door: SshAccess) -> None:
    """Without a connection nothing is known yet; that is not an error."""
    away = replace(_resource(machine), address="127.0.0.1:1")
    assert Login(door=door).status(away).state == "pending"


def test_a_banner_that_is_none_is_not_printed(
    door: SshAccess, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a machine sends in place of SSH's first line, nobody else writes it to a log."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as client:
                client.sendall(b"SSH-\x1b]0;owned\x07-x\r\n")

        Thread(target=answer, daemon=True).start()
        with (
            pytest.raises(ProviderError, match="cannot be reached over SSH"),
            door.open(f"127.0.0.1:{listener.getsockname()[1]}"),
        ):
            pass
    assert [one for one in caplog.records if one.name.startswith("paramiko")] == []


def test_the_end_token_is_root_only_and_never_in_a_command(
    machine: Machine, door: SshAccess
) -> None:
    """The token arrives through standard input, in a file of mode 0600 that curl can take."""
    login = Login(door=door, token=TOKEN)
    assert TOKEN not in repr(login)
    login.deliver(_resource(machine), (_resource(machine),))
    path = machine.root / "etc/gpucost/end.header"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (machine.root / "var/lib/gpucost/id").read_text() == f"{_resource(machine).id}\n"
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path.read_text(encoding="utf-8") == f"Authorization: Bearer {TOKEN}\n"
    assert TOKEN not in (machine.root.parent / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize("token", ['a"b', "a'b", "50%s", "$(reboot)", "a\nurl = x", "-K/x"])
def test_an_odd_token_arrives_as_it_is(machine: Machine, door: SshAccess, token: str) -> None:
    """Whatever a token is made of, it is bytes of a file: nothing takes it apart."""
    Login(door=door, token=token).deliver(_resource(machine), ())
    text = (machine.root / "etc/gpucost/end.header").read_text(encoding="utf-8")
    assert text == f"Authorization: Bearer {token}\n"


def test_the_machines_of_a_run_learn_where_the_first_is(machine: Machine, door: SshAccess) -> None:
    """Rank and private address of the first machine are handed over, where there are several."""
    first = replace(_resource(machine), id="0", private_address="10.0.0.5", address="192.0.2.9")
    mine = _resource(machine)
    Login(door=door).deliver(mine, (first, mine))
    text = (machine.root / "etc/gpucost/rendezvous").read_text(encoding="utf-8")
    assert text == "NODE_RANK=1\nMASTER_ADDR=10.0.0.5\nMASTER_PORT=29500\n"


SAYS = "#!/bin/sh\nprintf 'run=%s\\ndeadline_s=1795292100\\nclock_s=1795263300\\n{}' {}\n"


@pytest.mark.parametrize(
    ("more", "run", "fault"),
    [
        ("fault=\\n", "", ""),
        ("fault=nothing watches the deadline\\n", "", "nothing watches the deadline"),
        ("fault=\\n", "another", "it was set up for run another"),
        ("machine=77\\nfault=\\n", "", "it takes itself for 77, and is 1"),
        ("", "", "it does not say what ends it"),
    ],
    ids=str,
)
def test_the_proof_is_what_the_machine_says(
    machine: Machine, door: SshAccess, more: str, run: str, fault: str
) -> None:
    """Armed is only who says so of this run and this machine; each other answer is a fault."""
    one = _resource(machine)
    login = Login(door=door)
    assert login.proof(one).fault  # nothing is there that could say so
    path = machine.root / "opt/gpucost/armed"
    path.parent.mkdir(parents=True)
    path.write_text(SAYS.format(more, run or one.marks.run), encoding="utf-8")
    path.chmod(0o755)
    proof = login.proof(one)
    assert proof.fault == fault
    assert proof.deadline == datetime(2026, 11, 21, 20, 15, tzinfo=UTC)


def test_a_machine_takes_a_later_deadline_and_says_so(machine: Machine, door: SshAccess) -> None:
    """The real script of a machine reads back what was written over SSH, deadline and life."""
    one, login = _resource(machine), Login(door=door)
    run, until = one.marks.run, datetime(2026, 11, 21, 22, 15, tzinfo=UTC)
    hook = parts(render_bootstrap(settings(end="poweroff", run=run)))["cloud-boothook"]
    armed = re.search(r"/opt/gpucost/armed <<'END_OF_FILE'\n(.*?)END_OF_FILE", hook, re.DOTALL)
    assert armed is not None
    for name, text in (
        ("opt/gpucost/armed", armed[1]),
        ("proc/uptime", "100.00 0.00\n"),
        ("run/gpucost/beat", "95\n"),
        ("etc/gpucost/deadline", f"{run} 1795292100 28800\n"),
    ):
        path = machine.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    before = login.proof(one)
    assert (before.fault, before.life_s) == ("", 28800)
    login.set_deadline(one, until, 36000)
    after = login.proof(one)
    assert (after.fault, after.deadline, after.life_s) == ("", until, 36000)


def test_a_machine_that_does_not_answer_is_not_armed(machine: Machine, door: SshAccess) -> None:
    """No connection is a fault, in words."""
    away = replace(_resource(machine), address="127.0.0.1:1")
    assert "cannot be reached" in Login(door=door).proof(away).fault


def test_the_token_is_not_in_the_list_of_processes(machine: Machine, door: SshAccess) -> None:
    """While a command of the machine runs, `ps` shows the command and not what it was given."""
    command = 'cat >/dev/null; ps -ef > "${GPUCOST_ROOT:-}/ps"'
    door.run(machine.address, command, TOKEN)
    shown = (machine.root / "ps").read_text(encoding="utf-8")
    assert "ps -ef" in shown
    assert TOKEN not in shown


def test_another_host_key_is_refused(machine: Machine, door: SshAccess, tmp_path: Path) -> None:
    """The key of the first connection is held to: another one is an error, and nothing is sent."""
    door.run(machine.address, "true")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True
    )
    kind, text = (tmp_path / "other.pub").read_text(encoding="utf-8").split()[:2]
    told = f"[127.0.0.1]:{machine.port} {kind} {text}\n"
    door.known_hosts.write_text(told, encoding="utf-8")
    with pytest.raises(ProviderError, match="BadHostKey"):
        door.run(machine.address, "true")


def test_the_key_of_a_run_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Made with mode 0600 in a folder of mode 0700, and gone with the run."""
    public = make_key(tmp_path, "k3f9xw2m")
    assert public.startswith("ssh-ed25519 ")
    path = key_file(tmp_path, "k3f9xw2m")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    drop_key(tmp_path, "k3f9xw2m")
    assert not path.exists()
    drop_key(tmp_path, "k3f9xw2m")
