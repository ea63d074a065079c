"""How much faster: from series, statistics or rates; never surer than equal runs are alike."""

import math
from dataclasses import replace

import pytest
from msgspec import structs

from planner.profile.model import Step, Work
from planner.profile.trials import TriedInTurns
from planner.proof.speed import RUN_TO_RUN, of_series, of_statistics, settled, speed_up
from pricing.errors import InputError
from tests.planner.proof.runs import BEFORE, faster, run, series


def test_the_ratio_of_the_means_is_the_speed_up() -> None:
    """Steps of 0.2 s and 0.1 s are a speed-up of 2, with an interval that excludes 1."""
    found = speed_up(
        run(BEFORE, series(0.2, seed=1)), run(faster(BEFORE, 2.0), series(0.1, seed=2))
    )
    assert found.mid == pytest.approx(2.0, rel=0.03)
    assert found.is_faster
    assert "over 8 parts of" in found.basis


def test_two_equal_runs_are_never_told_apart_better_than_hosts_differ() -> None:
    """However many steps, the interval is at least as wide as two equal runs differ."""
    steps = series(0.2, rows=5000, hang=0.0)
    found = speed_up(run(BEFORE, steps), run(BEFORE, steps))
    assert math.log(found.high) >= 1.96 * RUN_TO_RUN * math.sqrt(2.0)
    assert not found.is_faster


def test_steps_that_hang_together_tell_less() -> None:
    """At an autocorrelation of 0.8 the error of the mean is more than twice that of free steps."""
    free, hung = (of_series(series(0.2, hang=hang)).log_error for hang in (0.0, 0.8))
    assert hung > 2.0 * free


@pytest.mark.parametrize("hang", [0.0, 0.5, 0.8])
def test_the_interval_of_a_mean_covers_it(hang: float) -> None:
    """Over 100 runs of 400 rows, the 95 % interval holds the true mean in 90 % at least."""
    true = 0.2 * math.exp(0.05**2 / 2.0)
    inside = 0
    for seed in range(100):
        found = of_series(series(0.2, hang=hang, seed=seed))
        inside += abs(math.log(found.mean_s / true)) <= found.log_error
    assert inside >= 90


def test_a_warm_up_is_cut_and_nothing_else() -> None:
    """Ten slow rows at the start go, a drift over the whole run stays."""
    steady = series(0.2, hang=0.0)
    slow = tuple(replace(row, step_s=row.step_s * 3.0) for row in steady[:10])
    assert 10 <= len(steady) + 10 - len(settled((*slow, *steady))) <= 20
    drifting = tuple(replace(row, step_s=0.2 + 0.001 * at) for at, row in enumerate(steady))
    assert len(settled(drifting)) >= len(drifting) * 2 // 3


def test_without_a_series_the_interval_is_wider() -> None:
    """Quantiles of the same steps make a wider interval than the steps themselves."""
    steps = series(0.2, hang=0.0)
    known = of_series(steps)
    lengths = sorted(row.step_s for row in steps)
    step = Step(count=400, mean_s=known.mean_s, p50_s=lengths[200], p95_s=lengths[380])
    assert of_statistics(step, known.mean_s).log_error > known.log_error


def test_a_mean_alone_is_told_by_what_runs_differ() -> None:
    """One figure without its spread gets published run-to-run spread: 10 % is then not proved."""
    bare = structs.replace(BEFORE, step=Step(mean_s=0.2))
    found = speed_up(run(bare), run(faster(bare, 1.1)))
    assert not found.is_faster
    assert speed_up(run(bare), run(faster(bare, 2.0))).is_faster


def test_another_batch_counts_items_not_steps() -> None:
    """Twice the batch at the same step time is twice the work."""
    larger = structs.replace(BEFORE, job=structs.replace(BEFORE.job, batch_per_gpu=128))
    assert speed_up(run(BEFORE), run(larger)).mid == pytest.approx(2.0)


def test_a_split_model_counts_its_own_work() -> None:
    """On 2 GPUs that split the model a step is one batch: the rate of work decides."""
    split = structs.replace(
        faster(BEFORE, 1.5),
        job=structs.replace(BEFORE.job, parallelism="tensor", batch_per_gpu=128),  # type: ignore[arg-type] # the word of a file
        hardware=structs.replace(BEFORE.hardware, gpu_count=2),
    )
    assert speed_up(run(BEFORE), run(split)).mid == pytest.approx(1.5)


def test_rates_of_one_unit_compare() -> None:
    """Without steps, 320 and 640 samples a second are a speed-up of 2."""
    bare = structs.replace(BEFORE, step=None)
    assert speed_up(run(bare), run(faster(bare, 2.0))).mid == pytest.approx(2.0)


def test_nothing_in_common_is_refused_for_both() -> None:
    """Images against tokens cannot be compared: why comes first, then what each run has."""
    one = structs.replace(BEFORE, step=None)
    other = structs.replace(one, work=Work(unit="token", rate_per_s=9.0))
    with pytest.raises(InputError) as refused:
        speed_up(run(one, name="one"), run(other, name="other"))
    assert [problem.split(":")[0] for problem in refused.value.problems] == [
        "the runs cannot be compared",
        "one.json",
        "other.json",
    ]


def test_an_interval_wider_than_ten_times_says_nothing() -> None:
    """Twelve rows that differ by hundreds of times tell no speed-up; four hundred alike do."""
    wild = tuple(
        replace(row, step_s=0.2 * (200.0 if at % 5 == 0 else 0.1))
        for at, row in enumerate(series(0.2, rows=12))
    )
    assert not speed_up(run(steps=wild), run(steps=wild)).is_known
    assert speed_up(run(steps=series(0.2)), run(steps=series(0.1, seed=2))).is_known


def test_the_same_runs_give_the_same_interval() -> None:
    """Nothing is drawn."""
    runs = (run(BEFORE, series(0.2)), run(BEFORE, series(0.19, seed=3)))
    assert speed_up(*runs) == speed_up(*runs)


def test_what_was_tried_in_turns_counts_as_it_was_measured() -> None:
    """A run that switched is of both settings: its experiment says the gain, not its mean step."""
    made = TriedInTurns(
        actions=("compile",), ended="planned", low=1.2, mid=1.3, high=1.4, fours=8,
        block_steps=20, settle_steps=5,
    )  # fmt: skip
    after = structs.replace(faster(BEFORE, 1.15), experiment=made)
    found = speed_up(run(BEFORE, series(0.2)), run(after, series(0.17)))
    assert (found.low, found.mid, found.high) == (1.2, 1.3, 1.4)
    assert "on and off in turns within one run" in found.basis
    lost = structs.replace(
        after, experiment=structs.replace(made, low=None, mid=None, high=None, ended="lost")
    )
    assert speed_up(run(BEFORE, series(0.2)), run(lost, series(0.17))).mid < 1.2
