"""Settings tried on and off within one run of real PyTorch: measured, and results stay."""

from typing import Any

from planner.proof.experiment import Design, hand_over, of_blocks
from telemetry.recording.events import turns
from tests.probe.child import Ended
from tests.torch.conftest import Runner

WORKERS: dict[str, Any] = {"dataloader-workers": {"num_workers": 2, "prefetch_factor": 2}}
SHORT = Design(block_steps=8, settle_steps=2, warmup_steps=16, pilot_fours=3, most_fours=6, seed=4)


def _found(done: Ended) -> Any:
    kinds = {event["event"] for event in done.events[0]}
    seen = turns([{kind: done.of(kind) for kind in kinds}])
    assert seen is not None, done.of("change")
    return of_blocks(seen)


def test_workers_in_turns_measure_what_they_gain(program: Runner) -> None:
    """Blocks with and without workers, a gain that excludes 1, and every loss the same."""
    done = program("starved.py", "turns", apply=WORKERS, more={"experiment": hand_over(SHORT)})
    *losses, _ = done.out.split()
    *plain, _ = program("starved.py", "turns", probe=False).out.split()
    assert losses == plain
    assert done.of("odd") == []
    assert [event["outcome"] for event in done.of("change")] == ["applied"]
    found = _found(done)
    assert found.ended in {"planned", "run-ended", "no-room"}
    assert found.fours >= 3
    assert found.mid > 1.5
    assert found.low > 1.0


def test_epochs_begin_and_end_within_turns(program: Runner) -> None:
    """Epochs of 26 batches, which end in either turn: orders, losses and counts stay."""
    done = program("starved.py", "epochs", apply=WORKERS, more={"experiment": hand_over(SHORT)})
    *losses, _ = done.out.split()
    *plain, _ = program("starved.py", "epochs", probe=False).out.split()
    assert losses == plain
    assert done.of("odd") == []
    assert len(done.of("block")) >= 12


def test_the_model_is_called_in_both_ways(program: Runner) -> None:
    """Autocast and layout come and go with the turns; what cannot be switched is left, named."""
    actions = {"mixed-precision": {}, "channels-last": {}, "fused-optimizer": {}, "tf32": {}}
    short = Design(block_steps=3, settle_steps=1, warmup_steps=4, pilot_fours=3, most_fours=3)
    done = program("fit.py", "long", apply=actions, more={"experiment": hand_over(short)})
    said = {event["action"]: (event["outcome"], event["what"]) for event in done.of("change")}
    assert said["mixed-precision"][0] == said["channels-last"][0] == "applied"
    assert said["fused-optimizer"][0] == "left"
    assert "cannot be tried in turns" in said["fused-optimizer"][1]
    assert said["tf32"] == ("left", "there is no GPU that could use it")
    assert done.of("odd") == []
    (begun,) = done.of("turns")
    on = {}
    for block in done.of("block"):
        first = begun["first_step"] + block["block"] * begun["block_steps"]
        on.update(dict.fromkeys(range(first, first + begun["block_steps"]), block["on"]))
    seen = [line.split()[1:] for line in done.out.splitlines() if line.startswith("seen")]
    assert on
    for step, is_on in on.items():
        assert seen[step - 1] == (
            ["torch.bfloat16", "True"] if is_on else ["torch.float32", "False"]
        )
