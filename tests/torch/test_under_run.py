"""`gpucost run` around real PyTorch: notebooks, terminals, input, signals and exit codes."""

import json
import os
import pty
import signal
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.torch.conftest import PROGRAMS
from tests.waiting import CEILING_S

GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
RECIPE = {
    "schema": "gpucost.recipe/v1",
    "job": "train",
    "actions": [
        {"code": "dataloader-workers", "settings": {"num_workers": 2, "prefetch_factor": 2}}
    ],
}


@pytest.fixture
def run(tmp_path: Path) -> tuple[str, ...]:
    """The words that stand before a command; the recipe lies in the folder of the test."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    if not GPUCOST.exists():
        pytest.skip("gpucost is not installed in .venv: make torch-test")
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE), encoding="utf-8")
    return (
        str(GPUCOST), "run", "-q", "--no-gpu", "--no-metadata", "--recipe", "recipe.json", "--"
    )  # fmt: skip


def _ends(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * CEILING_S,
        **more,  # type: ignore[arg-type] # input alone
    )


def _outcomes(folder: Path) -> set[str]:
    after = json.loads((folder / "after.json").read_text(encoding="utf-8"))
    return {each["outcome"] for each in after["changes"]}


def test_a_notebook_trains_as_it_does_alone(tmp_path: Path, run: tuple[str, ...]) -> None:
    """Its kernel's loader gets workers, and every loss that a cell prints is the same."""
    pytest.importorskip("nbclient")
    command = (sys.executable, str(PROGRAMS / "notebook.py"))
    plain, applied = _ends(tmp_path, *command), _ends(tmp_path, *run, *command)
    assert plain.returncode == applied.returncode == 0, applied.stderr
    *losses, before = plain.stdout.splitlines()
    *same, after = applied.stdout.splitlines()
    assert len(losses) == 100
    assert same == losses
    assert set(literal_eval(after)) - set(literal_eval(before)) == {"GPUCOST_PROBE_DIR"}
    assert _outcomes(tmp_path) <= {"applied", "left"}
    steps = json.loads((tmp_path / "after.json").read_text(encoding="utf-8"))["step"]["count"]
    assert steps == 100


TRAINS = """
import sys, torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step(x):
    model(x).sum().backward()
    optimizer.step()
"""
ENDS = {
    "its code": (TRAINS + "step(torch.ones(1, 1)); sys.exit(9)", 9),
    "an exception": (TRAINS + "step(torch.ones(1, 2))", 1),
    "a signal": (TRAINS + "import os; os.kill(os.getpid(), 15)", -signal.SIGTERM),
}


@pytest.mark.parametrize("way", ENDS)
def test_it_ends_as_it_does_alone(tmp_path: Path, run: tuple[str, ...], way: str) -> None:
    """An exit code, a traceback and a death by signal are the program's."""
    text, code = ENDS[way]
    plain = _ends(tmp_path, sys.executable, "-c", text)
    applied = _ends(tmp_path, *run, sys.executable, "-c", text)
    assert plain.returncode == code
    assert applied.returncode in (code, 128 - code)
    assert applied.stdout == plain.stdout
    assert plain.stderr in applied.stderr


def test_input_is_the_callers(tmp_path: Path, run: tuple[str, ...]) -> None:
    """What is piped in is trained on, to its end."""
    text = TRAINS + "for n in map(float, sys.stdin): step(torch.tensor([[n]])); print(n)"
    words = (sys.executable, "-c", text)
    plain = _ends(tmp_path, *words, input="1\n2\n3\n")
    applied = _ends(tmp_path, *run, *words, input="1\n2\n3\n")
    assert plain.stdout == applied.stdout == "1.0\n2.0\n3.0\n"


def test_the_terminal_is_the_callers(tmp_path: Path, run: tuple[str, ...]) -> None:
    """At a terminal the program has it on all three streams, with its size, and may ask."""
    text = TRAINS + (
        "import os; step(torch.ones(1, 1)); print([os.isatty(n) for n in range(3)], "
        "tuple(os.get_terminal_size()), input('more? '))"
    )

    def at_terminal(*words: str) -> str:
        pid, handle = pty.fork()
        if pid == 0:  # in the child
            os.chdir(tmp_path)
            os.environ["PYTHONPATH"] = ""
            os.execv(words[0], words)  # noqa: S606 - the program of the test
        seen = b""
        answered = False
        while True:
            try:
                part = os.read(handle, 4096)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            seen += part
            if b"more? " in seen and not answered:
                answered = os.write(handle, b"yes\n") > 0
        os.waitpid(pid, 0)
        os.close(handle)
        return next(line for line in seen.decode().splitlines() if "True" in line)

    plain = at_terminal(sys.executable, "-c", text)
    assert "[True, True, True]" in plain
    assert at_terminal(*run, sys.executable, "-c", text) == plain
