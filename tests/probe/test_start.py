"""How the probe gets into a program, and what it leaves as it was."""

import shutil
import sys
from pathlib import Path

import pytest

from telemetry.probe import PATH, child_environment
from tests.probe.child import run

SHOW = "import sys; print([m for m in sys.modules if m.startswith('torch')])"


def test_the_environment_of_a_child_keeps_its_own_path(tmp_path: Path) -> None:
    """Our folder comes first, once, and what was on PYTHONPATH stays; nothing else is touched."""
    added = child_environment({"PYTHONPATH": "/a:/b", "HOME": "/h"}, tmp_path)
    assert added == {"PYTHONPATH": f"{PATH}:/a:/b", "GPUCOST_PROBE_DIR": str(tmp_path)}
    assert child_environment(added, tmp_path) == added


def test_an_empty_path_does_not_become_the_current_folder(tmp_path: Path) -> None:
    """An empty PYTHONPATH adds no empty entry, which Python would read as the current folder."""
    assert child_environment({"PYTHONPATH": ""}, tmp_path)["PYTHONPATH"] == str(PATH)


def test_our_folder_hides_no_name_of_the_user() -> None:
    """On the path lie sitecustomize and one package with our name, nothing else."""
    assert {path.name for path in PATH.iterdir()} - {"__pycache__"} == {
        "sitecustomize.py",
        "gpucost_probe",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("program.py",), id="script"),
        pytest.param(("-m", "program"), id="module"),
        pytest.param(("-c", "import program"), id="command"),
        pytest.param(
            ("-c", "import subprocess, sys; subprocess.run([sys.executable, 'program.py'])"),
            id="child",
        ),
    ],
)
def test_the_probe_reaches_every_way_to_start_python(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A script, a module, a command and a child of a program all start with the probe."""
    (tmp_path / "program.py").write_text("import os; print(os.getpid())")
    done = run(tmp_path, *arguments)
    assert done.code == 0
    assert int(done.out) in done.reached
    assert done.events == ()


def test_a_shell_script_is_reached_twice(tmp_path: Path) -> None:
    """A shell script that calls Python twice is two interpreters that were reached."""
    command = f"import os; os.system('{sys.executable} -c 1; {sys.executable} -c 1')"
    assert len(run(tmp_path, "-S", "-c", command).reached) == 2


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_cannot_be_reached_leaves_no_trace(tmp_path: Path, flag: str) -> None:
    """With -I, -E or -S the probe does not start, and `reached` says so by its absence."""
    done = run(tmp_path, flag, "-c", "print(1)")
    assert (done.code, done.out, done.reached) == (0, "1\n", ())


def test_the_probe_imports_nothing_for_the_program(tmp_path: Path) -> None:
    """PyTorch is not imported, and the modules that an idle probe loads are a handful."""
    modules = "import sys; print(len(sys.modules))"
    with_probe, without = (
        int(run(tmp_path, "-c", modules, probe=probe).out) for probe in (True, False)
    )
    assert run(tmp_path, "-c", SHOW).out == "[]\n"
    assert with_probe - without <= 4


def test_the_sitecustomize_of_the_environment_runs(tmp_path: Path) -> None:
    """The environment's own sitecustomize runs once, and is the module of that name."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sitecustomize.py").write_text("print('theirs'); MARK = 7")
    command = "import sitecustomize; print(sitecustomize.MARK)"
    done = run(tmp_path, "-c", command, PYTHONPATH=str(tmp_path / "theirs"))
    assert (done.out, done.err, len(done.reached)) == ("theirs\n7\n", "", 1)


@pytest.mark.parametrize(
    "leave", ["sys.path.remove(os.path.dirname(__file__))", "pass"], ids=["leaves", "stays"]
)
def test_a_chain_of_two_does_not_turn_in_circles(tmp_path: Path, leave: str) -> None:
    """A tool that asks for sitecustomize again, as we do, gets the next one; each runs once."""
    for name, text in {
        "tool": f"import os, sys; print('tool'); {leave}\n"
        "sys.modules.pop('sitecustomize', None)\nimport sitecustomize\n",
        "last": "print('last')",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitecustomize.py").write_text(text)
    done = run(tmp_path, "-c", "1", PYTHONPATH=f"{tmp_path / 'tool'}:{tmp_path / 'last'}")
    assert (done.out, done.err, len(done.reached)) == ("tool\nlast\n", "", 1)


def test_an_error_of_the_other_sitecustomize_is_told_as_before(tmp_path: Path) -> None:
    """When the environment's own sitecustomize raises, Python says the same as without us."""
    (tmp_path / "sitecustomize.py").write_text("1 / 0")
    with_probe, without = (
        run(tmp_path, "-c", "print('on')", probe=probe, PYTHONPATH=str(tmp_path))
        for probe in (True, False)
    )
    assert without.err.startswith("Error in sitecustomize")
    assert (with_probe.code, with_probe.out, with_probe.err) == (0, "on\n", without.err)


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_every_python_starts_as_before(tmp_path: Path, version: str) -> None:
    """Old and new Pythons start without a word; from 3.8 on the probe is in them."""
    pythons = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    python = str(pythons[0]) if pythons else shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sitecustomize.py").write_text("print('theirs')")
    done = run(tmp_path, "-c", "print(1)", python=python, PYTHONPATH=str(tmp_path / "theirs"))
    assert (done.code, done.out, done.err) == (0, "theirs\n1\n", "")
    assert len(done.reached) == (tuple(map(int, version.split("."))) >= (3, 8))


def test_without_a_folder_nothing_happens(tmp_path: Path) -> None:
    """Our folder on the path alone starts nothing; a folder that is gone disturbs nothing."""
    for folder in ("", str(tmp_path / "gone")):
        done = run(tmp_path, "-c", "import torch", probe=False, GPUCOST_PROBE_DIR=folder)
        assert (done.code, done.err, done.reached) == (0, "", ())
