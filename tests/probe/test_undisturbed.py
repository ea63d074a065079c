"""The program cannot tell that the probe is there: exit codes, errors, warnings, signals."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from telemetry.probe import child_environment
from tests.probe.child import STAND_IN, read_events, run

TRAINING = """\
import os, signal, sys, time, warnings
import torch
from torch.optim import SGD
from torch.utils.data import DataLoader

def train(dataset, steps=None, sleep_s=0.0):
    optimizer = SGD([torch.nn.Parameter(3)])
    for number, batch in enumerate(DataLoader(dataset, batch_size=2)):
        time.sleep(sleep_s)
        optimizer.step()
"""

ENDINGS = {
    "well": "train(range(10))",
    "exit code": "train(range(10)); sys.exit(7)",
    "exit text": "train(range(10)); sys.exit('no more')",
    "error in the data": "train([1, 2, 3, {}['missing']])",
    "error in the data set": """
class Data:
    def __len__(self):
        return 9
    def __getitem__(self, index):
        return 1 / (index - 5)
train(Data())""",
    "error in a closure": """
def closure():
    raise ValueError('in the closure')
SGD([]).step(closure)""",
    "error in saving": "train(range(4)); torch.save(lambda: 0, 'model.pt')",
    "error in the loader's arguments": "DataLoader([], 1, 2, 3)",
    "warning": "train(['warn', 'warn', 'warn', 'warn'])",
    "warnings as errors": "warnings.simplefilter('error'); train(['warn', 'warn'])",
    "killed": "train(range(10)); os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "train(range(10)); os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "train(range(10)); os.kill(os.getpid(), signal.SIGINT)",
    "aborted": "train(range(10)); os.abort()",
    "at once": "train(range(10)); os._exit(3)",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("old", ["", "1"], ids=["hooks", "no-hooks"])
def test_a_program_ends_as_it_would_without_us(tmp_path: Path, ending: str, old: str) -> None:
    """Exit code, standard output and standard error, tracebacks and warnings are the same."""
    (tmp_path / "train.py").write_text(TRAINING + ENDINGS[ending])
    with_probe, without = (
        run(tmp_path, "train.py", probe=probe, STAND_IN_OLD=old) for probe in (True, False)
    )
    assert with_probe.reached
    assert (with_probe.code, with_probe.out) == (without.code, without.out)
    assert _without_addresses(with_probe.err) == _without_addresses(without.err)


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def test_a_broken_installation_looks_as_before(tmp_path: Path) -> None:
    """An error while PyTorch is imported has no line of ours in its traceback."""
    with_probe, without = (
        run(tmp_path, "-c", "import torch", probe=probe, STAND_IN_BROKEN="1")
        for probe in (True, False)
    )
    assert "libcudart" in without.err
    assert with_probe.err == without.err
    (tmp_path / "torch" / "utils" / "data").mkdir(parents=True)
    for folder in ("", "utils", "utils/data"):
        (tmp_path / "torch" / folder / "__init__.py").write_text("")
    (tmp_path / "torch" / "utils" / "data" / "dataloader.py").write_text("1 / 0")
    with_probe, without = (
        run(tmp_path, "-c", "import torch.utils.data.dataloader", probe=probe, PYTHONPATH=".")
        for probe in (True, False)
    )
    assert "ZeroDivisionError" in without.err
    assert with_probe.err == without.err


def test_what_is_patched_is_still_itself(tmp_path: Path) -> None:
    """Pickle, isinstance, inspect and the identity of patched functions work as before."""
    command = TRAINING + (
        "import inspect, pickle\n"
        "from torch.utils.data.dataloader import _BaseDataLoaderIter as Iter\n"
        "print(inspect.signature(DataLoader), inspect.signature(torch.save))\n"
        "print(inspect.getsource(Iter.__next__))\n"
        "print(pickle.loads(pickle.dumps(torch.save)) is torch.save)\n"
        "print(isinstance(iter(DataLoader([1])), Iter), Iter.__next__.__qualname__)\n"
        "print(len(pickle.dumps(DataLoader([1]))), torch.save is torch.serialization.save)\n"
        "print(sorted(vars(DataLoader)), sorted(vars(Iter)), sorted(vars(DataLoader([1]))))\n"
    )
    (tmp_path / "train.py").write_text(command)
    with_probe, without = (run(tmp_path, "train.py", probe=probe) for probe in (True, False))
    assert with_probe.reached
    assert without.err == ""
    assert (with_probe.out, with_probe.err) == (without.out, without.err)


@pytest.mark.parametrize("refusal", ["gone", "file", "full"])
def test_a_refusing_disk_disturbs_nobody(tmp_path: Path, refusal: str) -> None:
    """Without a folder, or when the disk is full, the program runs and the probe goes quiet."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
    text = (limit if refusal == "full" else "") + TRAINING + "train(range(100), sleep_s=0.06)"
    (tmp_path / "train.py").write_text(text.replace("range(100)", "range(20)"))
    folder = tmp_path / "there"
    if refusal == "file":
        folder.write_text("in the way")
    elif refusal == "full":
        folder.mkdir()
    added = child_environment({"PYTHONPATH": str(STAND_IN)}, folder)
    done = run(tmp_path, "train.py", probe=False, **added)
    assert (done.code, done.err) == (0, "")
    if refusal == "full":
        (file,) = read_events(folder)
        assert file[0]["event"] == "hello"
        assert file[-1]["event"] != "bye"


def test_a_program_that_closes_all_files_keeps_its_own_clean(tmp_path: Path) -> None:
    """After a program has closed every file, as daemons do, we write into none that it opens."""
    (tmp_path / "train.py").write_text(
        TRAINING
        + "train(range(4))\nos.closerange(3, 64)\n"
        + "files = [open(f'own-{n}', 'w+') for n in range(8)]\n"
        + "train(range(40), sleep_s=0.01)\n"
    )
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    assert [path.read_text() for path in tmp_path.glob("own-*")] == [""] * 8
    assert done.of("step")


def test_a_kill_loses_the_last_moment_at_most(tmp_path: Path) -> None:
    """After SIGKILL the file holds every step but those of the last moment.

    Promised is a quarter of a second; here it is two, for the machine may be busy.
    """
    events = tmp_path / "events"
    events.mkdir()
    (tmp_path / "train.py").write_text(
        TRAINING.replace("optimizer.step()", "optimizer.step(); print(time.time(), flush=True)")
        + "train(range(100000), sleep_s=0.003)"
    )
    env = {**os.environ, "PYTHONPATH": str(STAND_IN)}
    process = subprocess.Popen(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=env | child_environment(env, events),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ends = [float(process.stdout.readline())]
    while ends[-1] - ends[0] < 3.0:
        ends.append(float(process.stdout.readline()))
    killed_s = time.time()
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate()
    ends += [float(line) for line in out.splitlines()]
    (file,) = read_events(events)
    written = [line for line in file if line["event"] == "step"][-1]["step"]
    assert written >= sum(end < killed_s - 2.0 for end in ends) > 0
