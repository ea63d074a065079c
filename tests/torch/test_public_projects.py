"""Public projects under `gpucost run` with nothing to apply: what they print, and how they end.

They are not ours, so none of them is kept here: `make projects-test CLONES=FOLDER` takes a folder
with clones of github.com/pytorch/examples, karpathy/nanoGPT, karpathy/makemore, karpathy/minGPT,
jcjohnson/pytorch-examples and vwxyzjn/cleanrl, by the names of the repositories. Each program runs
in a copy, with texts drawn here where it would download some; those that draw weights without a
seed get one. What is compared is standard output but for clocks, and the exit code.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

VARIABLE = "GPUCOST_PUBLIC_PROJECTS"
GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
CLOCKS = re.compile(
    r"ms/batch\s+\d+(\.\d+)?|time:?\s+\d+(\.\d+)?(ms|s)?|mfu -?\d+\.\d+%|iter_dt \d+\.\d+ms"
    r"|step time \d+\.\d+ms|SPS:? \d+|__\d{10}\b",
    re.IGNORECASE,
)
NOTHING = {"schema": "gpucost.recipe/v1", "job": "train", "actions": []}
_SEED = """\
import runpy, sys, torch
torch.manual_seed(0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SEEDED = ("-c", _SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of a public project.

    Attributes:
        project: folder of its clone.
        folder: below it, in which it runs.
        arguments: of Python.
        text: file below the folder that holds a drawn text; several where it ends in `/`.
        prepare: arguments of Python that make its data of that text.
        needs: packages beside PyTorch.
    """

    project: str
    arguments: tuple[str, ...]
    folder: str = "."
    text: str = ""
    prepare: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


_SMALL = ("--emsize=32", "--nhid=32", "--epochs=1", "--log-interval=5", "--nlayers=1")
_NANO = (
    "--device=cpu",
    "--compile=False",
    "--eval_iters=2",
    "--eval_interval=10",
    "--log_interval=1",
    "--block_size=32",
    "--batch_size=4",
    "--n_layer=2",
    "--n_head=2",
    "--n_embd=32",
    "--max_iters=20",
    "--lr_decay_iters=20",
    "--dropout=0.0",
)
_ADDER = ("--trainer.max_iters=20", "--system.work_dir=out", "--model.n_layer=1")
_PPO = ("--no-cuda", "--total-timesteps=1024", "--num-envs=2", "--num-steps=64")
PROGRAMS = {
    "language model": Program(
        project="examples",
        folder="word_language_model",
        arguments=("main.py", *_SMALL),
        text="data/wikitext-2/",
    ),
    "regression": Program(project="examples", folder="regression", arguments=(*SEEDED, "main.py")),
    "nanoGPT": Program(
        project="nanoGPT",
        arguments=("train.py", "config/train_shakespeare_char.py", *_NANO),
        text="data/shakespeare_char/input.txt",
        prepare=("data/shakespeare_char/prepare.py",),
        needs=("requests", "tiktoken"),
    ),
    "makemore": Program(
        project="makemore",
        arguments=("makemore.py", "--max-steps=20", "--device=cpu", "--type=bigram"),
        needs=("tensorboard",),
    ),
    "minGPT": Program(project="minGPT", arguments=("-m", "projects.adder.adder", *_ADDER)),
    "two layers": Program(
        project="pytorch-examples", folder="nn", arguments=(*SEEDED, "two_layer_net_optim.py")
    ),
    "dynamic net": Program(
        project="pytorch-examples", folder="nn", arguments=(*SEEDED, "two_layer_net_module.py")
    ),
    "ppo": Program(
        project="cleanrl",
        arguments=("cleanrl/ppo.py", *_PPO),
        needs=("gymnasium", "tyro", "tensorboard"),
    ),
}


@pytest.fixture
def clones() -> Path:
    """The folder with the clones."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make projects-test")
    named = os.environ.get(VARIABLE)
    if not named:
        pytest.skip(f"{VARIABLE} names no folder with clones of the projects; none is kept here")
    return Path(named)


def _text(path: Path, seed: int, *, words: int = 2000) -> None:
    draw = random.Random(seed)  # noqa: S311 - a text, no secret
    letters = "abcdefgh"
    lines = (
        " ".join("".join(draw.choices(letters, k=3)) for _ in range(10)) for _ in range(words // 10)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _place(program: Program, clones: Path, copy: Path) -> Path:
    """Return the folder of a fresh copy with its data."""
    shutil.copytree(clones / program.project, copy, ignore=shutil.ignore_patterns(".git"))
    place = copy / program.folder
    if program.text.endswith("/"):
        for seed, name in enumerate(("train", "valid", "test")):
            _text(place / program.text / f"{name}.txt", seed)
    elif program.text:
        _text(place / program.text, 0)
    if program.prepare:
        subprocess.run([sys.executable, *program.prepare], cwd=place, check=True)
    return place


def _run(program: Program, place: Path, *around: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*around, sys.executable, *program.arguments],
        cwd=place,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, CLOCKS.sub("", done.stdout), done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_project_prints_the_same_under_run(clones: Path, name: str, tmp_path: Path) -> None:
    """Standard output with all its losses, and the exit code, are those of the program alone."""
    program = PROGRAMS[name]
    if not (clones / program.project).is_dir():
        pytest.skip(f"{clones / program.project} is not there")
    for needed in program.needs:
        pytest.importorskip(needed)
    code, printed, errors = _run(program, _place(program, clones, tmp_path / "plain"))
    assert code == 0, errors[-2000:]
    place = _place(program, clones, tmp_path / "run")
    recipe, target = tmp_path / "recipe.json", tmp_path / "after.json"
    recipe.write_text(json.dumps(NOTHING), encoding="utf-8")
    own = ("run", "-q", "--no-gpu", "--no-metadata", "--recipe", str(recipe), "-o", str(target))
    ran, same, errors = _run(program, place, str(GPUCOST), *own, "--")
    assert (ran, same) == (code, printed), errors[-2000:]
    assert printed
    assert json.loads(target.read_text(encoding="utf-8"))["step"]["count"] > 0
