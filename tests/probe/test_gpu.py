"""What is measured on a GPU, tried with a stand-in for the calls of torch.cuda."""

from pathlib import Path

import pytest

from tests.probe.child import run

START = """\
import time, torch
from torch.optim import SGD
from torch.utils.data import DataLoader
torch._C = type('C', (), {'_get_fp32_precision_getter': staticmethod(lambda *a: 'tf32')})
torch.cuda.STATE['initialized'] = True
o = SGD([torch.nn.Parameter(30)])
"""

LOOP = """\
for n, b in enumerate(DataLoader(range(20), 2)):
    COPY
    torch.cuda.reach()
    time.sleep(0.006)
    o.step()
"""

COPIES = {
    "to a name": ("torch.Tensor().to('cuda:0')", 1),
    "to a number": ("torch.Tensor().to(0)", 1),
    "to a device": ("torch.Tensor().to(device=torch.device('cuda'))", 1),
    "to where another is": ("torch.Tensor().to(torch.Tensor('cuda'))", 1),
    "cuda": ("torch.Tensor().cuda()", 1),
    "several": ("[torch.Tensor().to('cuda') for n in range(5)]", 5),
}
NONE = {
    "nothing": "pass",
    "another type": "torch.Tensor().to(torch.dtype())",
    "to the host": "torch.Tensor('cuda').to('cpu')",
    "there already": "torch.Tensor('cuda').to('cuda')",
    "a subclass": "type('T', (torch.Tensor,), {})().to('cuda')",
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_to_the_gpu_are_timed_by_the_gpu(tmp_path: Path, name: str) -> None:
    """The GPU's own time of each copy after the first step is counted, without ever waiting."""
    call, count = COPIES[name]
    (tmp_path / "train.py").write_text(START + LOOP.replace("COPY", call))
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    assert done.total("h2d_s") == pytest.approx(9 * count * 0.002)
    assert done.of("odd") == []


@pytest.mark.parametrize("name", NONE)
def test_where_nothing_is_copied_the_time_is_unknown(tmp_path: Path, name: str) -> None:
    """Calls that copy nothing to the GPU leave the time unknown."""
    (tmp_path / "train.py").write_text(START + LOOP.replace("COPY", NONE[name]))
    done = run(tmp_path, "train.py")
    assert {line["h2d_s"] for line in done.of("step")} == {None}


def test_a_copy_that_the_gpu_has_not_reached_is_not_waited_for(tmp_path: Path) -> None:
    """Copies under way are told later; too many of them make the sum unknown, not wrong."""
    call = "[torch.Tensor().to('cuda') for n in range(100)]"
    program = LOOP.replace("COPY", call).replace("0.006", "0.06")  # each step has its own line
    program = program.replace("torch.cuda.reach()", "n < 6 or torch.cuda.reach()")
    (tmp_path / "train.py").write_text(START + program)
    done = run(tmp_path, "train.py")
    assert (done.code, done.err) == (0, "")
    lines = [line["h2d_s"] for line in done.of("step")]
    assert None in lines[1:]
    assert lines[-1] == pytest.approx(0.2)


def test_a_graph_that_is_captured_gets_no_events(tmp_path: Path) -> None:
    """While a CUDA graph is captured, no event is put into it."""
    program = "torch.cuda.STATE['capturing'] = True\ntorch.cuda.Event.record = None\n" + LOOP
    (tmp_path / "train.py").write_text(START + program.replace("COPY", "torch.Tensor().to('cuda')"))
    done = run(tmp_path, "train.py")
    assert (done.code, done.err, done.of("odd")) == (0, "", [])


def test_an_error_of_ours_stops_the_timing_only(tmp_path: Path) -> None:
    """When events fail, copies go on untimed; when a copy fails, the program gets its error."""
    broken = "torch.cuda.Event.record = lambda *a: 1 / 0\n"
    copy = LOOP.replace("COPY", "assert torch.Tensor().to('cuda').is_cuda")
    (tmp_path / "train.py").write_text(START + broken + copy + "torch.Tensor().to('broken')")
    done = run(tmp_path, "train.py")
    assert done.code == 1
    assert done.err.endswith("RuntimeError: CUDA error: out of memory\n")
    assert done.total("n") == 10
    assert "ZeroDivisionError" in done.of("odd")[0]["what"]


def test_tf32_is_told(tmp_path: Path) -> None:
    """Whether matrix products may use TF32 is told."""
    (tmp_path / "train.py").write_text(START + LOOP.replace("COPY", "pass"))
    done = run(tmp_path, "train.py")
    (precision,) = done.of("precision")
    assert (precision["autocast"], precision["dtype"], precision["tf32"]) == (
        None,
        "float32",
        True,
    )
