"""A machine of the user's own on this computer, behind a real sshd, and a project to run there."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.fakes.account import reach_this_machine_only
from tests.providers.fakes.sshd import Machine, a_machine

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


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """The machine, known to its user, who has a key for it; its gpucost is the one of the tests."""
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "my state"))
    monkeypatch.setenv("GPUCOST_OWNER", "ada")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    with a_machine(tmp_path / "machine", environment={"PATH": path}) as one:
        home = tmp_path / ".ssh"
        home.mkdir(mode=0o700)
        shutil.copy(one.key, home / "id_ed25519")
        (home / "known_hosts").write_text(one.host_key(), encoding="utf-8")
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
