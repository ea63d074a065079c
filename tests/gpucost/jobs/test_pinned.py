"""gpucost on a rented machine comes from bytes that are known here: a lock with hashes."""

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from templates import job_scripts
from templates.job_scripts import gpucost_script
from tests.conftest import ROOT

LOCK = Path(job_scripts.__file__).parent / "jobs" / "requirements.txt"
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
GPUCOST = """def main():
    import pathlib, sys, tiny
    if "--version" in sys.argv:
        print("gpucost 0.1.0")
"""
POINT = "[console_scripts]\ngpucost = gpucost_stand_in:main\n"


def _locked() -> list[tuple[Requirement, list[str]]]:
    """Each requirement of the lock, and its hashes."""
    entries = LOCK.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [
        (Requirement(entry.partition("--hash")[0]), _HASH.findall(entry))
        for entry in entries
        if entry.strip()
    ]


def _misses(wanted: Requirement, python: str) -> bool:
    """Whether the lock has no version that is wanted, on machines with this Python."""
    place = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    if wanted.marker is not None and not wanted.marker.evaluate(place):
        return False
    versions = [
        next(iter(pin.specifier)).version
        for pin, _ in _locked()
        if pin.name == wanted.name.lower().replace("_", "-").replace(".", "-")
        and (pin.marker is None or pin.marker.evaluate(place))
    ]
    return len(versions) != 1 or not wanted.specifier.contains(versions[0], prereleases=True)


def test_each_package_has_one_version_and_its_hashes() -> None:
    """Nothing in the lock is a range, an address, or without the sums of its files."""
    assert len(_locked()) > 20
    for pin, hashes in _locked():
        assert [pinned.operator for pinned in pin.specifier] == ["=="], pin
        assert pin.url is None
        assert hashes, f"{pin} has no hash: make lock"


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_lock_is_what_pyproject_asks_for(python: str) -> None:
    """Each dependency of gpucost, and of those, has one version there that satisfies it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(text) for text in project["dependencies"]]
    installed = {found.name.lower(): found for found in importlib.metadata.distributions()}
    for pin, _ in _locked():
        found = installed.get(pin.name)
        if found is not None and found.version == next(iter(pin.specifier)).version:
            wanted += [Requirement(text) for text in found.requires or ()]
    assert len(wanted) > len(project["dependencies"])
    assert not [str(one) for one in wanted if _misses(one, python)], "make lock"


def _wheel(folder: Path, name: str, files: dict[str, str], needs: str = "") -> Path:
    path, info = folder / f"{name}-0.1.0-py3-none-any.whl", f"{name}-0.1.0.dist-info"
    told = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n"
    about = {
        f"{info}/METADATA": told + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in (files | about).items():
            archive.writestr(inside, text)
    return path


@contextmanager
def _index(folder: Path) -> Iterator[str]:
    """An index of packages on this computer: a folder for each, whose listing is its page."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


_SPOILT = {
    "nothing": "gpucost 0.1.0: ",
    "a byte of a package": "Hash mismatch",
    "a byte of gpucost": "Hash mismatch",
    "a package that the lock does not name": "no trusted hash was provided for: `other`",
    "a line without a hash": "--require-hashes",
}


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", _SPOILT)
def test_other_bytes_are_not_installed(tmp_path: Path, spoilt: str) -> None:
    """One changed byte, one package more or one hash less: nothing is installed, and it is said."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv")
    work, served = tmp_path / "work", tmp_path / "index"
    wheel, digest = _sent(work, served, spoilt)
    with _index(served) as address:
        places = {"PATH": f"{Path(uv).parent}:/usr/bin:/bin", "UV_DEFAULT_INDEX": address}
        places |= {"HOME": os.environ["HOME"], "UV_PYTHON_DOWNLOADS": "never"}
        script = ("sh", "-c", gpucost_script(str(work), wheel, digest, "0.1.0"))
        ran = subprocess.run(script, env=places, check=False, capture_output=True, text=True)
    assert _SPOILT[spoilt] in ran.stdout + ran.stderr
    well = spoilt == "nothing"
    assert ("nothing will be measured" in ran.stdout) != well
    assert (work / "gpucost").exists() == well
    assert (list(work.glob("tool/lib/python*/site-packages/gpucost*")) != []) == well


def _sent(work: Path, served: Path, spoilt: str) -> tuple[str, str]:
    """Path and SHA-256 of the wheel that is sent; an index has what it needs; one is spoilt."""
    tiny = _wheel(served / "tiny", "tiny", {"tiny.py": "x = 1\n"})
    _wheel(served / "other", "other", {"other.py": ""})
    pin = f"tiny==0.1.0 --hash=sha256:{_sum(tiny)}"
    files = {
        "gpucost_stand_in.py": GPUCOST,
        "gpucost-0.1.0.dist-info/entry_points.txt": POINT,
        "templates/jobs/requirements.txt": pin.partition(" ")[0] if "without" in spoilt else pin,
    }
    needs = "other" if spoilt.startswith("a package") else "tiny"
    wheel = _wheel(work, "gpucost", files, needs)
    digest = _sum(wheel)
    if spoilt == "a byte of a package":
        _wheel(tiny.parent, "tiny", {"tiny.py": "x = 2\n"})
    if spoilt == "a byte of gpucost":
        _wheel(work, "gpucost", files | {"gpucost_stand_in.py": f"{GPUCOST}#"}, needs)
    return str(wheel), digest


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
