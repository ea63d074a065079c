"""Where the program spends its time is seen by its own lines, and it cannot tell that we look."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from telemetry.probe.path.gpucost_probe.stacks import _tensors_made
from telemetry.recording.places import LATE, work_of
from tests.probe.child import Ended, run
from tests.probe.test_hooks import START

SLOW = """
def get_batch(secret):
    time.sleep(0.04)
    return secret
for i in range(50):
    get_batch("hunter2"); o.step()
"""


def seen(done: Ended) -> Counter[tuple[str, str, str]]:
    """Return how often each phase, place and work was seen; lines are left out of the places."""
    found: Counter[tuple[str, str, str]] = Counter()
    for line in done.of("stacks"):
        for during, place, owner, within, n in line["seen"]:
            work = work_of(owner.removeprefix(LATE), within)
            found[during, place.rpartition(":")[0], work] += n
    return found


def test_a_slow_function_is_named(tmp_path: Path) -> None:
    """Most of the samples of the steps lie in the function that takes most of the time."""
    (tmp_path / "train.py").write_text(START + SLOW)
    done = run(tmp_path, "train.py")
    (most, n), *_ = seen(done).most_common()
    assert most == ("steady", "get_batch (train.py", "sleep")
    assert n >= 5
    assert done.of("odd") == []


def test_only_names_are_kept(tmp_path: Path) -> None:
    """No argument, value or source text is in what is written."""
    (tmp_path / "train.py").write_text(START + SLOW)
    run(tmp_path, "train.py")
    (file,) = (tmp_path / "events").glob("*.jsonl")
    text = file.read_text(encoding="utf-8")
    assert "get_batch" in text
    assert "hunter2" not in text
    assert "secret" not in text
    assert str(tmp_path) not in text


def test_it_can_be_told_off(tmp_path: Path) -> None:
    """With GPUCOST_PROBE_STACKS=0 no stack is looked at; steps are counted as before."""
    (tmp_path / "train.py").write_text(START + SLOW)
    done = run(tmp_path, "train.py", GPUCOST_PROBE_STACKS="0")
    assert done.of("stacks") == []
    assert done.total("n") == 50


UNSEEN = """
import signal
def threads():
    with open('/proc/self/status') as f:
        return [line for line in f if line.startswith('Threads:')]
def mask(): return sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
for i in range(5): time.sleep(0.1); o.step()
print(len(threading.enumerate()), threading.active_count(), mask())
caught = []
signal.signal(signal.SIGTERM, lambda *_: caught.append(threading.current_thread().name))
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
print(caught)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)  # a second thread that does not block it would die of it
time.sleep(0.5)
print(signal.sigwait([signal.SIGUSR1]))
pid = os.fork()
if not pid:
    print(threads()); sys.stdout.flush(); os._exit(0)
print(os.waitpid(pid, 0)[1])
for i in range(5): time.sleep(0.1); o.step()
"""


def test_a_program_does_not_see_the_thread(tmp_path: Path) -> None:
    """Threads as Python lists them, signals, masks and a fork are as without the probe."""
    (tmp_path / "train.py").write_text(START + UNSEEN)
    with_probe, without = (run(tmp_path, "train.py", probe=probe) for probe in (True, False))
    assert (with_probe.code, with_probe.err) == (0, "")
    assert with_probe.out == without.out


def test_stacks_go_on_after_a_fork(tmp_path: Path) -> None:
    """The thread ends before a fork and is back after it."""
    program = """
for i in range(20): time.sleep(0.02); o.step()
if not os.fork(): os._exit(0)
os.wait()
def later():
    for i in range(40): time.sleep(0.02); o.step()
later()
"""
    (tmp_path / "train.py").write_text(START + program)
    found = seen(run(tmp_path, "train.py"))
    assert any(place.startswith("later (") for _, place, _ in found)


def test_a_loader_in_a_thread_is_named_as_what_is_waited_for(tmp_path: Path) -> None:
    """The main thread waits in a queue: the place is that of the thread that fills it."""
    program = """
import queue
q = queue.Queue(1)
def produce():
    for i in range(30): time.sleep(0.04); q.put(i)
    q.put(None)
threading.Thread(target=produce).start()
def train():
    while q.get() is not None: o.step()
