"""The probe alone, as the wheel `gpucost-probe`, in an environment that has nothing else."""

import importlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from planner.profile.model import Profile
from telemetry.probe import FOLDER_VARIABLE, PATH
from telemetry.readers.hints import Hints
from tests.probe.child import STAND_IN
from tests.telemetry.reading import read_source

PROBE = PATH.parent
PROGRAM = """
import importlib.util, sys, time
import gpucost_probe
missing = [name for name in ("gpucost", "boto3", "duckdb") if importlib.util.find_spec(name)]
assert not missing, missing
import torch.optim
optimizer = torch.optim.SGD([])
with gpucost_probe.measure("mine", interval_s=0.2) as m:
    for _ in range(30):
        time.sleep(0.02)
        optimizer.step()
print(m.path)
"""


def test_the_versions_are_one() -> None:
    """The probe's version is that of gpucost, which ships the same files."""
    probe = importlib.import_module("telemetry.probe.path.gpucost_probe")
    assert probe.__version__ == importlib.import_module("gpucost.version").__version__


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment, into which the wheel was unpacked, as installers do."""
    folder = tmp_path_factory.mktemp("probe")
    source, home = folder / "source", folder / "venv"
    shutil.copytree(PROBE, source, ignore=shutil.ignore_patterns("__pycache__"))
    _done("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source))
    (wheel,) = folder.glob("gpucost_probe-*.whl")
    venv.create(home)
    (packages,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        archive.extractall(packages)
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gpucost_probe"}
    return home / "bin" / "python"


def _done(
    *words: str, python: Path = Path(sys.executable), cwd: Path | None = None, **environ: str
) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    clean.pop(FOLDER_VARIABLE, None)
    done = subprocess.run(
        [str(python), *words],
        cwd=cwd,
        env={**clean, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_program_measures_itself_without_gpucost(python: Path, tmp_path: Path) -> None:
    """Steps are found and the host is read; the capture becomes a profile where gpucost is."""
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    assert (
        _done("train.py", python=python, cwd=tmp_path, PYTHONPATH=str(STAND_IN))
        == "mine.capture.jsonl\n"
    )
    profile = _profile(tmp_path / "mine.capture.jsonl")
    assert profile.job.name == "mine"
    assert profile.job.framework == "pytorch"
    assert profile.step is not None
    assert (profile.step.count, profile.step.counted_by) == (30, "optimizer")
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine.capture.jsonl",
        "train.py",
    ]


def test_an_exception_goes_through_and_the_next_capture_has_a_name_of_its_own(
    python: Path, tmp_path: Path
) -> None:
    """What was measured until an exception is written; no capture replaces another."""
    program = (
        "import gpucost_probe, time\n"
        "for n in (3, 5):\n"
        "    try:\n"
        "        with gpucost_probe.measure(interval_s=0.1) as m:\n"
        "            for _ in range(n): time.sleep(0.05); m.step(items=2)\n"
        "            raise ValueError(n)\n"
        "    except ValueError: print(m.path)\n"
    )
    printed = _done("-c", program, python=python, cwd=tmp_path)
    assert printed.split() == ["job.capture.jsonl", "job-2.capture.jsonl"]
    counts = [_profile(tmp_path / name).step for name in printed.split()]
    assert [step.count for step in counts if step is not None] == [3, 5]


def _profile(path: Path) -> Profile:
    (profile,) = read_source(str(path), Hints())
    return profile
