"""The serving engine against published open-arrival runs of vLLM: the bars, beside no change."""

from pathlib import Path

import pytest

from research.serving import (
    Run,
    copies,
    decisions,
    errors,
    from_nothing,
    from_one_run,
    from_other_gpu,
    inside,
    interactive,
    mlperf,
    off_percent,
    read_runs,
)


@pytest.fixture(scope="module")
def runs(shared: Path) -> list[Run]:
    """The runs of the sweeps on 1 to 4 GPUs."""
    return read_runs(shared / "datasets/serving")


def test_one_run_tells_the_other_rates(runs: list[Run]) -> None:
    """Medians: TTFT p50 / p95 / p99 and TPOT p50 / p99, each well under "no change"."""
    pairs = list(from_one_run(runs))
    assert len(pairs) == 36
    told, unchanged = errors(pairs), errors(pairs, simulated=False)
    bars = {"ttft_p50": 11, "ttft_p95": 8, "ttft_p99": 12, "tpot_p50": 5, "tpot_p99": 10}
    for metric, bar in bars.items():
        assert told[metric][0] <= bar, metric
        assert told[metric][0] < unchanged[metric][0] / 2


def test_targets_are_decided_right(runs: list[Run]) -> None:
    """12 pairs of targets at each rate: right in 95 %, 93 % of its yes true; no change 81 %."""
    pairs = list(from_one_run(runs))
    count, right, true = decisions(pairs)
    assert count == 432
    assert right >= 95
    assert true >= 93
    assert right > decisions(pairs, simulated=False)[1] + 10


def test_copies_are_counted_right(runs: list[Run]) -> None:
    """Too few in at most 10 %, equal in 85 %, and no more than 5 % overspent."""
    pairs = list(from_one_run(runs))
    _, few, equal, spend = copies(pairs)
    assert few <= 10
    assert equal >= 85
    assert spend <= 1.05
    assert copies(pairs, simulated=False)[1] > 50


def test_intervals_hold_nine_of_ten(runs: list[Run]) -> None:
    """85 % of the runs or more are inside what a plan prints; a p99 of 200 is noisy by itself."""
    held = inside(list(from_one_run(runs)), "measured")
    assert min(held.values()) >= 85, held


def test_one_run_tells_another_gpu(runs: list[Run]) -> None:
    """RTX 4090 from H100 PCIe and back: TPOT p50 6 %, TTFT p50 18 %, p99 22 %."""
    pairs = list(from_other_gpu(runs))
    assert len(pairs) == 20
    told = errors(pairs)
    assert told["tpot_p50"][0] <= 6
    assert told["ttft_p50"][0] <= 18
    assert told["ttft_p99"][0] <= 22


def test_nothing_measured(runs: list[Run]) -> None:
    """The law alone, on the runs that it was fitted on: TPOT 8 %, TTFT p50 14 %, p99 18 %."""
    told = errors(list(from_nothing(runs)))
    assert told["tpot_p50"][0] <= 8
    assert told["ttft_p50"][0] <= 14
    assert told["ttft_p99"][0] <= 18


def test_tensor_parallel_over_pcie(runs: list[Run]) -> None:
    """TPOT p50 within 15 %; TTFT has no skill there, and is marked weak in every answer."""
    assert errors(list(from_nothing(runs, single=False)))["tpot_p50"][0] <= 15


def test_mlperf_server_from_offline(shared: Path) -> None:
    """Three models: the bar of 5 / 7 % is missed by 2.3 / 2.8 points; Offline x 0.9 by more."""
    rows = mlperf(shared / "datasets/serving", "Server")
    assert len(rows) == 78
    (middle, mean), simple = off_percent(rows), off_percent(rows, share=0.9)
    assert middle <= 7.4
    assert mean <= 9.9
    assert (middle, mean) < simple


def test_mlperf_interactive_from_offline(shared: Path) -> None:
    """With one factor that the other model teaches: 10 % (median), a third of Offline x 0.7."""
    rows = interactive(shared / "datasets/serving")
    assert len(rows) == 36
    assert off_percent(rows)[0] <= 10
    assert off_percent(rows, share=0.7)[0] > 30
