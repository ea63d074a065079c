"""Step statistics do not depend on how the probe, or a training script, cut its lines."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import InputError
from telemetry.probe.path.gpucost_probe.tally import Spent
from telemetry.probe.path.gpucost_probe.tally import bucket as bucket_of_probe
from telemetry.readers.hints import Hints
from telemetry.recording.events import together
from telemetry.recording.observed import StepTimes, add_up, of_line
from tests.telemetry.reading import read_source

if TYPE_CHECKING:
    from telemetry.sources import Skipped

EPOCHS = """\
Epoch: [0][0/30]\tTime  9.00 ( 9.00)\tData  8.00 ( 8.00)\tLoss 6.9 (6.9)
Epoch: [0][10/30]\tTime  1.10 ( 1.80)\tData  0.70 ( 1.40)\tLoss 6.9 (6.9)
Epoch: [0][20/30]\tTime  1.00 ( 1.40)\tData  0.80 ( 1.10)\tLoss 6.9 (6.9)
Epoch: [1][0/30]\tTime  9.00 ( 9.00)\tData  8.00 ( 8.00)\tLoss 6.9 (6.9)
Epoch: [1][10/30]\tTime  1.00 ( 1.70)\tData  0.80 ( 1.50)\tLoss 6.9 (6.9)
"""
TIMM = """\
Train: 0 [  50/1251 (  4%)] Time: 0.350s, 292.31/s  (0.400s, 248.3/s)  Data: 0.010 (0.040)
Train: 0 [ 100/1251 (  8%)] Time: 0.350s, 292.31/s  (0.400s, 248.3/s)  Data: 0.010 (0.040)
"""
DETECTRON = """\
[05/12 10:00:00 d2]: iter: 19 total_loss: 5.1 time: 0.9 last_time: 0.6 data_time: 0.3 lr: 0.1
[05/12 10:00:12 d2]: iter: 39 total_loss: 5.1 time: 0.5 last_time: 0.6 data_time: 0.05 lr: 0.1
[05/12 10:00:24 d2]: iter: 59 total_loss: 5.1 time: 0.7 last_time: 0.6 data_time: 0.15 lr: 0.1
"""
YOLOX = """\
2021-09-10 14:40:34 | INFO | yolox.core.trainer:246 - epoch: 36/300, iter: 1260/1849, mem: 7420Mb, iter_time: 2.564s, data_time: 0.195s, total_loss: 6.7
2021-09-10 14:41:12 | INFO | yolox.core.trainer:246 - epoch: 36/300, iter: 1270/1849, mem: 7420Mb, iter_time: 3.890s, data_time: 0.851s, total_loss: 6.2
2021-09-10 14:41:56 | INFO | yolox.core.trainer:246 - epoch: 36/300, iter: 1280/1849, mem: 7420Mb, iter_time: 4.339s, data_time: 0.861s, total_loss: 6.4
"""  # noqa: E501 - as it prints them


@pytest.mark.parametrize(
    ("text", "steps", "mean_s", "wait_s"),
    [
        # 21 x 1.4 - 9 s in 20 steps, 11 x 1.7 - 9 s in 10; of it 21 x 1.1 - 8 and 11 x 1.5 - 8 s.
        (EPOCHS, 30, (20.4 + 9.7) / 30, (15.1 + 8.5) / 30),
        (TIMM, 50, 0.4, 0.04),
        (DETECTRON, 40, 0.6, 0.1),
        (YOLOX, 20, 4.1145, 0.856),
    ],
)
def test_a_training_log_tells_the_step_and_its_wait_for_data(
    text: str, steps: int, mean_s: float, wait_s: float, tmp_path: Path
) -> None:
    """Running means give the time between two lines, without start-up before the first."""
    log = tmp_path / "train.log"
    log.write_text(text)
    (profile,) = read_source(str(log), Hints())
    assert profile.step is not None
    assert profile.step.count == steps
    assert profile.step.mean_s == pytest.approx(mean_s)
    assert profile.step.data_wait_s == pytest.approx(wait_s)
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(mean_s * steps)


def test_one_line_of_each_epoch_is_refused(tmp_path: Path) -> None:
    """It holds nothing but the start-up of the epochs."""
    log = tmp_path / "train.log"
    log.write_text(EPOCHS.splitlines()[0])
    with pytest.raises(InputError, match="two lines"):
        read_source(str(log), Hints())


BUCKET = 2 ** (1 / 16)
lengths_s = st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=80)


def line(process: str, t_s: float, lengths: Sequence[float]) -> dict[str, Any]:
    """Return what the probe writes of some steps in one line."""
    held = Spent(0)
    for length_s in lengths:
        one = Spent(1)
        one.step_s = length_s
        one.measured()
        held.add(one)
    return {
        "event": "step",
        "process": process,
        "t_s": t_s,
        "step": len(lengths),
        "n": held.n,
        "step_s": held.step_s,
        "longest_s": held.longest_s,
        "lengths": {str(b): n for b, n in held.lengths.items()} if held.n > 1 else {},
    }


def cut(lengths: Sequence[float], places: Sequence[int]) -> list[Sequence[float]]:
    """Return a list cut at some places."""
    edges = sorted({0, len(lengths), *(place % (len(lengths) + 1) for place in places)})
    return [lengths[a:b] for a, b in itertools.pairwise(edges)]


@given(lengths_s, st.lists(st.integers(0, 80)), st.lists(st.integers(0, 80)))
def test_statistics_do_not_depend_on_the_lines(
    lengths: list[float], here: list[int], there: list[int]
) -> None:
    """Lines of any widths give the same counts, the same longest step and the same quantiles."""
    one, other = (
        add_up(of_line(line("a", 0.0, part)) for part in cut(lengths, places))
        for places in (here, there)
    )
    assert one.n == other.n == len(lengths)
    assert one == other


@given(lengths_s, st.floats(0.01, 1.0))
def test_quantiles_are_within_a_bucket(lengths: list[float], share: float) -> None:
    """A quantile is within 4.4 % of that of the lengths themselves."""
    times = of_line(line("a", 0.0, lengths))
    rank = max(1, -(-len(lengths) * share // 1))
    true_s = sorted(lengths)[int(rank) - 1]
    found_s = times.quantile(share)
    assert found_s is not None
    assert true_s / BUCKET <= found_s * (1 + 1e-9)
    assert found_s <= true_s * BUCKET * (1 + 1e-9)


@given(lengths_s, st.integers(1, 79), st.lists(st.integers(0, 80)))
def test_a_restart_changes_the_first_step_only(
    lengths: list[float], where: int, places: list[int]
) -> None:
    """A run that was killed and goes on has the steps of both lives, without each first."""
    lives = [part for part in cut(lengths, [where]) if part]
    events: list[dict[str, Any]] = []
    for number, life in enumerate(lives):
        process, t_s = f"p{number}", 1000.0 * number
        events.append({"event": "hello", "process": process, "t_s": t_s})
        events.append(line(process, t_s + 1.0, life[:1]))
        events += [
            line(process, t_s + 2.0 + i, part)
            for i, part in enumerate(cut(life[1:], places))
            if part
        ]
    kept = [length_s for life in lives for length_s in life[1:]]
    times = together(events).step_times
    assert times.n == len(kept)
    assert times.longest_s == max(kept, default=None)


@given(lengths_s)
def test_reader_and_probe_agree_on_buckets(lengths: list[float]) -> None:
    """A line of one step is read into the bucket that the probe would have written."""
    for length_s in lengths:
        assert set(of_line(line("a", 0.0, [length_s])).counts) == {bucket_of_probe(length_s)}


def test_long_steps_are_counted_and_added() -> None:
    """Steps from a length on: their number exactly, their sum to within a bucket."""
    times = of_line(line("a", 0.0, [0.02] * 50 + [2.0, 3.0]))
    count, total_s = times.from_length(0.5)
    assert count == 2
    assert total_s == pytest.approx(5.0, rel=0.05)


def test_nothing_measured_is_unknown() -> None:
    """Without steps there is no quantile; a line of unknown length says nothing of lengths."""
    assert StepTimes().quantile(0.5) is None
    assert of_line({"n": 1, "step_s": None}) == StepTimes()


def _trainer_state(folder: Path, *entries: dict[str, float]) -> str:
    """Write the state of a run of Hugging Face's Trainer, as transformers 4.57 names its keys."""
    folder.mkdir(exist_ok=True)
    state = {"global_step": 1500, "log_history": list(entries), "train_batch_size": 8}
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=2), encoding="utf-8")
    return str(folder / "trainer_state.json")


