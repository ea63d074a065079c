"""Steps are counted exactly, whatever drives the loop."""

from importlib.util import find_spec

import pytest

from tests.probe.child import Ended
from tests.torch.conftest import Runner


def _counts(done: Ended) -> list[int]:
    """Return the steps of each process, by its last event, after checking them by the lines."""
    for file in done.events:
        lines = [event for event in file if event["event"] == "step"]
        assert sum(line["n"] for line in lines) == lines[-1]["step"] == file[-1]["steps"]
    assert done.of("odd") == []
    return [file[-1]["steps"] for file in done.events]


@pytest.mark.parametrize(
    "way",
    [
        "plain",
        "foreach",
        "fused",
        "accumulated",
        "super",
        "scaled",
        "alternating",
        "closures",
        "compiled",
    ],
)
def test_plain_pytorch(program: Runner, way: str) -> None:
    """Plain loops: each step of the optimizer once, skipped ones not, `super().step()` once."""
    done = program("plain.py", way)
    assert _counts(done) == [int(done.out)]


def test_torchrun(program: Runner, torchrun: tuple[str, ...]) -> None:
    """DDP under torchrun: each rank counts its own steps, and says which rank it is."""
    done = program(*torchrun, "distributed.py")
    assert _counts(done) == list(map(int, done.out.split())) == [12, 12]
    assert sorted(event["rank"] for event in done.of("rank")) == [0, 1]
    assert {event["parallelism"] for event in done.of("model")} == {"ddp"}


def test_spawned_ddp(program: Runner, tmp_path_factory: pytest.TempPathFactory) -> None:
    """DDP by mp.spawn, without environment variables: the same."""
    file = tmp_path_factory.mktemp("store") / "store"
    done = program("distributed.py", str(file))
    assert _counts(done) == list(map(int, done.out.split())) == [12, 12]
    assert sorted(event["rank"] for event in done.of("rank")) == [0, 1]


@pytest.mark.parametrize("way", ["one", "spawn"])
def test_lightning(program: Runner, way: str) -> None:
    """Lightning's own count is ours, in one process and in two."""
    pytest.importorskip("lightning")
    done = program("lightning_fit.py", way)
    assert _counts(done) == list(map(int, done.out.split()))


def test_accelerate(program: Runner) -> None:
    """A loop with Accelerate and accumulated gradients."""
    pytest.importorskip("accelerate")
    done = program("accelerate_loop.py")
    assert _counts(done) == [int(done.out)]


def test_hugging_face(program: Runner) -> None:
    """The Trainer's own count is ours; evaluations and checkpoints are told apart."""
    pytest.importorskip("transformers")
    done = program("hf_trainer.py")
    assert _counts(done) == [int(done.out.splitlines()[-1])]
    kinds = [span["kind"] for span in done.of("span")]
    assert kinds.count("evaluation") == 2
    assert kinds.count("checkpoint") >= 3


def test_precision_is_what_autocast_was_asked_for(program: Runner) -> None:
    """Autocast's type is told where it is entered."""
    assert program("plain.py", "compiled").of("precision")[0]["autocast"] == "bfloat16"
    assert program("plain.py", "plain").of("precision")[0]["autocast"] is None


@pytest.mark.parametrize("backend", ["torch", "jax"])
@pytest.mark.parametrize("fed", ["rows", "loader"])
def test_keras(program: Runner, backend: str, fed: str) -> None:
    """Each batch that `fit` trains is a step; waits and evaluations are told apart."""
    if find_spec("keras") is None or find_spec(backend) is None:
        pytest.skip("Keras or its backend is not installed")
    done = program("keras_fit.py", backend, fed)
    batches, evaluation_s, wait_s = done.out.split()
    assert _counts(done) == [int(batches)]
    evaluated = sum(s["s"] for s in done.of("span") if s["kind"] == "evaluation")
    assert evaluated == pytest.approx(float(evaluation_s), rel=0.15)
    assert done.of("model")[0]["parameters"] == 18
    if backend == "torch":  # Keras looks at one batch of 31 before it trains
        assert done.total("data_wait_s") == pytest.approx(float(wait_s) * 30 / 31, rel=0.1)
    elif fed == "rows":
        assert {line["data_wait_s"] for line in done.of("step")} == {None}
