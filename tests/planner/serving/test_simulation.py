"""The simulation of one copy: exact where its answer can be worked out by hand."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from planner.serving.anchor import MeasuredRun, anchored
from planner.serving.language_model import model_named
from planner.serving.load import Target, copies_for, copy_limit, fluid_rate, saturated_rate, served
from planner.serving.server import Server, server
from planner.serving.simulation import simulate
from planner.serving.traffic import Requests, Traffic, requests
from pricing.hardware import gpus
from research import cpu_server

LLAMA = model_named("meta-llama/Llama-3.1-8B-Instruct")
CHAT = Traffic(rate=8.0, prompt=500.0, output=300.0)
TARGETS = (
    Target(metric="ttft", percent=99, limit_s=0.5),
    Target(metric="tpot", percent=99, limit_s=0.05),
)


def copy(gpu: str = "H100-SXM-80GB", **changes: float) -> Server:
    """A copy of the 8B model."""
    made = server(LLAMA, gpus()[gpu])
    assert made is not None
    return structs.replace(made, **changes)


def plain(**changes: float) -> Server:
    """A copy whose every step takes 10 ms, whatever is in it."""
    zero = dict.fromkeys(
        ("weight_s", "kv_s", "token_s", "pair_s", "sequence_s", "prompt_s", "first_token_s"), 0.0
    )
    return copy(**zero | {"fixed_s": 0.01} | changes)


def asked(*rows: tuple[float, int, int]) -> Requests:
    """Requests by arrival, prompt and output."""
    return Requests(
        arrivals_s=[row[0] for row in rows],
        prompts=[row[1] for row in rows],
        computed=[row[1] for row in rows],
        outputs=[row[2] for row in rows],
    )


def test_a_step_is_the_sum_that_is_written_down() -> None:
    """One request of 1,000 tokens on an H100 SXM: 5.8 ms, by the coefficients of law.toml."""
    weights = 1.15 * 2 * 8.03e9 / 3350e9
    cache = 1.70 * 131072 * 1000 / 3350e9
    peak = 400e12 * (989 / 400) ** 0.66
    compute = 1.59 * (2 * 8.03e9 + 4 * 32 * 4096 * 1000) / peak
    by_hand = math.hypot(weights + cache, compute) + 32 * 9.4e-6 + 1.2e-3 + 9.7e-6
    assert copy().step_s(1, 1000.0) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.0071, abs=0.0002)


def test_one_request_alone() -> None:
    """A prompt in one step and nine tokens more: 10 ms to the first, 100 ms in all."""
    seen = simulate(plain(), asked((0.0, 100, 10)))
    assert seen.first_token_s == [pytest.approx(0.01)]
    assert seen.request_s == [pytest.approx(0.1)]
    assert seen.token_s == [pytest.approx(0.01)]


def test_a_long_prompt_takes_as_many_steps_as_the_budget_asks_for() -> None:
    """2,500 tokens at 1,000 a step are three steps."""
    seen = simulate(plain(token_budget=1000), asked((0.0, 2500, 1)))
    assert seen.first_token_s == [pytest.approx(0.03)]


def test_who_comes_while_a_step_runs_joins_the_next_one() -> None:
    """The second request comes 4 ms into the second step and gets its token at its third."""
    seen = simulate(plain(), asked((0.0, 10, 10), (0.014, 10, 2)))
    assert seen.first_token_s == [pytest.approx(0.01), pytest.approx(0.03 - 0.014)]


def test_a_full_batch_makes_others_wait() -> None:
    """One at a time: the second's first token comes after all ten of the first."""
    seen = simulate(plain(max_sequences=1), asked((0.0, 10, 10), (0.0, 10, 1)))
    assert seen.first_token_s[1] == pytest.approx(0.11)


def test_full_memory_throws_out_the_youngest_and_loses_no_token() -> None:
    """Two of 60 + 40 tokens in 150: one is computed again, both end, and it is counted."""
    seen = simulate(plain(kv_tokens=150.0), asked((0.0, 60, 40), (0.0, 60, 40)))
    assert seen.preempted >= 1
    assert len(seen.request_s) == 2
    assert seen.request_s[0] == pytest.approx(0.4)
    assert seen.request_s[1] > 0.4


