"""Machines over SSH: how far the bootstrap is, what ends the machine. Through paramiko.

Nothing secret stands in a command line: what is handed over goes through standard input, byte by
byte, into a file. The host key of a new machine is taken at the first connection and held to
afterwards.
"""

import ipaddress
import logging
import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import urlopen

from pricing.errors import InputError, ProviderError
from pricing.message import Message
from providers.interface import ANYWHERE, LaunchSpec, Resource
from providers.private_files import open_private, private_folder, sync_folder

_LAST_PORT = 65535
_IPV6 = (
    " An IPv6 address is not taken, because its colons are taken for a port's: give the machine a "
    "name in /etc/hosts or DNS, and write that."
)
_NAMED = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?"  # neither user nor host begins with a dash: no option
    r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


def check_address(text: str) -> str:
    """Return "user@host[:port]" as it is.

    Raises:
        InputError: it is not of that form; a port is from 1 to 65535.
    """
    match = _NAMED.fullmatch(text)
    if match is None or not 1 <= int(match["port"] or 1) <= _LAST_PORT:
        hint = _IPV6 if "[" in text or text.count(":") > 1 else ""
        raise InputError(Message("access.no-host", text=repr(text), last=_LAST_PORT, hint=hint))
    return text


CALLER = ("the address of this computer",)
"""Stands in a launch for the caller's own address, which is looked up once it is checked."""

_SERVICE = "https://checkip.amazonaws.com"
"""AWS' own answer to "what is my address", docs.aws.amazon.com, EC2 user guide, security groups."""

_ALL = "anywhere"
_WAIT_S = 10
_LONGEST = 64


def networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return what --ssh-from names; nothing named: the caller's own address.

    Raises:
        InputError: one is neither an address nor a network.
    """
    chosen: list[str] = []
    problems: list[str] = []
    for text in texts:
        try:
            chosen += ANYWHERE if text == _ALL else [str(ipaddress.ip_network(text, strict=False))]
        except ValueError:
            problems.append(
                f"--ssh-from {text} is not a network; write an address such as 203.0.113.7, a "
                f"network such as 203.0.113.0/24, or {_ALL}."
            )
    if problems:
        raise InputError(problems)
    return tuple(dict.fromkeys(chosen)) or CALLER


def with_caller(spec: LaunchSpec, endpoint: str | None) -> LaunchSpec:
    """Return the launch with the caller's address in place of its placeholder.

    Args:
        spec: what is launched.
        endpoint: of the provider, where it is another than the public one.

    Raises:
        ProviderError: the address cannot be found out.
    """
    if spec.ssh_from != CALLER:
        return spec
    address = _public() if endpoint is None else _towards(endpoint)
    return replace(spec, ssh_from=(str(ipaddress.ip_network(address)),))


def _towards(endpoint: str) -> str:
    """Return the address that connections from here to a private endpoint have; nothing is sent."""
    parts = urlsplit(endpoint)
    port = parts.port or 443
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            parts.hostname, port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise _address_unknown(error) from None


def _public() -> str:
    """Return the address under which the internet sees this computer."""
    try:
        with urlopen(_SERVICE, timeout=_WAIT_S) as answer:
            return str(ipaddress.ip_address(answer.read(_LONGEST).decode("ascii").strip()))
    except (OSError, ValueError) as error:
        raise _address_unknown(error) from None


def _address_unknown(error: Exception) -> ProviderError:
    why = f"{type(error).__name__}: {error}"
    return ProviderError(Message("access.no-address", error=why))


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a machine's bootstrap is.

    Attributes:
        state: pending while there is no word.
        reason: why it failed.
    """

    state: Literal["pending", "ready", "failed"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a machine says about its own end, as it was seen there just now.

    Attributes:
        deadline: that its watch goes by; None where it has none.
        clock: its time of day; None where it does not say.
        fault: why it would not end itself; empty: it would.
        answered: whether it could be asked.
        life_s: longest life that its watch goes by, in seconds; None where it has none.
    """

    deadline: datetime | None
    clock: datetime | None
    fault: str
    answered: bool = True
    life_s: int | None = None


ROOT = "${GPUCOST_ROOT:-}"  # a test's sshd sets it; on a machine it is empty
STATUS = f"{ROOT}/var/lib/gpucost/status"
LOG = f"{ROOT}/var/lib/gpucost/bootstrap.log"
END_LOG = f"{ROOT}/var/lib/gpucost/end.log"
OWN_ID = f"{ROOT}/var/lib/gpucost/id"
END_HEADER = f"{ROOT}/etc/gpucost/end.header"
DEADLINE = f"{ROOT}/etc/gpucost/deadline"
RENDEZVOUS = f"{ROOT}/etc/gpucost/rendezvous"
ARMED = f"{ROOT}/opt/gpucost/armed"

_CONNECT_S = 10.0
_COMMAND_S = 30.0
_PORT = 22
_READY = "ready"
_FAILED = "failed: "
_RENDEZVOUS_PORT = 29500  # torchrun's own
_AS_ROOT = '[ "$(id -u)" = 0 ] && as_root= || as_root="sudo -n"'
_PUT = (
    'umask 077 && mkdir -p "${1%/*}" && cat > "$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAccess:
    """How to get into machines.

    Attributes:
        user: to log in as.
        key: file of the private key; None: the keys of the user's agent and home.
        known_hosts: file of host keys; new ones are added where `trusts_new`.
        trusts_new: whether a host that was never seen is taken.
    """

    user: str
    key: Path | None
    known_hosts: Path
    trusts_new: bool = True

    @contextmanager
    def open(self, address: str) -> Iterator[Any]:
        """Open a connection to "host[:port]".

        Raises:
            ProviderError: it cannot be reached, or refuses the key, or is another host than before.
        """
        import paramiko  # noqa: PLC0415 - heavy, only here

        # It would print what the machine says as it is, and a traceback.
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)
        host, _, port = address.partition(":")
        connection = paramiko.SSHClient()
        if self.known_hosts.exists():
            connection.load_host_keys(str(self.known_hosts))
        policy = paramiko.AutoAddPolicy if self.trusts_new else paramiko.RejectPolicy
        connection.set_missing_host_key_policy(policy())
        try:
            connection.connect(
                host,
                port=int(port or _PORT),
                username=self.user,
                key_filename=None if self.key is None else str(self.key),
                allow_agent=self.key is None,
                look_for_keys=self.key is None,
                timeout=_CONNECT_S,
                banner_timeout=_CONNECT_S,
                auth_timeout=_CONNECT_S,
            )
            if self.trusts_new:
                connection.save_host_keys(str(self.known_hosts))
            yield connection
        except (OSError, EOFError, paramiko.SSHException) as error:
            kind = type(error).__name__
            raise ProviderError(f"{address} cannot be reached over SSH: {kind}: {error}") from None
        finally:
            connection.close()

    def run(self, address: str, command: str, stdin_text: str = "") -> tuple[int, str]:
        """Run a shell command with `given` as standard input; return exit status and output."""
        with self.open(address) as connection:
            stdin, stdout, _ = connection.exec_command(
                f"/bin/sh -c {shlex.quote(command)}", timeout=_COMMAND_S
            )
            stdin.write(stdin_text)
            stdin.channel.shutdown_write()
            text = stdout.read().decode("utf-8", "replace")
            return int(stdout.channel.recv_exit_status()), text


def own_door(host: str) -> SshAccess:
    """Return the way into a machine of the user's own; a host never met before is refused."""
    known_hosts_file = Path.home() / ".ssh" / "known_hosts"
    user = host.rpartition("@")[0] or "root"
    return SshAccess(user=user, key=None, known_hosts=known_hosts_file, trusts_new=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The way into the machines of a run.

    Attributes:
        door: user and keys.
        token: what a machine ends itself with; empty where it needs none.
    """

    door: SshAccess
    token: str = field(default="", repr=False)

    def status(self, machine: Resource) -> Status:
        """Return how far the bootstrap is; pending while the machine does not answer."""
        try:
            code, text = self.door.run(machine.address, f'cat "{STATUS}"')
        except ProviderError:
            return Status(state="pending")
        word = text.strip()
        if code == 0 and word == _READY:
            return Status(state="ready")
        if code == 0 and word.startswith(_FAILED):
            return Status(state="failed", reason=word.removeprefix(_FAILED))
        return Status(state="pending")

    def deliver(self, machine: Resource, peers: tuple[Resource, ...]) -> None:
        """Write where the peers are, the machine's own id, the token where only root reads it.

        The token becomes no text of a shell or of a program's settings: it is a header in a file,
        which curl sends as it is.

        Raises:
            ProviderError: one of them is not there afterwards.
        """
        if len(peers) > 1:
            first = peers[0].private_address or peers[0].address
            variables = {"NODE_RANK": peers.index(machine), "MASTER_ADDR": first}
            variables |= {"MASTER_PORT": _RENDEZVOUS_PORT}
            self._write_file(
                machine, RENDEZVOUS, "".join(f"{n}={v}\n" for n, v in variables.items()), "0644"
            )
        if self.token:
            self._write_file(machine, OWN_ID, f"{machine.id}\n", "0644")
            self._write_file(machine, END_HEADER, f"Authorization: Bearer {self.token}\n", "0600")

    def _write_file(self, machine: Resource, path: str, text: str, mode: str) -> None:
        """Write a file of root's as a whole.

        Raises:
            ProviderError: it is not there afterwards.
        """
        command = f'{_AS_ROOT}; $as_root sh -c {shlex.quote(_PUT)} put "{path}" {mode}'
        code, _ = self.door.run(machine.address, command, text)
        if code != 0:
            problem = f"{machine.name}: {path.removeprefix(ROOT)} could not be written ({code})."
            raise ProviderError(problem)

    def proof(self, machine: Resource) -> Proof:
        """Return what ends the machine, as it says itself; a fault where it does not answer."""
        try:
            command = f'{_AS_ROOT}; $as_root env GPUCOST_ROOT="{ROOT}" "{ARMED}"'
            code, text = self.door.run(machine.address, command)
        except ProviderError as error:
            why = error.problems[0]
            return Proof(deadline=None, clock=None, fault=why, answered=False)
        facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        fault = facts.get("fault", "it does not say what ends it")
        if facts.get("run") != machine.marks.run:
            fault = fault or f"it was set up for run {facts.get('run')}"
        if facts.get("machine", machine.id) != machine.id:
            fault = fault or f"it takes itself for {facts['machine']}, and is {machine.id}"
        if code != 0:
            fault = fault or f"it says so with exit status {code}"
        return Proof(
            deadline=_time(facts.get("deadline_s")),
            clock=_time(facts.get("clock_s")),
            fault=fault,
            life_s=int(life) if (life := facts.get("ttl_s", "")).isdecimal() else None,
        )

    def set_deadline(self, machine: Resource, deadline: datetime, life_s: int) -> None:
        """Write the file that its watch reads at each look.

        Raises:
            ProviderError: it is not there afterwards.
        """
        line = f"{machine.marks.run} {int(deadline.timestamp())} {life_s}\n"
        self._write_file(machine, DEADLINE, line, "0644")

    def log(self, address: str) -> str:
        """Return the log of the bootstrap, and behind it that of the watch.

        Raises:
            ProviderError: the machine cannot be reached.
        """
        return self.door.run(address, f'cat "{LOG}"; cat "{END_LOG}" 2>/dev/null')[1]


def _time(seconds: str | None) -> datetime | None:
    """Return seconds since 1970 as a time; None where they are not a number."""
    try:
        return datetime.fromtimestamp(int(seconds or ""), UTC)
    except (ValueError, OverflowError, OSError):
        return None


_FOLDER = "keys"
_PRIVATE = "id_ed25519"
_KNOWN_HOSTS = "known_hosts"


def make_key(state: Path, run: str) -> str:
    """Make the key pair of a run and return its public half in OpenSSH form."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - heavy, only here
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - the same

    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    folder = state / _FOLDER / run
    for parent in (state, folder.parent, folder):
        private_folder(parent)
    os.close(open_private(folder / _KNOWN_HOSTS, os.O_RDWR))
    handle = open_private(folder / _PRIVATE, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(handle, "wb") as stream:
        stream.write(private)
        stream.flush()
        os.fsync(handle)
    for parent in (folder, folder.parent):
        sync_folder(parent)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return f"{public.decode()} gpucost-{run}"


def key_file(state: Path, run: str) -> Path:
    """Return where the private half is kept."""
    return state / _FOLDER / run / _PRIVATE


def known_hosts(state: Path, run: str) -> Path:
    """Return where the host keys of the run's machines are kept, as they were first seen."""
    return state / _FOLDER / run / _KNOWN_HOSTS


def runs_with_keys(state: Path) -> tuple[str, ...]:
    """Return the runs of which a key pair is kept, by name."""
    return tuple(sorted(path.name for path in (state / _FOLDER).glob("*")))


def drop_key(state: Path, run: str) -> None:
    """Remove the key pair of a run; no error where there is none."""
    shutil.rmtree(state / _FOLDER / run, ignore_errors=True)
