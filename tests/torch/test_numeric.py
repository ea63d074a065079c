"""What may change results is applied where it is asked for, and never over the program's choice."""

import math
from pathlib import Path

from tests.probe.child import Ended
from tests.torch.conftest import Runner

ALL = {"mixed-precision": {}, "channels-last": {}, "fused-optimizer": {}}


def _said(done: Ended) -> dict[str, tuple[str, str]]:
    """Return the last word on each action."""
    return {e["action"]: (e["outcome"], e["what"]) for e in done.of("change")}


def _losses(done: Ended) -> list[float]:
    return [float(line.split()[1]) for line in done.out.splitlines() if line.startswith("loss")]


def _lines(done: Ended, word: str) -> list[str]:
    return [line.partition(" ")[2] for line in done.out.splitlines() if line.startswith(word)]


def test_each_is_applied_and_told(program: Runner) -> None:
    """Bfloat16 inside, float32 outside, channels last from the second step on; fused at once."""
    done, plain = program("fit.py", "whole", apply=ALL), program("fit.py", "whole")
    assert {code: outcome for code, (outcome, _) in _said(done).items()} == dict.fromkeys(
        ALL, "applied"
    )
    assert _lines(done, "seen") == ["torch.float32 False", *["torch.bfloat16 True"] * 5]
    assert _lines(done, "fused") == ["True"]
    assert {line.split()[1] for line in _lines(done, "loss")} == {"torch.float32"}
    assert _lines(plain, "seen") == ["torch.float32 False"] * 6
    assert plain.of("change") == []
    for ours, theirs in zip(_losses(done), _losses(plain), strict=True):
        assert math.isclose(ours, theirs, rel_tol=0.05)


def test_what_the_program_chose_stays(program: Runner) -> None:
    """Its autocast, its layout, its foreach and its hooks are left, each with the reason."""
    done = program("fit.py", "chosen", apply={**ALL, "compile": {}})
    assert done.out == program("fit.py", "chosen").out
    said = _said(done)
    assert {outcome for outcome, _ in said.values()} == {"left"}
    assert "enters autocast itself" in said["mixed-precision"][1]
    assert "laid out so already" in said["channels-last"][1]
    assert "fused or foreach itself" in said["fused-optimizer"][1]
    assert "hooks" in said["compile"][1]


def test_a_model_that_is_never_called_whole_is_left(program: Runner) -> None:
    """Where only parts are called, autocast cannot be put around them: it is left, and said."""
    actions = {"mixed-precision": {}, "fused-optimizer": {}}
    done = program("fit.py", "parts", apply=actions)
    assert done.out == program("fit.py", "parts").out
    said = _said(done)
    assert said["mixed-precision"][0] == "left"
    assert "its parts are called" in said["mixed-precision"][1]
    assert said["fused-optimizer"] == ("left", "it has no fused form")


def test_half_precision_that_needs_a_scaler_is_left(program: Runner) -> None:
    """float16 without loss scaling would lose gradients: it is the program's to do."""
    done = program("fit.py", "whole", apply={"mixed-precision": {"dtype": "fp16"}})
    assert "GradScaler" in _said(done)["mixed-precision"][1]
    assert done.out == program("fit.py", "whole").out


def test_a_compiled_model_captured_a_graph(program: Runner) -> None:
    """torch.compile is applied only where a graph was captured; losses agree."""
    done, plain = program("fit.py", "silent", apply={"compile": {}}), program("fit.py", "silent")
    outcome, what = _said(done)["compile"]
    assert (outcome, what) == ("applied", "torch.compile, from the second step on")
    for ours, theirs in zip(_losses(done), _losses(plain), strict=True):
        assert math.isclose(ours, theirs, rel_tol=1e-3)


def test_a_model_that_cannot_be_compiled_runs_as_before(program: Runner) -> None:
    """Without a compiler that works, the program ends as without us, and that is said."""
    broken = {"CXX": "/bin/false", "TORCHINDUCTOR_CACHE_DIR": "cache"}
    done = program("fit.py", "silent", apply={"compile": {}}, **broken)
    assert done.out == program("fit.py", "silent").out
    assert _said(done)["compile"][0] == "left"
    assert "compiling failed" in _said(done)["compile"][1]


DRAWS = """
import os, random
import torch
from torch.utils.data import DataLoader, Dataset
class Drawn(Dataset):
    def __len__(self): return 60
    def __getitem__(self, i): return torch.tensor([random.random(), float(os.getpid())])
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
rows = []
for batch in DataLoader(Drawn(), batch_size=5, num_workers=1):
    model(batch).sum().backward(); optimizer.step(); rows += batch.tolist()
print(len({row[0] for row in rows}), len({row[1] for row in rows}))
"""


def test_workers_that_are_asked_for_come_whatever_the_loader_says(
    program: Runner, tmp_path: Path
) -> None:
    """A loader with a number of its own and random items gets three, each with its own stream."""
    (tmp_path / "draws.py").write_text(DRAWS)
    done = program("draws.py", apply={"dataloader-workers": {"num_workers": 3, "any_loader": 1}})
    assert done.out.split() == ["60", "3"]
    (change,) = done.of("change")
    assert change["outcome"] == "applied"
    assert "num_workers 1 -> 3" in change["what"]
