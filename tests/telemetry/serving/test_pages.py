"""What the metrics pages of inference servers add up to."""

from collections.abc import Callable
from random import Random

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from telemetry.formats.capture import served_in
from telemetry.recording.recording import SERVING, Served
from telemetry.serving_metrics import Page, ServingTally, metric_of, page_of
from tests.conftest import ROOT

PAGES = ROOT / "tests" / "fixtures" / "serving"
LABELS = ("engine", "model_name")
BOUNDS = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0)


def _over(*pages: str, apart_s: float = 10.0) -> Served:
    tally = ServingTally()
    for i, page in enumerate(pages):
        tally.take(100.0 + apart_s * i, page_of(page))
    return _told(tally)


def _told(*tallies: ServingTally) -> Served:
    (found,) = served_in({SERVING: [one.as_json() for one in tallies]})
    return found


class Vllm:
    """A page with vLLM's names, written by the library that vLLM writes it with."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._of(Counter, "request_success", "finished_reason")
        self.tokens = self._of(Counter, "generation_tokens")
        self.running = self._of(Gauge, "num_requests_running")
        self.cache = self._of(Gauge, "kv_cache_usage_perc")
        self.latency = Histogram(
            "vllm:e2e_request_latency_seconds", "-", LABELS, registry=self.registry, buckets=BOUNDS
        )

    def _of(self, kind: Callable[..., object], name: str, *more: str) -> object:
        return kind(f"vllm:{name}", "-", [*LABELS, *more], registry=self.registry)

    @property
    def page(self) -> str:
        """The page as it is now."""
        return generate_latest(self.registry).decode()


def test_what_a_server_did_is_what_its_counters_grew_by() -> None:
    """Requests and tokens of two engines add up; their caches are told as the mean."""
    vllm = Vllm()
    for engine in ("0", "1"):
        vllm.tokens.labels(engine, "m").inc(1e6)  # before the measurement
        vllm.requests.labels(engine, "m", "stop").inc(500)
    vllm.running.labels("0", "m").set(3)
    vllm.running.labels("1", "m").set(5)
    vllm.cache.labels("0", "m").set(0.9)
    vllm.cache.labels("1", "m").set(0.5)
    first = vllm.page
    for engine, tokens in (("0", 1000), ("1", 3000)):
        vllm.tokens.labels(engine, "m").inc(tokens)
        vllm.requests.labels(engine, "m", "stop").inc(10)
        vllm.requests.labels(engine, "m", "length").inc(5)
        vllm.requests.labels(engine, "m", "abort").inc(7)
        vllm.requests.labels(engine, "m", "error").inc(1)
    found = _over(first, vllm.page)
    assert found.framework == "vllm"
    assert found.requests_per_s == 3.0
    assert (found.unit, found.done, found.length_s) == ("token", 4000.0, 10.0)
    assert found.serving is not None
    assert found.serving.failures_per_s == 0.2
    assert found.serving.generated_tokens_per_s == 400.0
    assert found.serving.requests_running == 8.0
    assert found.serving.kv_cache_fraction == pytest.approx(0.7)
    assert found.serving.preemptions_per_s is None  # the page does not say


def test_percentiles_of_the_run_lie_in_the_buckets_of_the_true_ones() -> None:
    """What was served before the measurement is in none of them; the mean is exact."""
    drawn, vllm = Random(7), Vllm()  # noqa: S311 - no secret
    latency = vllm.latency.labels("0", "m")
    for _ in range(1000):
        latency.observe(drawn.uniform(5, 9))
    first = vllm.page
    true = sorted(drawn.lognormvariate(0.0, 0.5) for _ in range(2000))
    for value in true:
        latency.observe(value)
    found = _over(first, vllm.page).latency_ms
    assert found is not None
    assert found.mean == pytest.approx(sum(true) / len(true) * 1000)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        exact = true[int(share * len(true))]
        above = next(bound for bound in BOUNDS if bound >= exact)
        below = max((bound for bound in BOUNDS if bound < exact), default=0.0)
        assert below * 1000 <= getattr(found, name) <= above * 1000, name


def test_a_percentile_above_the_last_bucket_is_unknown_and_said() -> None:
    """Figures of SGLang's documentation: three quarters of the first tokens came after 30 s."""
    found = _over("sglang:num_queue_reqs 0\n", (PAGES / "sglang.prom").read_text())
    assert found.framework == "sglang"
    assert found.serving is not None
    first, token = found.serving.first_token_ms, found.serving.token_ms
    assert first is not None
    assert token is not None
    assert (first.p50, first.p95, first.p99) == (None, None, None)
    assert first.mean == pytest.approx(2.3518979474117756e6 / 11008 * 1000)
    assert any("longer than 30000 ms" in note for note in found.notes)
    # histogram_quantile by hand: 75 ms + 25 ms x (3700378.5 - 433413) / (4950195 - 433413)
    assert token.p50 == pytest.approx(93.0824, abs=1e-3)
    assert found.serving.requests_running == 162.0
    assert found.serving.requests_waiting == 1413.0  # 0, then 2,826
    assert found.serving.kv_cache_fraction == 0.28


