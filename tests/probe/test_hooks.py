"""What the hooks see in a program, and that they step aside instead of failing."""

from pathlib import Path

import pytest

from tests.probe.child import run

START = """\
import os, sys, threading, time
import torch
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader
parameter = torch.nn.Parameter(30)
o = SGD([parameter])
"""

STEPS = {
    "each step": ("for b in DataLoader(range(12), 3): o.step()", 4),
    "accumulated": (
        """
for i, b in enumerate(DataLoader(range(12), 1)):
    if i % 3 == 2: o.step()""",
        4,
    ),
    "super().step()": (
        """
class Twice(SGD):
    def step(self, closure=None): return super().step(closure)
o = Twice([parameter])
for b in range(5): o.step()""",
        5,
    ),
    "wrapped": (
        """
class Around(Optimizer):
    def __init__(self, inner): self.inner = inner; super().__init__([parameter])
    def step(self, closure=None): return self.inner.step(closure)
o = Around(o)
for b in range(5): o.step()""",
        5,
    ),
    "one of two": (
        """
other = SGD([parameter])
for b in range(5): o.step(); other.step()""",
        5,
    ),
    "the other takes over": (
        """
other = SGD([parameter])
o.step()
for b in range(30): other.step()""",
        1 + 30 - 19,
    ),
    "the first is gone": (
        """
other = SGD([parameter])
o.step(); del o
for b in range(3): other.step()""",
        4,
    ),
    "failed steps do not count": (
        """
def fail(): raise ValueError
for b in range(6):
    try: o.step(fail if b % 2 else None)
    except ValueError: pass""",
        3,
    ),
    "a closure": ("for b in range(3): o.step(lambda: 1)", 3),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_counted_exactly(tmp_path: Path, name: str) -> None:
    """Each optimizer step counts once."""
    program, count = STEPS[name]
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    assert [event["steps"] for event in done.of("bye")] == [count]
    assert done.total("n") == count
    assert done.of("step")[-1]["step"] == count
    assert done.of("odd") == []


def test_the_first_line_says_who_speaks(tmp_path: Path) -> None:
    """The hello line names process, framework, versions and script."""
    (tmp_path / "train.py").write_text(START + "SGD([parameter]).step(); print(os.getpid())")
    done = run(tmp_path, "train.py")
    hello = done.events[0][0]
    assert hello["event"] == "hello"
    assert (hello["pid"], hello["script"]) == (int(done.out), "train.py")
    assert (hello["framework"], hello["version"]) == ("pytorch", "2.13.0+stand-in")


def test_a_loader_tells_its_settings_once(tmp_path: Path) -> None:
    """A loader is described at its first iteration, and no more."""
    program = "l = DataLoader(range(10), batch_size=4)\nfor e in range(3): list(l)\n"
    (tmp_path / "train.py").write_text(START + program)
    (loader,) = run(tmp_path, "train.py").of("loader")
    del loader["t_s"]
    assert loader == {"event": "loader", "loader": 1, "batch_size": 4, "num_workers": 0}


def test_a_wait_tells_whether_it_works_or_sleeps(tmp_path: Path) -> None:
    """Items that compute are on a core for most of their time, sleeping ones are not."""
    program = """
class Items(list):
    def __getitem__(self, index):
        end_s = time.thread_time() + 0.01
        while sys.argv[1] == 'work' and time.thread_time() < end_s: pass
        if sys.argv[1] == 'sleep': time.sleep(0.05)
        return index
for b in DataLoader(Items(range(16)), 2): o.step()
"""
    (tmp_path / "train.py").write_text(START + program)
    shares = {}
    for way in ("work", "sleep"):
        told = run(tmp_path, "train.py", way).of("reading")
        assert len(told) == 4  # at 1, 2, 4 and 8 waits
        shares[way] = told[-1]["wanted_s"] / told[-1]["waited_s"]
    assert shares["sleep"] < 0.5 < shares["work"]


def test_items_are_those_of_the_batches(tmp_path: Path) -> None:
    """Items of all batches are counted, the smaller last one too."""
    program = "for b in DataLoader(range(10), 4): o.step()"
    (tmp_path / "train.py").write_text(START + program)
    assert run(tmp_path, "train.py").total("items") == 10


def test_steps_without_a_loader_have_no_wait(tmp_path: Path) -> None:
    """Where no loader is read, waits and items are unknown, not zero; so is the first length."""
    (tmp_path / "train.py").write_text(START + "for b in 'abc': o.step()")
    first, *rest = run(tmp_path, "train.py").of("step")
    assert (first["step_s"], first["data_wait_s"], first["items"], first["n"]) == (*[None] * 3, 1)
    assert all(line["step_s"] > 0 and line["data_wait_s"] is None for line in rest)


def test_a_loader_read_in_another_thread_makes_nobody_wait(tmp_path: Path) -> None:
    """Waits of a thread that reads ahead are not waits of the training loop: unknown, and said."""
    program = """
import queue
q = queue.Queue(1)
def read():
    for b in DataLoader(range(20), 2): time.sleep(0.01); q.put(b)
    q.put(None)
threading.Thread(target=read).start()
while q.get() is not None: o.step()
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert done.total("n") == 10
    assert {line["data_wait_s"] for line in done.of("step")} == {None}
    assert "another thread" in done.of("odd")[0]["what"]


def test_a_nested_loader_is_not_counted_twice(tmp_path: Path) -> None:
    """A loader that another loader's data set reads is part of that one's wait."""
    program = """
class Outer:
    inner = DataLoader(range(4), 2)
    def __len__(self): return 8
    def __getitem__(self, i): time.sleep(0.005); return list(self.inner)
for b in DataLoader(Outer(), 4): o.step()
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert [(e["loader"], e["batch_size"]) for e in done.of("loader")] == [(1, 4)]
    assert 8 * 0.005 <= done.total("data_wait_s") <= done.total("step_s")
    assert done.total("items") == 8


def test_the_model_is_the_outermost_that_holds_the_parameters(tmp_path: Path) -> None:
    """Size, type and parallelism are those of the root, frozen parameters included."""
    program = """
from torch.nn import DistributedDataParallel, Module
body, head, other = Module(count=700), Module(count=300), Module(count=9)
root = DistributedDataParallel(Module(body, head))
SGD(head.parameters()).step()
"""
    (tmp_path / "train.py").write_text(START + program)
    (model,) = run(tmp_path, "train.py").of("model")
    assert (model["parameters"], model["dtype"]) == (1000, "float32")
    assert model["parallelism"] == "ddp"


def test_each_file_of_a_checkpoint_is_timed(tmp_path: Path) -> None:
    """Each saved file is told at once, and its time is part of the step's."""
    program = """
for b in DataLoader(range(4), 2):
    o.step()
    torch.save('x' * 1000, 'a'); torch.save('y' * 2000, 'b')
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    spans = [event for event in done.of("span") if event["kind"] == "checkpoint"]
    assert len(spans) == 4
    first = sum(span["s"] for span in spans[:2])
    assert done.total("checkpoint_s") == pytest.approx(first, abs=1e-5)


def test_a_program_that_only_saves_is_no_training(tmp_path: Path) -> None:
    """Saving alone writes no events: a converter of checkpoints is not measured."""
    (tmp_path / "train.py").write_text(START + "torch.save(1, 'a')")
    done = run(tmp_path, "train.py")
    assert done.reached
    assert done.events == ()


def test_a_hook_that_fails_steps_aside(tmp_path: Path) -> None:
    """When PyTorch is not as expected, the hook goes silent, says so, and the program runs on."""
    program = """
class Odd(DataLoader):
    @property
    def num_workers(self): return Odd
    @num_workers.setter
    def num_workers(self, value): pass
for b in Odd(range(6), 2): o.step()
print('done')
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert (done.code, done.out, done.err) == (0, "done\n", "")
    assert "DataLoader.__iter__ stepped aside" in done.of("odd")[0]["what"]
    assert done.of("bye")[0]["steps"] == 3


def test_a_pytorch_before_the_second_is_named(tmp_path: Path) -> None:
    """Without the hooks of PyTorch 2 no step is seen, and the reason is told."""
    (tmp_path / "train.py").write_text(
        START + "SGD([parameter]).step(); next(iter(DataLoader(range(4))))"
    )
    done = run(tmp_path, "train.py", STAND_IN_OLD="1")
    assert (done.code, done.err) == (0, "")
    assert done.of("step") == []
    assert any("before 2.0" in event["what"] for event in done.of("odd"))


def test_an_unknown_pytorch_is_left_alone(tmp_path: Path) -> None:
    """Where what we would patch is missing, nothing is patched, and the reason is kept."""
    loader = tmp_path / "torch" / "utils" / "data"
    loader.mkdir(parents=True)
    for folder in ("", "utils", "utils/data", "optim"):
        (tmp_path / "torch" / folder).mkdir(exist_ok=True)
        (tmp_path / "torch" / folder / "__init__.py").write_text("__version__ = '9'")
    (loader / "dataloader.py").write_text("")
    (tmp_path / "torch" / "optim" / "optimizer.py").write_text(
        "hooks = []\n"
        "register_optimizer_step_pre_hook = register_optimizer_step_post_hook = hooks.append\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch.utils.data.dataloader, torch.optim.optimizer as o\n"
        "class O: param_groups = []\n"
        "x = O()\no.hooks[0](x, (x,), {}); o.hooks[1](x, (x,), {})\nprint('done')"
    )
    done = run(tmp_path, "train.py", PYTHONPATH=".")
    assert (done.code, done.out, done.err) == (0, "done\n", "")
    assert "torch.utils.data.dataloader was not patched" in done.of("odd")[0]["what"]


def test_an_interrupted_wait_is_forgotten(tmp_path: Path) -> None:
    """After an interrupt in the midst of a batch, and of our own hook, later waits count."""
    program = """
from gpucost_probe.hooks import loader
known = loader.core_times_s
def interrupted():
    loader.core_times_s = known
    raise KeyboardInterrupt
loader.core_times_s = interrupted
try: list(DataLoader(range(8), 2))
except KeyboardInterrupt: pass
for b in DataLoader(range(8), 2): time.sleep(0.06); o.step()
"""
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    assert (done.total("n"), done.total("items")) == (4, 8)


def test_a_saver_within_a_saver_is_one_file(tmp_path: Path) -> None:
    """A function that saves by calling another that saves is told once."""
    (tmp_path / "safetensors").mkdir()
    (tmp_path / "safetensors" / "__init__.py").write_text("")
    (tmp_path / "safetensors" / "torch.py").write_text(
        "import torch\n"
        "def save_file(tensors, filename):\n"
        "    torch.save(tensors, 'inner')\n"
        "    torch.save(tensors, filename)\n"
    )
    program = "import safetensors.torch as s\no.step()\ns.save_file(1, 'a'); s.save_file(1, 'b')"
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert (done.code, done.err, done.of("odd")) == (0, "", [])
    assert [event["kind"] for event in done.of("span")] == ["checkpoint"] * 2
