"""`import gpucost` in a project that has a package of its own with one of our names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("planner", "pricing", "providers", "telemetry", "templates")
USES = {
    "plain": "import gpucost; print(gpucost.load_catalog().count > 0)",
    "from": "from gpucost import load_catalog; print(load_catalog().count > 0)",
    "theirs first": "import {package}; import gpucost; print(gpucost.load_catalog().count > 0)",
    "made by hand": (
        "import sys, types; sys.modules['{package}'] = types.ModuleType('{package}'); "
        "import gpucost; print(gpucost.load_catalog().count > 0)"
    ),
}


def _program(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a program of that folder; gpucost comes later on the path, as where it is installed."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-S", str(program)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), *_sites()))},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def _sites() -> list[str]:
    return [entry for entry in sys.path if entry.endswith("site-packages")]


def _one_sentence(ran: subprocess.CompletedProcess[str], package: str, theirs: Path) -> None:
    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1
    assert last.startswith("ImportError: gpucost cannot be used in this program: ")
    assert str(theirs) in last or "another module" in last
    assert f"its package '{package}'; rename that, " in last
    assert "gpucost command" in last


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("package", PACKAGES)
def test_their_package_is_named_with_what_to_do(package: str, use: str, tmp_path: Path) -> None:
    """Where theirs stands first, the first use of gpucost ends with one sentence, however used."""
    theirs = tmp_path / package / "__init__.py"
    theirs.parent.mkdir()
    theirs.touch()
    _one_sentence(_program(tmp_path, USES[use].format(package=package)), package, theirs)


def test_a_single_module_is_named_too(tmp_path: Path) -> None:
    """A single planner.py is named, too."""
    theirs = tmp_path / "planner.py"
    theirs.touch()
    _one_sentence(_program(tmp_path, USES["plain"]), "planner", theirs)


def test_a_folder_of_templates_disturbs_nothing(tmp_path: Path) -> None:
    """A folder without __init__.py, as web frameworks have, is not a package: gpucost works."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").touch()
    ran = _program(tmp_path, USES["plain"])
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


def test_the_command_is_not_disturbed(tmp_path: Path) -> None:
    """`python -m gpucost` runs beside packages of all our names."""
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit(9)", encoding="utf-8")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "gpucost",
            "quote",
            "digitalocean/gpu-h100x8-640gb",
            "--duration=1h",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT), *_sites()))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", ["json", "click", "typing", "pathlib", "planner", "decimal"])
@pytest.mark.parametrize("typed", ["-m gpucost", "-um gpucost", "-mgpucost", "-m gpucost.entry"])
def test_python_m_imports_nothing_from_the_working_folder(
    empty_folder: Path, typed: str, name: str
) -> None:
    """A file of a cloned repository called like a module is not run, however -m is typed."""
    (empty_folder / f"{name}.py").write_text("open('ran', 'w').close()", encoding="utf-8")
    words = (sys.executable, *typed.split(), "prices", "--gpu", "H100", "-f", "json", "--offline")
    ran = subprocess.run(words, check=False, capture_output=True, text=True)
    assert ran.returncode in (0, 2), ran.stderr
    assert not (empty_folder / "ran").exists()


def test_another_module_that_uses_gpucost_keeps_its_folder(tmp_path: Path) -> None:
    """`python -m theirs`, whose package imports gpucost, still finds what lies beside it."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("import gpucost", encoding="utf-8")
    (tmp_path / "theirs" / "__main__.py").write_text("import beside", encoding="utf-8")
    (tmp_path / "beside.py").write_text("print('beside')", encoding="utf-8")
    words = (sys.executable, "-m", "theirs")
    ran = subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "beside\n", ran.stderr
