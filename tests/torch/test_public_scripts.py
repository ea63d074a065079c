"""Public programs as they are, with and without gpucost around them.

They are not ours, so none of them is kept here. The variable GPUCOST_PUBLIC_SCRIPTS names a folder
that holds them, with small data in the formats that they read:

    mnist/main.py, imagenet/main.py, word_language_model/    github.com/pytorch/examples
    data/MNIST/raw, imagenet/images/{train,val}, word_language_model/data/wikitext-2
    nanogpt/train.py and beside it what it imports, with data/shakespeare_char   karpathy/nanoGPT

Without the variable these tests skip.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

VARIABLE = "GPUCOST_PUBLIC_SCRIPTS"
GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
# What differs between two runs of the same program: clocks and rates.
CLOCKS = re.compile(
    r"(Time|Data)\s+\d+\.\d+ \( *\d+\.\d+\)|mfu -?\d+\.\d+%|time:?\s+\d+(\.\d+)?(ms|s)?"
    r"|ms/batch\s+\d+(\.\d+)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Public:
    """A public program.

    Attributes:
        arguments: of Python, in the program's folder.
        steps: that it makes.
        counted_by: what counts as a step in it.
    """

    arguments: tuple[str, ...]
    steps: int
    counted_by: str = "optimizer"


_NANOGPT = (
    "train.py",
    "config/train_shakespeare_char.py",
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
    "--max_iters=40",
    "--lr_decay_iters=40",
    "--dropout=0.0",
)
PROGRAMS = {
    "mnist": Public(arguments=("main.py", "--epochs=2", "--no-accel"), steps=2 * 50),
    "imagenet": Public(
        arguments=(
            "main.py",
            "images",
            "--epochs=1",
            "-b=8",
            "-j=2",
            "-p=1",
            "--no-accel",
            "--seed=1",
        ),
        steps=6,
    ),
    "word_language_model": Public(
        arguments=("main.py", "--epochs=2", "--log-interval=5", "--emsize=32", "--nhid=32"),
        steps=2 * 24,
        counted_by="backward",
    ),
    "nanogpt": Public(arguments=_NANOGPT, steps=41),
}


@pytest.fixture
def folder() -> Path:
    """The folder with the programs."""
    named = os.environ.get(VARIABLE)
    if not named:
        pytest.skip(f"{VARIABLE} names no folder with the programs; they are not kept here")
    return Path(named)


def _run(program: str, place: Path, *around: str) -> subprocess.CompletedProcess[str]:
    public = PROGRAMS[program]
    return subprocess.run(
        [*around, sys.executable, *public.arguments],
        cwd=place,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_public_program_is_the_same_and_exactly_counted(
    folder: Path, program: str, tmp_path: Path
) -> None:
    """Output, losses and exit code are those without gpucost; each step is counted once."""
    place = folder / program
    if not place.is_dir():
        pytest.skip(f"{place} is not there")
    plain = _run(program, place)
    target = tmp_path / "profile.json"
    measured = _run(
        program, place, str(GPUCOST), "profile", "--no-gpu", "-q", "-o", str(target), "--"
    )
    assert plain.returncode == 0, plain.stderr[-2000:]
    assert measured.returncode == plain.returncode, measured.stderr[-2000:]
    assert CLOCKS.sub("", measured.stdout) == CLOCKS.sub("", plain.stdout)
    profile = json.loads(target.read_text(encoding="utf-8"))
    public = PROGRAMS[program]
    assert profile["step"]["count"] == public.steps
    assert profile["step"]["counted_by"] == public.counted_by