train()
"""
    (tmp_path / "train.py").write_text(START + program)
    (most, n), *_ = seen(run(tmp_path, "train.py")).most_common()
    assert most == ("steady", "produce (train.py", "input")
    assert n >= 3


# a line: what it does
LINES = {
    "time.sleep(0.05)": "sleep",
    "sum(i * i for i in range(400_000))": "host",
    "import gzip; gzip.decompress(gzip.compress(b'x' * 9_000_000, 9))": "input",
}


@pytest.mark.parametrize("line", LINES)
def test_the_work_of_a_line_is_told(tmp_path: Path, line: str) -> None:
    """What a line does follows from what it calls."""
    program = f"\ndef work():\n    {line}\nfor i in range(40): work(); o.step()\n"
    (tmp_path / "train.py").write_text(START + program)
    found = seen(run(tmp_path, "train.py"))
    steady = Counter({key[2]: n for key, n in found.items() if key[0] in {"steady", "stall"}})
    assert steady.most_common(1)[0][0] == LINES[line]


# body of a function: within what its lines stand
BODIES = {
    "x = torch.stack([data[i] for i in ix]); return x.to(device)": "torch.utils.data",
    "return torch.from_numpy(a)": "torch.from_numpy",
    "return torch.stack([a, b])": "",
    "x = torch.stack(items).to(device); model(x).mean().backward()": "",
    "o = torch.as_tensor(o); return env.step(policy(o))": "",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_function_that_makes_a_batch_of_what_lies_on_the_host_is_input(body: str) -> None:
    """It stacks and copies, or makes tensors, and trains nothing meanwhile."""
    made: dict[str, Any] = {}
    exec(f"def work():\n    {body}", made)  # noqa: S102 - ours
    assert _tensors_made(made["work"].__code__) == BODIES[body]


def test_evaluation_and_the_end_are_told_apart(tmp_path: Path) -> None:
    """Samples carry what went on: start-up, steps, evaluation, what follows the last step."""
    program = """
class Slow:
    def __len__(self): return 20
    def __getitem__(self, i): time.sleep(0.05); return i
def prepare(): time.sleep(0.6)
def train():
    for b in DataLoader(range(30), 2): time.sleep(0.04); o.step()
def evaluate():
    for b in DataLoader(Slow(), 2): pass
def finish(): time.sleep(0.6)
prepare(); train(); evaluate(); train(); finish()
"""
    (tmp_path / "train.py").write_text(START + program)
    found = seen(run(tmp_path, "train.py"))
    phases = {(during, place.partition(" ")[0]) for during, place, _ in found}
    assert {
        ("start-up", "prepare"),
        ("steady", "train"),
        ("evaluation", "Slow.__getitem__"),
        ("teardown", "finish"),
    } <= {(during, place) for during, place in phases}


ENDINGS = {
    "raise MemoryError": ("MemoryError", "host"),
    "raise RuntimeError('CUDA out of memory. Tried to allocate')": ("RuntimeError", "gpu"),
    "raise ValueError('token=hunter2')": ("ValueError", None),
}


@pytest.mark.parametrize("line", ENDINGS)
def test_an_exception_that_ends_the_program_is_named(tmp_path: Path, line: str) -> None:
    """The type of what ended it, and whether memory ran out; never its text."""
    (tmp_path / "train.py").write_text(START + "o.step(); o.step()\n" + line)
    with_probe, without = (run(tmp_path, "train.py", probe=probe) for probe in (True, False))
    (bye,) = with_probe.of("bye")
    assert (bye["error"], bye.get("out_of_memory")) == ENDINGS[line]
    assert (with_probe.code, with_probe.err) == (without.code, without.err)
    assert "hunter2" not in str(bye)


def test_backward_passes_are_counted_without_an_optimizer(tmp_path: Path) -> None:
    """A loop that updates by hand is told by its backward passes."""
    (tmp_path / "train.py").write_text(
        START + "import torch.autograd\nfor i in range(30):\n"
        "    time.sleep(0.01); torch.autograd.backward(None)\n"
    )
    done = run(tmp_path, "train.py")
    rounds = [line for line in done.of("iteration") if line["by"] == "backward"]
    assert sum(line["n"] for line in rounds) == 30
    assert done.of("step") == []
