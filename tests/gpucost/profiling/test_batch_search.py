"""The largest batch that fits is found in processes of their own, which end after a few steps."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucost.profiling.run_request import BatchTried, attempt_in_child, search
from pricing.errors import InputError
from tests.probe.child import STAND_IN

PROGRAM = """
import sys
import torch
from torch.optim import SGD
from torch.utils.data import DataLoader
parameter = torch.nn.Parameter(30)
o = SGD([parameter])
held = []
for batch in DataLoader(range(4000), 4):
    held = bytearray(len(batch) * {mib} * 2**20)
    o.step()
open("finished", "w").close()
print("not to be seen")
"""


def _machine(limit: int, own: int = 8, items: int | None = None) -> Callable[..., BatchTried]:
    def attempt(batch: int | None, was: int | None) -> BatchTried:
        assert was in {None, own}
        size = own if batch is None else batch
        if size > limit:
            return BatchTried(batch=size, fits=False, why="out of GPU memory")
        return BatchTried(batch=size, fits=True, items=items, step_s=0.1)

    return attempt


@pytest.mark.parametrize("limit", [8, 9, 15, 16, 100, 127, 1000, 5000])
def test_the_largest_is_known_to_a_sixteenth(limit: int) -> None:
    """It was seen to fit, and one a sixteenth larger was seen not to; few trials tell."""
    found = search(_machine(limit))
    assert found.largest <= limit < found.largest + max(1, found.largest // 16) + 1
    assert f"{found.largest}" in [str(one.batch) for one in found.tried if one.fits]
    assert len(found.tried) <= 18
    assert "out of GPU memory" in found.why
    assert json.loads(found.document)["largest"] == found.largest


def test_a_batch_is_not_larger_than_the_data() -> None:
    """What the data set cannot fill is not tried, and that is said."""
    found = search(_machine(10**9, items=50))
    assert (found.largest, found.why) == (32, "the data set has 50 items")


def test_it_ends_where_nothing_ends_it() -> None:
    """Twelve doublings are the most; that more was not tried is said."""
    found = search(_machine(10**9))
    assert (found.largest, found.why) == (8 << 12, f"{8 << 12} was not tried")


def test_a_program_that_fails_by_itself_is_not_searched() -> None:
    """Its own batch must run first; the reason is what it said."""
    failed = BatchTried(batch=None, fits=None, why="it ended with 1: no such file")
    with pytest.raises(InputError, match="no such file"):
        search(lambda _batch, _own: failed)


def _attempt(folder: Path, text: str, limit_bytes: int | None) -> Callable[..., BatchTried]:
    program = folder / "train.py"
    program.write_text(text, encoding="utf-8")
    environ = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        "PYTHONPATH": str(STAND_IN),
        "TMPDIR": str(folder),
    }
    return attempt_in_child((sys.executable, str(program)), environ, limit_bytes)


def test_a_limit_of_memory_is_found_and_nothing_behind_the_steps_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches of 8 MiB an item, old and new, fit into 256 MiB; the loop never ends."""
    monkeypatch.chdir(tmp_path)
    found = search(_attempt(tmp_path, PROGRAM.format(mib=8), 256 * 2**20))
    assert found.own == 4
    assert 8 <= found.largest < 16
    assert "out of host memory" in found.why
    first = found.tried[0]
    assert (first.items, first.fits) == (4000, True)
    assert first.host_gib is not None
    assert not (tmp_path / "finished").exists()
    assert not (tmp_path / "work" / "finished").exists()
    assert list(tmp_path.glob("gpucost-probe-*")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit('no data here')", "no data here"),
        ("print('nothing is trained')", "before 4 optimizer steps were seen"),
    ],
)
def test_a_program_without_steps_says_why(tmp_path: Path, text: str, words: str) -> None:
    """How it ended, and its last word."""
    found = _attempt(tmp_path, text, None)(None, None)
    assert found.fits is None
    assert words in found.why


def test_a_batch_that_the_program_makes_itself_is_not_searched(tmp_path: Path) -> None:
    """A loader that is always made with 3 cannot be tried with 6: that is said, not hidden."""
    text = PROGRAM.format(mib=0).replace("4000), 4)", "4000), 3)")
    attempt = _attempt(tmp_path, text, None)
    assert attempt(None, None).batch == 3
    assert attempt(6, 3).batch == 6
    assert "it sets its batch otherwise" in attempt(6, 5).why


def test_the_fastest_and_the_smallest_that_is_as_fast_are_told() -> None:
    """By items a second, 64 is the fastest, and 32 within 2 % of it; 128 fits."""
    rates = {8: 80.0, 16: 150.0, 32: 200.0, 64: 203.0, 128: 190.0}

    def attempt(batch: int | None, _own: int | None) -> BatchTried:
        size = batch or 8
        if size > 128:
            return BatchTried(batch=size, fits=False, why="out of GPU memory")
        return BatchTried(batch=size, fits=True, step_s=size / rates[size])

    result = search(attempt)
    assert (result.fastest, result.smallest, result.largest) == (64, 32, 128)
