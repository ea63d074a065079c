"""Every test of the front door runs in an empty folder, without network and without settings."""

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpucost.cli import run
from tests.gpucost.written import hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on standard output."""
        return json.loads(self.out)


COLORS = ("NO_COLOR", "FORCE_COLOR")
Call = Callable[..., Ran]
Write = Callable[[str, Any], str]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder, with no settings of the machine in sight."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in os.environ:
        if name.startswith(("GPUCOST_", "AWS_", "DIGITALOCEAN_", "LAMBDA_")) or name in COLORS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    temporary = tmp_path / "temporary"  # what killed processes leave, is found by nobody
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on the first attempt to reach another machine."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a command reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs `gpucost ARGUMENTS` in this process.

    What it prints is held against the schema of its document.
    """

    def run_here(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        hold(arguments, told.out)
        return Ran(code=code, out=told.out, err=told.err)

    return run_here


@pytest.fixture
def write(empty_folder: Path) -> Write:
    """Return a function that writes text, bytes or a document, and returns the file's name."""

    def write_here(name: str, content: Any) -> str:
        path = empty_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, encoding="utf-8")
        return name

    return write_here