_LOGGED = {"epoch": 1.0, "loss": 1.9, "step": 500}
_END = {
    "step": 1500,
    "train_loss": 1.4,
    "train_runtime": 1200.0,
    "train_samples_per_second": 40.0,
    "train_steps_per_second": 1.25,
}


def test_the_state_of_a_trainer_tells_its_steps_and_samples(tmp_path: Path) -> None:
    """1,500 steps in 1,200 s are 0.8 s each, 40 samples a second are 48,000; no more is known."""
    (profile,) = read_source(_trainer_state(tmp_path / "run", _LOGGED, _END), Hints())
    assert profile.step is not None
    assert (profile.step.count, profile.step.mean_s) == (1500, pytest.approx(0.8))
    assert (profile.step.p50_s, profile.step.data_wait_s, profile.step.stalls) == (None,) * 3
    assert profile.work is not None
    assert (profile.work.unit, profile.work.done) == ("sample", pytest.approx(48_000.0))
    assert profile.work.rate_per_s == pytest.approx(40.0)
    assert (profile.job.framework, profile.job.batch_per_gpu) == ("transformers", 8)


def test_the_state_of_a_checkpoint_says_why_it_is_not_read(tmp_path: Path) -> None:
    """It tells no times: in a folder it is skipped with that, and the finished state is read."""
    run = _trainer_state(tmp_path / "run", _LOGGED, _END)
    state = _trainer_state(tmp_path / "run" / "checkpoint-500", _LOGGED)
    with pytest.raises(InputError, match=r"train_runtime\), as in the state of a checkpoint"):
        read_source(state, Hints())
    skipped: list[Skipped] = []
    (profile,) = read_source(str(Path(run).parent), Hints(), skipped=skipped)
    assert profile.step is not None
    assert [str(skip) for skip in skipped if "train_runtime" in skip.why and state in skip.path]
