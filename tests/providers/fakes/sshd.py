"""A real sshd on this machine, whose logins see another root for what gpucost writes."""

import getpass
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import until

_PORTS = 5  # tried, should another program take one first


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that answers SSH.

    Attributes:
        port: on 127.0.0.1.
        root: what gpucost takes for / there.
        key: file of the private key that may log in.
    """

    port: int
    root: Path
    key: Path

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        """User, host and port."""
        return f"{getpass.getuser()}@{self.address}"

    def host_key(self) -> str:
        """Its line in a file of known hosts."""
        kind, text = (self.root.parent / "host.pub").read_text(encoding="utf-8").split()[:2]
        return f"[127.0.0.1]:{self.port} {kind} {text}\n"


def _key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def _set(environment: Mapping[str, str], root: Path) -> str:
    # No start-up file of this computer runs in a login: bash reads them as a shell of level 1 does,
    # from the home of who logs in.
    (root.parent / "home").mkdir()
    plain = {"HOME": str(root.parent / "home"), "SHLVL": "1"}
    told = {"GPUCOST_ROOT": str(root), **plain, **environment}
    return " ".join(f'"{name}={value}"' for name, value in told.items())


@contextmanager
def a_machine(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Machine]:
    """The machine; it has ended when the block ends. Skips where there is no sshd.

    Args:
        folder: of its files.
        environment: of its logins, beside what sshd sets.
    """
    sshd = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
    if sshd is None or getpass.getuser() != "root":
        pytest.skip("needs sshd and root; `make test-tools` installs openssh-server on Debian")
    Path("/run/sshd").mkdir(exist_ok=True)
    folder.mkdir(mode=0o700)
    root = folder / "root"
    root.mkdir()
    host, key = _key(folder / "host"), _key(folder / "id_ed25519")
    allowed = folder / "authorized_keys"
    shutil.copy(key.with_suffix(".pub"), allowed)
    told = (
        f"ListenAddress 127.0.0.1\nHostKey {host}\nAuthorizedKeysFile {allowed}\n"
        f"PermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\nStrictModes no\n"
        f"PermitUserRC no\nMaxStartups 100\nPrintMotd no\n"
        f"PidFile none\nSetEnv {_set(environment or {}, root)}\n"
    )
    (folder / "sshd_config").write_text(told, encoding="utf-8")
    server, port = _listening(sshd, folder)
    try:
        yield Machine(port=port, root=root, key=key)
    finally:
        server.terminate()
        server.wait()


def _listening(sshd: str, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the server; return it and its port, once it answers there."""
    for _ in range(_PORTS):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config = str(folder / "sshd_config")
        server = subprocess.Popen(
            [sshd, "-D", "-f", config, "-p", str(port), "-E", str(folder / "log")]
        )
        until(lambda: server.poll() is not None or _answers(port), "the tests' sshd")  # noqa: B023 - called at once
        if server.poll() is None:
            return server, port
    pytest.fail((folder / "log").read_text(encoding="utf-8"))


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
