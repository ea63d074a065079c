"""What `gpucost run` applies in a program with real PyTorch: identical results, or not at all."""

import re
from typing import Any

from tests.probe.child import Ended
from tests.torch.conftest import PROGRAMS, Runner

WORKERS: dict[str, Any] = {"dataloader-workers": {"num_workers": 2, "prefetch_factor": 2}}

# Name: what is said of it. Some show only once workers read them; results stay the same anyway.
REFUSED = {
    "torch-random": "draw from PyTorch's random numbers",
    "numpy-random": "draw from NumPy's random numbers",
    "python-random": "draw from Python's random numbers",
    "own-generator": "changes itself while it is read",
    "own-torch-generator": "changes itself while it is read",
    "global-generator": "changes itself while it is read",
    "random-collate": "draw from PyTorch's random numbers",
    "rarely-random": "in a worker, items draw from PyTorch's random numbers",
    "iterable": "every batch once for each worker",
    "open-file": "an open file",
    "lazy-file": "an open file",
    "counting": "changes itself while it is read",
    "stream": "an iterator",
    "big-sums": "workers read other batches",
    "nested": "another DataLoader",
    "mutated": "the program changes the data set",
    "dies-in-workers": "workers ended in RuntimeError",
    "only-in-workers": "workers read other batches",
    "drawing-sampler": "DrawingSampler is the program's own and uses",
    "late-sampler": "LateSampler is the program's own and uses",
    "generator": "draws from the program's generator as it goes",
    "given-zero": "the program sets num_workers=0 itself",
    "given-two": "the program sets num_workers=2 itself",
    "shared-memory": "shared memory has no room",
    "spawn": "not be forked but started anew",
    "spawn-lambda": "not be forked but started anew",
}
ORDINARY = tuple(re.findall(r'"([a-z-]+)": lambda', (PROGRAMS / "ordinary_sets.py").read_text()))


def _last_words(done: Ended) -> dict[str, tuple[str, str]]:
    """Return outcome and reason of each loader, by the name of its data set."""
    return {
        event["where"].partition("(")[2].rstrip(")"): (event["outcome"], event["what"])
        for event in done.of("change")
    }


def test_every_unsafe_data_set_is_left_alone_with_its_reason(program: Runner) -> None:
    """Each is named with its reason, and losses and random streams are those without us."""
    done = program("train_on.py", *REFUSED, apply=WORKERS)
    plain = program("train_on.py", *REFUSED, probe=False)
    assert done.out == plain.out
    assert done.err == plain.err
    assert done.of("odd") == []
    said = _last_words(done)
    for name, words in REFUSED.items():
        outcome, what = said[name]
        assert outcome == "left", (name, what)
        assert words in what, (name, what)


def test_ordinary_data_sets_get_workers_and_the_same_losses(program: Runner) -> None:
    """None of them is refused: false refusals are 0; losses are the same bit for bit."""
    done = program("train_on.py", *ORDINARY, apply=WORKERS)
    plain = program("train_on.py", *ORDINARY, probe=False)
    assert done.out == plain.out
    assert done.err == plain.err
    said = _last_words(done)
    assert len(ORDINARY) >= 10
    assert set(said) == set(ORDINARY)
    assert {name: what for name, (outcome, what) in said.items() if outcome == "left"} == {}
    assert done.of("odd") == []


def _time(done: Ended) -> tuple[list[str], float]:
    *losses, seconds = done.out.split()
    return losses, float(seconds)


def test_a_loop_that_waits_for_its_items_gets_twice_as_fast(program: Runner) -> None:
    """Safe settings alone make it at least twice as fast, and every loss is the same."""
    losses, after_s = _time(program("starved.py", "waits", apply=WORKERS))
    same, before_s = _time(program("starved.py", "waits"))
    assert losses == same
    assert before_s / after_s >= 2


def test_a_loop_that_waits_for_nothing_stays_as_it_is(program: Runner) -> None:
    """A healthy loader gets no workers, and the reason is said."""
    done = program("starved.py", "ready", apply=WORKERS)
    assert _time(done)[0] == _time(program("starved.py", "ready"))[0]
    (change,) = done.of("change")
    assert change["outcome"] == "left"
    assert "nothing to gain" in change["what"]
