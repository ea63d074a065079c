"""Workers come and losses stay however Python, and the program's processes, are started."""

from typing import Any

import pytest

from tests.torch.conftest import Runner

WORKERS: dict[str, Any] = {"dataloader-workers": {"num_workers": 1, "prefetch_factor": 2}}
WAYS = {
    "script": (("ways.py", "script"), 1),
    "module": (("-m", "ways", "module"), 1),
    "fork": (("ways.py", "fork"), 1),
}


@pytest.mark.parametrize("way", [*WAYS, "torchrun"])
def test_losses_are_the_same_in_every_way_to_start(
    program: Runner, torchrun: tuple[str, ...], way: str
) -> None:
    """Each process certifies its own loader; its losses are those without us."""
    arguments, loaders = WAYS.get(way, ((*torchrun, "ways.py", "rank"), 2))
    done = program(*arguments, apply=WORKERS)
    plain = program(*arguments, probe=False)
    assert sorted(done.out.splitlines()) == sorted(plain.out.splitlines())
    # On a busy machine steps may get slower by chance, and the workers are given up again.
    assert [event["outcome"] for event in done.of("change")].count("applied") == loaders
    assert done.of("odd") == []


def test_ranks_that_were_spawned_are_left(program: Runner) -> None:
    """In them workers would be spawned, too: they are left, losses are the same."""
    done = program("ways.py", "spawn", apply=WORKERS)
    plain = program("ways.py", "spawn", probe=False)
    assert sorted(done.out.splitlines()) == sorted(plain.out.splitlines())
    assert [event["outcome"] for event in done.of("change")] == ["left"] * 2
    assert all("not be forked" in event["what"] for event in done.of("change"))


FRAMEWORKS = {
    "accelerate_loop.py": "accelerate",
    "hf_trainer.py": "transformers",
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_frameworks_run_as_before(program: Runner, name: str) -> None:
    """Loaders that a framework makes anew are looked at as the program's own; counts stay."""
    pytest.importorskip(FRAMEWORKS[name])
    done, plain = program(name, apply=WORKERS), program(name, probe=False)
    assert done.out.splitlines()[-1] == plain.out.splitlines()[-1]
    assert done.of("odd") == []
    said = [event["what"] for event in done.of("change")]
    assert said
    if name == "hf_trainer.py":
        assert all("set it in TrainingArguments" in what for what in said)
