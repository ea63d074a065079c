"""Stacks from outside: py-spy's trace becomes places, and Python code gets the share it has."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from telemetry.measure.outside_stacks import OutsideStacks, command, looks, module_of, placed
from telemetry.recording.places import interval, places, work_of

MODULES = {
    "/x/lib/python3.11/site-packages/torch/utils/data/dataloader.py": "torch.utils.data.dataloader",
    "/usr/lib/python3/dist-packages/PIL/__init__.py": "PIL",
    "/usr/lib/python3.12/queue.py": "queue",
    "<frozen importlib._bootstrap>": "importlib._bootstrap",
    "/home/me/train.py": None,
    "<string>": None,
}


@pytest.mark.parametrize("path", MODULES)
def test_the_owner_of_a_file_is_its_module(path: str) -> None:
    """Libraries are known by where they are installed; all else is the user's own."""
    assert module_of(path) == MODULES[path]


# owner, within: the work
WORK = {
    ("", ""): "host",
    ("", "torch.from_numpy"): "input",
    ("numpy.lib.function_base", ""): "host",
    ("numpy.load", ""): "input",
    ("tokenizers.Tokenizer.encode", ""): "input",
    ("transformers.models.bert.tokenization_bert", "torch.utils.data.dataloader"): "input",
    ("torch.nn.functional", "torch.utils.data._utils.fetch"): "input",
    ("torch.nn.functional", "torch.tensor"): "model",
    ("torch.stack", "torch.utils.data"): "input",
    ("torch.stack", "torch.nn.modules.module"): "model",
    ("torch.nn.modules.module", "torch.utils.data"): "model",
    ("torch._C.TensorBase.item", "torch.utils.data"): "device",
    ("torch._C.TensorBase.item", ""): "device",
    ("torch.cuda.synchronize", ""): "device",
    ("jaxlib._jax.ArrayImpl.block_until_ready", ""): "device",
    ("torch._tensor>torch.autograd.graph", ""): "model",
    ("torch.optim.optimizer>torch.optim.adam", ""): "model",
    ("tensorflow.python.util.traceback_utils>tensorflow.python.eager.execute", ""): "model",
    ("torch._C.TensorBase.matmul", ""): "model",
    ("torch.nn.modules.module>torch._inductor.codecache", ""): "compile",
    ("torch.serialization", ""): "save",
    ("keras.src.utils.traceback_utils>keras.src.optimizers.base_optimizer", ""): "model",
    ("keras.src.utils.traceback_utils>keras.src.trainers.data_adapters.array", ""): "input",
    ("keras.src.utils.traceback_utils>keras.src.utils.progbar", ""): "logging",
    ("requests.api>ssl", "torch.utils.data._utils.fetch"): "input",
    ("requests.api>ssl", ""): "network",
    ("wandb.sdk.wandb_run", ""): "logging",
    ("time.sleep", "torch.utils.data._utils.fetch"): "input",
}


@pytest.mark.parametrize("names", WORK)
def test_the_work_follows_from_the_owner(names: tuple[str, str]) -> None:
    """What a place is comes from the module that owns the code, not from words in its name."""
    assert work_of(*names) == WORK[names]


def _event(ph: str, name: str, ts: int, file: str = "/a.py", tid: int = 7) -> dict[str, object]:
    args = {"filename": file, "line": 3 if file else 0}
    return {"ph": ph, "name": name, "ts": ts, "pid": 1, "tid": tid, "args": args}


def test_a_stack_counts_for_as_long_as_it_stood() -> None:
    """Between two events of a trace a stack was seen unchanged, once each tenth of a second."""
    trace = [
        _event("B", "thread (1): MainThread", 0, ""),
        _event("B", "main", 0),
        _event("B", "slow", 0),
        _event("E", "slow", 700_000),
        _event("B", "fast", 700_000),
        _event("E", "fast", 1_000_000),
    ]
    seen = [placed(7, stacks)[0] for _, stacks, main in looks(json.dumps(trace)) if main == 7]
    assert [seen.count(f"{name} (a.py:3)") for name in ("slow", "fast")] == [7, 3]


