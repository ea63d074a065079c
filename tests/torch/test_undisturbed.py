"""A program with real PyTorch cannot tell that the probe is there."""

import re

import pytest

from tests.torch.conftest import Runner

PROGRAM = """
import os, sys, warnings, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Bad(Dataset):
    def __len__(self):
        return 10
    def __getitem__(self, index):
        return 1 / (index - 3)

class Long(IterableDataset):
    def __len__(self):
        return 2
    def __iter__(self):
        return iter(range(5))

def step(loader):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for batch in loader:
        model(batch.float().unsqueeze(1)).sum().backward()
        optimizer.step()

if __name__ == "__main__":
    try:
        BODY
    except Exception:
        import traceback
        traceback.print_exc()
"""

BODIES = {
    "error of a data set": "step(DataLoader(Bad(), batch_size=2))",
    "error in a worker": "step(DataLoader(Bad(), batch_size=2, num_workers=1))",
    "error while saving": "torch.save(lambda: 0, 'x.pt')",
    "error of the model": "torch.nn.Linear(3, 3)(torch.randn(2, 4))",
    "bad arguments": "DataLoader(Bad(), batch_size=2, prefetch_factor=4)",
    "unpicklable for workers": "step(DataLoader([lambda: 0], num_workers=1,"
    " multiprocessing_context='spawn'))",
    "warning about length": "loader = DataLoader(Long()); len(loader); step(loader)",
    "warning about workers": "DataLoader(Long(), num_workers=99)",
    "warning about pinning": "step(DataLoader(Long(), pin_memory=True))",
    "error in a closure": "torch.optim.SGD([torch.ones(1)], 1).step(lambda: 1 / 0)",
    "error under autocast": "torch.autocast('cpu').__enter__(); torch.ones(2) @ torch.ones(3)",
}


@pytest.mark.parametrize("name", BODIES)
def test_errors_and_warnings_look_the_same(program: Runner, name: str) -> None:
    """Tracebacks and warnings have the same lines, ours are not among them."""
    text = PROGRAM.replace("BODY", BODIES[name])
    with_probe, without = (program("-c", text, probe=probe) for probe in (True, False))
    assert without.err
    assert with_probe.reached
    assert _without_numbers(with_probe.err) == _without_numbers(without.err)


def _without_numbers(text: str) -> str:
    """Take out addresses and process ids."""
    return re.sub(r"0x[0-9a-f]+|pid[^ ]* \\d+", "", text)


def test_random_numbers_are_the_same(program: Runner) -> None:
    """Losses are bit-identical with and without the probe."""
    text = (
        "import torch; torch.manual_seed(3)\n"
        "from parts import Slow, loss_of\n"
        "from torch.utils.data import DataLoader\n"
        "m = torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Dropout())\n"
        "o = torch.optim.Adam(m.parameters())\n"
        "for e in range(2):\n"
        "    for b in DataLoader(Slow(40), 5, shuffle=True):\n"
        "        l = loss_of(m, b); l.backward(); o.step(); o.zero_grad(); print(l.item().hex())\n"
    )
    with_probe, without = (program("-c", text, probe=probe) for probe in (True, False))
    assert with_probe.of("bye")[0]["steps"] == 16
    assert with_probe.out == without.out


WRAPPED = """
import sys, torch
from gpucost_probe.hooks import circumstances as copies

class Fake:
    pass

probe = Fake()
probe.steps, probe.events = Fake(), Fake()
probe.steps.copies_s, probe.events.odd = None, lambda what: None
torch.cuda.is_initialized = lambda: True
copies.watch_copies(probe)
assert torch.Tensor.to.__module__.startswith("gpucost_probe")

def cast(x):
    return x.to(torch.float64).to("cpu").sum()

x = torch.ones(3, requires_grad=True)
torch.compile(cast, backend="aot_eager", fullgraph=True)(x).backward()
assert x.grad.sum() == 3
assert torch.jit.script(torch.nn.Linear(2, 2))(torch.ones(1, 2)).shape == (1, 2)
assert torch.vmap(cast)(torch.ones(2, 3)).shape == (2,)
assert torch.func.grad(cast)(torch.ones(3)).sum() == 3
assert torch.nn.Linear(2, 2).to(torch.bfloat16).weight.dtype == torch.bfloat16
torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
try:
    torch.ones(2).to("cuda")
except (AssertionError, RuntimeError):
    print("refused")
"""


def test_copies_that_are_timed_disturb_no_compiler(program: Runner) -> None:
    """With `Tensor.to` wrapped, compile, export, script, vmap and grad work as before."""
    done = program("-c", WRAPPED)
    assert done.out == "refused\n"
