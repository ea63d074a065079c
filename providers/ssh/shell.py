"""One connection to a machine that many commands share, and that is made anew when it broke."""

import contextlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pricing.errors import ProviderError
from providers.ssh.connection import SshAccess

_KEEP_ALIVE_S = 15
_SILENT_S = 120.0
_CHUNK = 1 << 16
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

    def run(self, command: str, given: bytes | Callable[[IO[bytes]], None] = b"") -> Answered:
        """Run a command of the shell and return what it left.

        Args:
            command: for /bin/sh.
            given: goes to its standard input; where it is a function, that writes it.

        Raises:
            LostConnectionError: it is not known whether it ran.
        """
        with self._channel(command) as channel:
            if isinstance(given, bytes):
                channel.sendall(given)
            else:
                with channel.makefile_stdin("wb", _CHUNK) as stream:
                    given(stream)
            channel.shutdown_write()
            out = b"".join(iter(lambda: channel.recv(_CHUNK), b""))
            err = channel.makefile_stderr("rb").read().decode("utf-8", "replace")
            code = int(channel.recv_exit_status())
        if code < 0:
            raise LostConnectionError(f"{self.address}: the connection broke during a command.")
        return Answered(code=code, out=out, err=err)

    def read_from(self, command: str, take: Callable[[IO[bytes]], None]) -> Answered:
        """Run a command whose standard output `take` reads as a file of bytes.

        Raises:
            LostConnectionError: it is not known whether it ran.
        """
        with self._channel(command) as channel:
            channel.shutdown_write()
            take(channel.makefile("rb"))
            err = channel.makefile_stderr("rb").read().decode("utf-8", "replace")
            code = int(channel.recv_exit_status())
        if code < 0:
            raise LostConnectionError(f"{self.address}: the connection broke during a command.")
        return Answered(code=code, out=b"", err=err)

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
    known = str(door.known_hosts).replace("%", "%%").replace('"', '\\"')
    keys = (door.key,) if door.key is not None else _own_keys()
    settings = (
        f"BatchMode={'no' if asks else 'yes'}",
        f'UserKnownHostsFile="{known}"',
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
