"""Callbacks that measure the training they are given to; here with libraries of their shape."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# As Lightning and the Trainer call them; the real ones: tests/torch/test_callbacks.py.
LIBRARIES = """
import sys, types
lightning, pytorch, transformers = (types.ModuleType(n) for n in ("lightning", "pytorch", "tr"))
pytorch.Callback = type("Callback", (), {})
transformers.TrainerCallback = type("TrainerCallback", (), {})
sys.modules |= {"lightning": lightning, "lightning.pytorch": pytorch, "transformers": transformers}
from gpucost.callbacks import LightningCallback, TransformersCallback
told = dict(gpu=False, interval_s=0.1, quiet=True)
"""
TRAIN = "for _ in range(20): callback.measurement.step()\n"
WAYS = {
    "Lightning": (
        "callback = LightningCallback('mine', **told)\n"
        "callback.setup(None, None, 'validate')\nassert callback.measurement is None\n"
        f"callback.setup(None, None, 'fit')\n{TRAIN}"
        "callback.teardown(None, None, 'fit')\n"
    ),
    "Lightning, broken off": (
        f"callback = LightningCallback('mine', **told)\ncallback.setup(None, None, 'fit')\n{TRAIN}"
        "callback.on_exception(None, None, ValueError())\ncallback.teardown(None, None, 'fit')\n"
    ),
    "Transformers": (
        "callback = TransformersCallback('mine', **told)\n"
        f"callback.on_train_begin(None, None, None, model=None)\n{TRAIN}"
        "callback.on_train_end(None, None, None)\n"
    ),
    "Transformers, broken off": (
        "callback = TransformersCallback('mine', **told)\n"
        f"callback.on_train_begin(None, None, None)\n{TRAIN}sys.exit(3)\n"
    ),
}


def _run(text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("way", WAYS)
def test_a_training_leaves_its_profile(way: str, empty_folder: Path) -> None:
    """However it ends; the program's exit code is its own."""
    ran = _run(LIBRARIES + WAYS[way])
    code = 3 if way == "Transformers, broken off" else 0
    assert (ran.returncode, ran.stderr) == (code, "")
    profile = json.loads((empty_folder / "profile.json").read_text())
    assert (profile["job"]["name"], profile["step"]["count"]) == ("mine", 20)


def test_a_callback_can_be_sent_to_a_process_that_is_spawned() -> None:
    """As ddp_spawn does: it is pickled before the training begins, and made anew there."""
    ran = _run(
        f"{LIBRARIES}import pickle\nsent = pickle.dumps(LightningCallback('mine', **told))\n"
        "got = pickle.loads(sent)\nassert type(got) is LightningCallback\n"
        "assert isinstance(got, pytorch.Callback)\nassert got.measurement is None\n"
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_importing_the_module_needs_neither_library() -> None:
    """No library is imported; asking for the callback of a missing one says what to install."""
    ran = _run(
        "import sys, gpucost.callbacks\n"
        "assert not {'torch', 'lightning', 'transformers'} & set(sys.modules)\n"
        "sys.modules['lightning'] = sys.modules['pytorch_lightning'] = None\n"
        "try:\n    from gpucost.callbacks import LightningCallback\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert ran.returncode == 0, ran.stderr
    assert "pip install lightning" in ran.stdout