@given(
    st.lists(
        st.tuples(st.floats(0.0, 5.0), st.integers(1, 300), st.integers(1, 60)),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 8),
    st.sampled_from((400.0, 800.0, 1e6)),
)
def test_every_request_ends_after_its_first_token(
    rows: list[tuple[float, int, int]], batch: int, memory: float
) -> None:
    """Whatever comes, all end; nobody waits less than a step, and steps are 10 ms."""
    rows.sort()
    seen = simulate(plain(max_sequences=batch, kv_tokens=memory), asked(*rows))
    assert len(seen.request_s) == len(rows)
    assert min(seen.first_token_s) >= 0.01 - 1e-9
    assert seen.busiest <= batch
    assert all(second >= 0.01 - 1e-9 for second in seen.token_s)


def test_littles_law_holds() -> None:
    """Requests running are the rate times their time in the batch."""
    drawn = requests(CHAT, 8.0, 4000, 3)
    seen = simulate(copy(), drawn)
    rate = 4000 / seen.span_s
    duration = sum(seen.request_s) / 4000 - copy().first_token_s
    assert seen.running == pytest.approx(rate * duration, rel=0.05)


def test_throughput_at_saturation_is_that_of_a_queue_that_never_ends() -> None:
    """The closed form and the simulation's middle half agree within a tenth."""
    drawn = requests(CHAT, 1e9, 3000, 1)
    seen = simulate(copy(), drawn)
    ends = seen.request_s
    middle = 1500 / (ends[2249] - ends[749])
    assert saturated_rate(copy(), CHAT) == pytest.approx(middle, rel=0.1)


def test_the_most_of_a_copy_keeps_its_targets_and_a_fifth_more_does_not() -> None:
    """An L40S is stopped by a token's time."""
    limit = copy_limit(copy("L40S"), CHAT, TARGETS)
    assert limit.stopped_by == "TPOT p99 50 ms"
    assert limit.rate <= fluid_rate(copy("L40S"), CHAT, TARGETS)
    for rate, kept in ((limit.rate, True), (1.2 * limit.rate, False)):
        seen = served(copy("L40S"), CHAT, rate, 1000)
        assert (seen.percentile("tpot", 99) <= 0.05) is kept


def test_a_target_below_one_step_names_the_least_there_is() -> None:
    """A token takes over 7 ms on an H100: 5 ms cannot be had at any rate."""
    limit = copy_limit(copy(), CHAT, (Target(metric="tpot", percent=99, limit_s=0.005),))
    assert limit.rate == 0.0
    assert limit.lowest_s is not None
    assert 0.007 < limit.lowest_s < 0.012


@pytest.mark.parametrize(("rate", "most", "needed"), [(8, 24, 1), (24, 24, 1), (24.1, 24, 2)])
def test_copies_are_rounded_up(rate: float, most: float, needed: int) -> None:
    """As many as the rate asks for, never less than one."""
    assert copies_for(rate, most) == needed


def test_an_anchor_gives_back_its_own_run() -> None:
    """Median times of the run are those that were measured, to a percent."""
    run = MeasuredRun(traffic=CHAT, first_token_s=0.080, token_s=0.020)
    anchor, factor = anchored(copy(), run)
    seen = simulate(anchor, requests(CHAT, CHAT.rate, 200, 0))
    assert seen.percentile("tpot", 50) == pytest.approx(0.020, rel=0.01)
    assert seen.percentile("ttft", 50) == pytest.approx(0.080, rel=0.01)
    assert factor > 1.5


def test_ten_thousand_requests_take_a_fifth_of_a_second() -> None:
    """The bar of the search; the best of three, as the machine is shared."""
    drawn = requests(CHAT, 20.0, 10_000, 0)
    took = []
    for _ in range(3):
        begin = time.process_time()
        simulate(copy(), drawn)
        took.append(time.process_time() - begin)
    assert min(took) <= 0.2


@pytest.mark.parametrize("sweep", ["runs", "second"])
def test_a_real_server_is_foretold_from_its_lowest_rate(sweep: str) -> None:
    """Of transformers on a CPU core, below saturation: times within a factor of 1.7, TTFT p50 1.4.

    `second` was scored once, after `runs` had chosen the rule of first tokens that come too soon.
    """
    document = cpu_server.read(cpu_server.RUNS.with_name(f"{sweep}.json"))
    calm = [row for row in cpu_server.predictions(document) if row[1] < 0.9]
    assert len(calm) == {"runs": 2, "second": 4}[sweep]
    for _, _, told, true in calm:
        for metric in cpu_server.METRICS:
            assert 1 / 1.7 < told[metric] / true[metric] < 1.7, metric
        assert 1 / 1.4 < told["ttft_p50"] / true["ttft_p50"] < 1.4