def test_triton_tells_sums_so_means_alone_are_known() -> None:
    """Requests of its models add up; there are no percentiles of what it only sums up."""
    empty = "nv_inference_request_success 0\n"
    found = _over(empty, (PAGES / "triton.prom").read_text())
    assert found.framework == "triton"
    assert found.requests_per_s == 150.0
    assert (found.unit, found.done) == ("request", 1500.0)
    assert found.latency_ms is not None
    assert found.latency_ms.mean == pytest.approx(20.0)
    assert found.latency_ms.p99 is None
    assert found.serving is not None
    assert found.serving.queue_ms is not None
    assert found.serving.queue_ms.mean == pytest.approx(2.0)
    assert found.serving.failures_per_s == 0.4
    assert found.serving.requests_waiting == 5.0


TOKENS = 'sglang:generation_tokens_total{{model_name="m"}} {}\n'
GROWN = {
    "a server that starts anew counts from 0": ((100, 140, 30, 50), 90.0),
    "a page without news": ((100, 100), 0.0),
    "whole numbers and exponents": (("1.0e2", "1.5e+02"), 50.0),
    "nothing to tell yet": (("NaN", 20, 30), 30.0),
}


@pytest.mark.parametrize("case", GROWN)
def test_growth_is_counted_page_by_page(case: str) -> None:
    """Growth is never negative, and a series that comes later has grown from 0."""
    values, grown = GROWN[case]
    tally = ServingTally()
    for i, value in enumerate(values):
        tally.take(float(i), page_of(TOKENS.format(value)))
    assert [row[2] for row in tally.as_json()["grown"]] == [grown]


GAUGES = {
    "two ranks of one engine tell the same": (
        'sglang:num_running_reqs{tp_rank="0"} 6\nsglang:num_running_reqs{tp_rank="1"} 6\n',
        6.0,
    ),
    "two engines each tell their own": (
        'sglang:num_running_reqs{dp_rank="0"} 6\nsglang:num_running_reqs{dp_rank="1"} 4\n',
        10.0,
    ),
    "Ray's form of the name": ('ray_vllm_num_requests_running{model_name="m"} 2\n', 2.0),
    "a name that only begins alike": (
        'vllm:num_requests_running_by_reason{reason="x"} 9\nvllm:num_requests_running 1\n',
        1.0,
    ),
    "times behind the value": ("vllm:num_requests_running 7 1700000000000\n", 7.0),
}


@pytest.mark.parametrize("case", GAUGES)
def test_each_figure_is_counted_once(case: str) -> None:
    """Whatever labels and forms of names a page uses."""
    page, running = GAUGES[case]
    assert _running(page_of(page)) == running


def _running(page: Page) -> float:
    (value,) = (
        value
        for (name, labels), value in page.gauges.items()
        if (known := metric_of(name, dict(labels))) and known[2].part == "running"
    )
    return value


def test_of_a_renamed_metric_the_newer_name_counts() -> None:
    """A page with both names tells one figure, not two."""
    old, new = "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"
    pages = [
        f'{name}_bucket{{le="0.1"}} {n}\n{name}_bucket{{le="+Inf"}} {n}\n{name}_count {n}\n'
        f"{name}_sum {n * s}\n"
        for n in (0, 10)
        for name, s in ((old, 0.09), (new, 0.05))
    ]
    found = _over(pages[0] + pages[1], pages[2] + pages[3]).serving
    assert found is not None
    assert found.token_ms is not None
    assert found.token_ms.mean == pytest.approx(50.0)


@pytest.mark.parametrize("text", ["", "DCGM_FI_DEV_GPU_UTIL 12\n", "<html>404</html>", "\0\0"])
def test_a_page_of_something_else_tells_nothing(text: str) -> None:
    """No figure is made of a page that is not a server's."""
    tally = ServingTally()
    tally.take(0.0, page_of(text))
    tally.take(1.0, page_of(text))
    assert served_in({SERVING: [tally.as_json()]}) == ()


def test_servers_of_one_job_add_up() -> None:
    """Replicas measured together: tokens and queues add up over the time of all."""
    tallies = []
    for from_s in (0.0, 10.0):
        tally = ServingTally()
        for t_s, n in ((from_s, 0), (20.0, 100)):
            page = f"vllm:generation_tokens_total {n}\nvllm:num_requests_waiting 3"
            tally.take(t_s, page_of(page))
        tallies.append(tally)
    found = _told(*tallies)
    assert (found.done, found.length_s) == (200.0, 20.0)
    assert found.serving is not None
    assert found.serving.generated_tokens_per_s == 10.0
    assert found.serving.requests_waiting == 6.0


def test_a_server_within_another_is_told_once() -> None:
    """Triton with vLLM in it shows both on one page: requests count once."""
    pages = [f"nv_inference_request_success {n}\nvllm:request_success_total {n}\n" for n in (0, 50)]
    found = _over(*pages)
    assert (found.framework, found.requests_per_s) == ("vllm", 5.0)


DAMAGED = (None, 3, [1], [{}], [{"pages": 2}], [{"pages": 2, "from_s": "x", "to_s": 1, "grown": 1}])


@pytest.mark.parametrize("facts", DAMAGED)
def test_a_damaged_tally_tells_nothing(facts: object) -> None:
    """A capture that a kill or a disk spoiled is read without it."""
    assert served_in({SERVING: facts}) == ()
