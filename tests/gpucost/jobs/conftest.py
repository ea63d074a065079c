"""A machine of the user's own on this computer, behind a real sshd, and a project to run there."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpucost.machines import state
from gpucost.version import __version__
from tests.providers.fakes.reach import reach_this_machine_only
from tests.providers.fakes.sshd import Machine, a_machine

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
TRAIN = """
import os, pathlib, sys
print("trains in", os.getcwd(), flush=True)
print("data:", sorted(os.listdir(os.environ["GPUCOST_DATA_FOLDER"])), flush=True)
out = pathlib.Path("outputs")
out.mkdir(exist_ok=True)
(out / "Gewichte für später.txt").write_text("w" * 1000, encoding="utf-8")
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach this machine only."""
    reach_this_machine_only(monkeypatch)


@contextmanager
def known_machine(home: Path, name: str, environment: Mapping[str, str]) -> Iterator[Machine]:
    """A machine that the user of a home knows, and has a key for."""
    with a_machine(home / name, environment) as one:
        folder = home / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(one.key, folder / "id_ed25519")
        (folder / "known_hosts").write_text(one.host_key(), encoding="utf-8")
        yield one


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the journal in the test's folder; wait shortly; ask no agent for keys."""
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "my state"))
    monkeypatch.setenv("GPUCOST_OWNER", "ada")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(state, "PATIENCE", replace(state.PATIENCE, pause_s=0.2))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose gpucost is the one of the tests."""
    with known_machine(
        tmp_path, "machine", {"PATH": f"{Path(sys.executable).parent}:{PATH}"}
    ) as one:
        yield one


@pytest.fixture
def quick_machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose gpucost is a stub: what matters is the way, and not what is measured."""
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy(Path(__file__).parent / "gpucost_stub.sh", programs / "gpucost")
    told = {"PATH": f"{programs}:{PATH}", "GPUCOST_VERSION": __version__}
    with known_machine(tmp_path, "machine", told) as one:
        yield one


@pytest.fixture
def project(empty_folder: Path) -> Path:
    """Code under a name with blanks and umlauts, with files that must stay here."""
    folder = empty_folder / "mein Projekt für GPUs"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "lib" / "ein Modell é.py").write_text("x = 1\n", encoding="utf-8")
    (folder / ".gitignore").write_text("*.ckpt\n/secrets/\n!keep.ckpt\n", encoding="utf-8")
    (folder / "lib" / ".gitignore").write_text("cache/\n", encoding="utf-8")
    for name in ("big.ckpt", "keep.ckpt", "secrets/token", "lib/cache/x", "lib/secrets"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return folder
