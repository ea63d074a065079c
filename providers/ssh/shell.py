"""One connection to a machine that many commands share, and that is made anew when it broke."""

import contextlib
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

from pricing.errors import ProviderError
from providers.ssh.connection import ROOT, SshAccess

_KEEP_ALIVE_S = 15
_SILENT_S = 120.0
_CHUNK = 1 << 16
_MOST_ANSWER = 1 << 26  # bytes; logs are read in parts of a MiB
_PORT = "22"


class LostConnectionError(ProviderError):
    """The connection broke, or could not be made; what was asked for may have been done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a command left.

    Attributes:
        code: its exit status.
        out: standard output.
        err: standard error, as text.
    """

    code: int
    out: bytes
    err: str


@dataclass(slots=True, kw_only=True)
class RemoteShell:
    """A machine on which commands are run.

    Attributes:
        door: the way in.
        address: "host[:port]".
    """

    door: SshAccess
    address: str
    _client: Any = field(default=None, init=False, repr=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def run(self, command: str, stdin_data: bytes | Callable[[IO[bytes]], None] = b"") -> Answered:
        """Run a command of the shell and return what it left.

        Args:
            command: for /bin/sh.
            stdin_data: goes to its standard input; where it is a function, that writes it.

        Raises:
            LostConnectionError: it is not known whether it ran.
        """
        with self._channel(command) as channel:
            if isinstance(stdin_data, bytes):
                channel.sendall(stdin_data)
            else:
                with channel.makefile_stdin("wb", _CHUNK) as stream:
                    stdin_data(stream)
            channel.shutdown_write()
            return self._answer(channel, channel.makefile("rb").read(_MOST_ANSWER))

    def read_from(self, command: str, take: Callable[[IO[bytes]], None]) -> Answered:
        """Run a command whose standard output `take` reads as a file of bytes.

        Raises:
            LostConnectionError: it is not known whether it ran.
        """
        with self._channel(command) as channel:
            channel.shutdown_write()
            take(channel.makefile("rb"))
            return self._answer(channel, b"")

    def _answer(self, channel: Any, out: bytes) -> Answered:  # noqa: ANN401 - paramiko has no types
        """Return what a command left; a machine that does not stop talking is not listened to."""
        err = channel.makefile_stderr("rb").read(_MOST_ANSWER).decode("utf-8", "replace")
        if max(len(out), len(err)) >= _MOST_ANSWER:
            raise ProviderError(f"{self.address}: an answer of over {_MOST_ANSWER:,} bytes.")
        code = int(channel.recv_exit_status())
        if code < 0:
            raise LostConnectionError(f"{self.address}: the connection broke during a command.")
        return Answered(code=code, out=out, err=err)

    def close(self) -> None:
        """End the connection; the next command makes another."""
        self._client = None
        with contextlib.suppress(ProviderError):
            self._stack.close()

    @contextmanager
    def _channel(self, command: str) -> Iterator[Any]:
        import paramiko  # noqa: PLC0415 - heavy, only here

        try:
            if self._client is None:
                self._client = self._stack.enter_context(self.door.open(self.address))
                self._client.get_transport().set_keepalive(_KEEP_ALIVE_S)
            channel = self._client.get_transport().open_session(timeout=_SILENT_S)
            channel.settimeout(_SILENT_S)
            with contextlib.closing(channel):
                channel.exec_command(f"/bin/sh -c {shlex.quote(command)}")
                yield channel
        except ProviderError as error:
            self.close()
            raise LostConnectionError(error.problems) from error
        except (OSError, EOFError, AttributeError, paramiko.SSHException) as error:
            self.close()
            why = f"{type(error).__name__}: {error}"
            raise LostConnectionError(f"{self.address}: the connection broke: {why}") from error


def ssh_words(door: SshAccess, *, asks: bool = False) -> tuple[str, ...]:
    """Return the system's `ssh` with the same keys and known hosts, without a destination.

    Args:
        door: the way in.
        asks: whether it may ask for a passphrase.
    """
    known_hosts_text = str(door.known_hosts).replace("%", "%%").replace('"', '\\"')
    keys = (door.key,) if door.key is not None else _own_keys()
    settings = (
        f"BatchMode={'no' if asks else 'yes'}",
        f'UserKnownHostsFile="{known_hosts_text}"',
        f"StrictHostKeyChecking={'accept-new' if door.trusts_new else 'yes'}",
        "ConnectTimeout=10",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=4",
        *(("IdentitiesOnly=yes",) if door.key is not None else ()),
    )
    return (
        "ssh",
        *(word for setting in settings for word in ("-o", setting)),
        *(word for key in keys for word in ("-i", str(key))),
    )


def destination_of(door: SshAccess, address: str) -> tuple[str, str]:
    """Return "user@host" and the port."""
    host, _, port = address.partition(":")
    return f"{door.user}@{host}", port or _PORT


def _own_keys() -> tuple[Path, ...]:
    """Return the keys of the user's home, as paramiko looks for them."""
    names = ("id_ed25519", "id_ecdsa", "id_rsa")
    return tuple(key for name in names if (key := Path.home() / ".ssh" / name).is_file())


_LOST = (10, 12, 30, 35, 255)
"""Exit statuses of rsync that tell of the connection: sockets, stream, timeouts; of ssh: 255."""

_LAST_WORDS = 600
_CHANGED_MEANWHILE = 1  # exit status of tar where a file grew or went as it was read
_WORKING = f'touch "{ROOT}/run/gpucost/working/$$" 2>/dev/null'
"""Tells the idle rule of a machine that somebody works there as long as this shell lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How files go to a machine, and come back.

    Attributes:
        shell: of the machine.
        rsync: whether the machine has rsync.
        progress: whether a person looks on, who sees on standard error how far it is.
    """

    shell: RemoteShell
    rsync: bool
    progress: bool = False

    def send(self, folder: Path, names: Sequence[str], target: str) -> None:
        """Put files and links of a folder into a folder of the machine, which is there.

        Args:
            folder: here.
            names: paths from there.
            target: on the machine.

        Raises:
            LostConnectionError: some may be there.
            ProviderError: something else keeps them from arriving, in its words.
        """
        if not names:
            return
        if self.rsync and has_rsync():
            listed = "\0".join(names).encode("utf-8", "surrogateescape")
            to = f"{self._destination[0]}:{target}/"
            rsync_path = f"--rsync-path={_WORKING}; rsync"
            self._rsync((rsync_path, "--files-from=-", "--from0", f"{folder}/", to), listed)
            return

        def pack(stream: IO[bytes]) -> None:
            with tarfile.open(fileobj=stream, mode="w|", dereference=False) as packed:
                for name in names:
                    packed.add(folder / name, name, recursive=False)

        done = self.shell.run(f"{_WORKING}; tar -x -f - -C {shlex.quote(target)}", pack)
        if done.code != 0:
            raise ProviderError(f"{target}: {_last(done.err)}")

    def fetch(self, source: str, name: str, unpack: Callable[[IO[bytes]], None]) -> None:
        """Bring a file or folder of the machine here, as a stream of tar in GNU's plain format.

        rsync is not asked to: it would write what the machine names, where the machine says.

        Args:
            source: folder on the machine.
            name: path from there.
            unpack: reads the stream to its end, and trusts it in nothing.

        Raises:
            LostConnectionError: some of it may have come.
            ProviderError: it is not there.
        """
        command = ("tar", "--format=gnu", "--hard-dereference", "-c", "-f", "-", "-C", source)
        try:
            done = self.shell.read_from(shlex.join((*command, "--", name)), unpack)
        except tarfile.ReadError as error:
            self.shell.close()
            raise LostConnectionError(f"{name}: {error}") from error
        if done.code not in (0, _CHANGED_MEANWHILE):
            raise ProviderError(f"{name}: {_last(done.err)}")

    @property
    def _destination(self) -> tuple[str, str]:
        return destination_of(self.shell.door, self.shell.address)

    def _rsync(self, arguments: Sequence[str], stdin_data: bytes = b"") -> None:
        connect = (*ssh_words(self.shell.door), "-p", self._destination[1])
        command = (
            "rsync",
            "--archive",
            "--no-owner",
            "--no-group",
            "--protect-args",
            "--partial",
            "--links",
            "--timeout=120",
            *(("--info=progress2",) if self.progress else ()),
            # rsync splits it at blanks, outside of quotes, which it doubles.
            "--rsh=" + " ".join("'" + word.replace("'", "''") + "'" for word in connect),
            *arguments,
        )
        out = sys.__stderr__ if self.progress else subprocess.DEVNULL
        done = subprocess.run(  # noqa: S603 - words of ours; nothing of them is a shell's
            command, input=stdin_data, check=False, stdout=out, stderr=subprocess.PIPE
        )
        last_words = _last(done.stderr.decode("utf-8", "replace"))
        if done.returncode in _LOST:
            raise LostConnectionError(
                f"rsync lost the connection ({done.returncode}): {last_words}"
            )
        if done.returncode != 0:
            raise ProviderError(f"rsync ended with {done.returncode}: {last_words}")


@cache
def has_rsync() -> bool:
    """Return whether this computer has an rsync that knows what is asked of it: version 3."""
    program = shutil.which("rsync")
    if program is None:
        return False
    command = (program, "--version")
    version_text = subprocess.run(command, check=False, capture_output=True, text=True).stdout  # noqa: S603 - the same
    return version_text.startswith("rsync  version 3")


def _last(text: str) -> str:
    return " ".join(text.split())[-_LAST_WORDS:] or "it says nothing"
