"""The callbacks in the trainers they are made for: Lightning, also on two ranks; Transformers."""

import json
from pathlib import Path

import pytest

from tests.torch.conftest import Runner

# Of what, its package, its steps, its ranks.
WAYS = {
    "lightning": ("lightning", 20, 0),
    "spawn": ("lightning", 10, 2),
    "transformers": ("transformers", 20, 0),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_training_leaves_the_profile_of_its_run(
    program: Runner, tmp_path: Path, way: str
) -> None:
    """Steps are counted exactly; ranks that were spawned leave one profile of the run."""
    package, steps, ranks = WAYS[way]
    pytest.importorskip(package)
    done = program("with_callback.py", way, probe=False)
    names = sorted(path.name for path in tmp_path.glob("*profile*"))
    assert names == ["profile.json", "profile.samples.parquet", "profile.steps.jsonl"], done.err
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert (profile["job"]["name"], profile["job"]["kind"]) == ("fitted", "training")
    assert profile["step"]["count"] == steps
    assert len(profile["ranks"]) == ranks
