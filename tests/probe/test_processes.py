"""Forked, spawned and other processes of a program each have their own events."""

from pathlib import Path

import pytest

from tests.probe.child import run

WORK = """\
import multiprocessing, os, sys
import torch
from torch.optim import SGD
from torch.utils.data import DataLoader

def work(count):
    optimizer = SGD([torch.nn.Parameter(3)])
    for batch in DataLoader(range(count)):
        optimizer.step()

if __name__ == '__main__':
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_each_process_of_multiprocessing_has_its_own_file(tmp_path: Path, method: str) -> None:
    """Children count their own steps from one, whatever the parent did before, and say bye."""
    (tmp_path / "train.py").write_text(
        WORK
        + "    work(4)\n"
        + f"    context = multiprocessing.get_context('{method}')\n"
        + "    children = [context.Process(target=work, args=(n,)) for n in (5, 6)]\n"
        + "    [child.start() for child in children]\n"
        + "    [child.join() for child in children]\n"
        + "    print(os.getpid(), *[child.pid for child in children])\n"
    )
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    steps = {file[0]["pid"]: file[-1]["steps"] for file in done.events}
    assert steps == dict(zip(map(int, done.out.split()), (4, 5, 6), strict=True))
    assert all(file[-1]["event"] == "bye" for file in done.events)
    assert all(event["loader"] == 1 for event in done.of("loader"))


def test_a_bare_fork_does_not_repeat_the_parent(tmp_path: Path) -> None:
    """After os.fork both go on, each in its own file; no line of the parent is written twice."""
    (tmp_path / "train.py").write_text(
        WORK + "    work(7)\n    child = os.fork()\n    work(3 if child else 2)\n"
        "    child and os.waitpid(child, 0)\n"
    )
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    assert sorted(file[-1]["steps"] for file in done.events) == [2, 10]
    assert sorted(sum(e.get("n", 0) for e in file) for file in done.events) == [2, 10]


def test_a_launcher_writes_nothing(tmp_path: Path) -> None:
    """A process that imports PyTorch and only starts others has no file."""
    (tmp_path / "launch.py").write_text(
        "import subprocess, sys, torch.optim\n"
        "subprocess.run([sys.executable, 'train.py'], check=True)"
    )
    (tmp_path / "train.py").write_text(WORK + "    work(3)")
    done = run(tmp_path, "launch.py")
    assert (done.code, len(done.reached), len(done.events)) == (0, 2, 1)


def test_a_program_may_become_another(tmp_path: Path) -> None:
    """After exec, the new program has a file of its own, also under the same process id."""
    (tmp_path / "train.py").write_text(
        WORK + "    work(3)\n"
        "    if len(sys.argv) < 2: os.execv(sys.executable, [sys.executable, 'train.py', 'x'])\n"
    )
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    first, second = done.events
    assert first[0]["pid"] == second[0]["pid"]
    assert second[-1] == {**second[-1], "event": "bye", "steps": 3}