def test_few_looks_are_a_wide_interval() -> None:
    """Four looks of ten are 40 %, and may be 19 or 65 %: Wilson's interval, by hand."""
    low, high = interval(0.4, 10)
    assert (round(low, 3), round(high, 3)) == (0.194, 0.648)


PROGRAM = """
import sys, time, zlib
data = bytes(range(256)) * 4000
def count(n):
    total = 0
    for i in range(n): total += i
    return total
def pack(): zlib.compress(data)  # lets go of the interpreter's lock
begin = time.perf_counter(); own = 0.0
print('begun', flush=True)
while time.perf_counter() - begin < 6:
    start = time.perf_counter(); count(40_000); own += time.perf_counter() - start
    pack()
print(own / (time.perf_counter() - begin))
"""


@pytest.mark.slow
def test_python_code_gets_its_share(tmp_path: Path) -> None:
    """Calls of some milliseconds in front of one that lets go of the lock: within 15 points."""
    if command() is None:
        pytest.skip("py-spy is not installed")
    (tmp_path / "job.py").write_text(PROGRAM)
    words = [sys.executable, "-I", str(tmp_path / "job.py")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        job.stdout.readline()
        stacks = OutsideStacks()
        lines = []
        while job.poll() is None:
            lines += stacks.look(job.pid, time.time())
            time.sleep(0.05)
        lines += stacks.end(time.time())
        true_share = float(job.stdout.read())
    if stacks.problem is not None:
        pytest.skip(stacks.problem)
    seen = places([json.loads(line) for line in lines], stepped=False)
    share = sum(place.time_fraction for place in seen if place.place.startswith("count ("))
    assert share == pytest.approx(true_share, abs=0.15)


def test_python_that_feeds_a_graph_is_where_the_time_goes() -> None:
    """While TensorFlow's graph runs, what `tf.data` calls in a thread is input, with its line.

    Python that another thread runs for itself is not what the graph waits for.
    """
    site = "/v/lib/python3.11/site-packages/"
    main = (
        ("main", "/home/me/train.py", 38),
        ("fit", site + "keras/src/utils/traceback_utils.py", 117),
        ("quick_execute", site + "tensorflow/python/eager/execute.py", 53),
    )
    decoding = (
        ("__call__", site + "tensorflow/python/autograph/impl/api.py", 331),
        ("decode", "/home/me/train.py", 12),
    )
    counting = (("count", "/home/me/train.py", 20),)
    place, owner, within = placed(1, {1: main, 2: decoding, 3: counting})
    assert (place, work_of(owner, within)) == ("decode (train.py:12)", "input")
    place, owner, within = placed(1, {1: main, 3: counting})
    assert (place, work_of(owner, within)) == ("main (train.py:38)", "model")


def test_a_thread_of_the_probe_is_nothing_to_wait_for() -> None:
    """The main thread waits in a queue that a thread fills; the probe's own thread looks on."""
    main = (("train", "/home/me/train.py", 9), ("get", "/usr/lib/python3.12/queue.py", 171))
    probe = (
        ("_run", "/v/gpucost_probe/stacks.py", 360),
        ("_look", "/v/gpucost_probe/stacks.py", 1),
    )
    filling = (("run", "/usr/lib/python3.12/threading.py", 9), ("fill", "/home/me/train.py", 3))
    place, owner, within = placed(1, {1: main, 2: probe, 3: filling})
    assert (place, work_of(owner, within)) == ("fill (train.py:3)", "input")


def test_the_probes_own_code_is_no_place() -> None:
    """What the probe does as the program ends is not named as a line of the program."""
    ours = ("bye", "/v/gpucost_probe/events.py", 144)
    assert placed(1, {1: (ours,)})[0] == ""
    assert placed(1, {1: (("main", "/home/me/train.py", 3), ours)})[0] == "main (train.py:3)"
