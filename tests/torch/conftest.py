"""What the tests with real PyTorch use."""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.probe.child import Ended, run

PROGRAMS = Path(__file__).parent / "programs"

Runner = Callable[..., Ended]


@pytest.fixture
def program(tmp_path: Path) -> Runner:
    """Run one of the programs with the probe, in a folder of its own."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    for path in PROGRAMS.glob("*.py"):
        shutil.copy(path, tmp_path)

    def runner(
        *arguments: str,
        probe: bool = True,
        apply: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
        **environ: str,
    ) -> Ended:
        quiet = {"PYTHONPATH": "", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        told = {"apply": apply, "more": more}
        done = run(tmp_path, *arguments, probe=probe, **told, **{**quiet, **environ})
        assert done.code == 0, done.err
        return done

    return runner


@pytest.fixture
def torchrun() -> tuple[str, ...]:
    """The arguments of Python that start torchrun on two processes of this machine."""
    assert sys.executable
    return ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
