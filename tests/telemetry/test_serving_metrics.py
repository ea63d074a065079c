"""Servers of models: their pages of metrics and their benchmarks, as parts of a job's profile."""

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from planner.profile.model import Profile
from planner.profile.trials import Latency
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from telemetry.serving_metrics import server_of
from telemetry.sources import read_telemetry
from tests.telemetry.captures import assert_writable, path
from tests.telemetry.reading import read_source

START = 1782907200


class Server:
    """A server that counts with the library that vLLM and SGLang count with."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = {"registry": self.registry, "labelnames": ["model_name", "engine"]}
        self.running = Gauge("vllm:num_requests_running", "-", **labels)
        self.waiting = Gauge("vllm:num_requests_waiting", "-", **labels)
        self.cache = Gauge("vllm:kv_cache_usage_perc", "-", **labels)
        self.tokens = Counter("vllm:generation_tokens", "-", **labels)
        self.lost = Counter("vllm:num_preemptions", "-", **labels)
        self.done = Counter("vllm:request_success", "-", **labels)
        bounds = (0.1, 0.5, 1.0, 2.5)
        self.latency = Histogram("vllm:e2e_request_latency_seconds", "-", buckets=bounds, **labels)

    def serve(self, engine: str, seconds: list[float], tokens: int) -> None:
        """Answer requests, as long as each took."""
        own = ("m", engine)
        for one in seconds:
            self.latency.labels(*own).observe(one)
            self.done.labels(*own).inc()
        self.tokens.labels(*own).inc(tokens)
        self.lost.labels(*own).inc(2)
        self.running.labels(*own).set(len(seconds))
        self.waiting.labels(*own).set(1)
        self.cache.labels(*own).set(0.5)

    def page(self, t_s: int) -> str:
        """Return the page as it is now, each line with its time."""
        lines = generate_latest(self.registry).decode().splitlines()
        return "".join(
            f"{line}\n" if line.startswith("#") else f"{line} {t_s * 1000}\n" for line in lines
        )


def _read(tmp_path: Path, text: str, hints: Hints | None = None) -> Profile:
    file = tmp_path / "metrics.prom"
    file.write_text(text, encoding="utf-8")
    profiles = read_source(str(file), hints or Hints())
    assert_writable(profiles)
    (profile,) = profiles
    return profile


def test_pages_of_a_server_become_rates_queue_and_latency(tmp_path: Path) -> None:
    """Two engines over 100 s: counters add up and count from the first page, gauges are means."""
    server = Server()
    for engine in ("0", "1"):
        server.serve(engine, [9.0] * 50, 7_000)  # before the first page: not of this stretch
    pages = server.page(START)
    server.serve("0", [0.3] * 60, 6_000)
    server.serve("1", [0.75] * 40, 4_000)
    profile = _read(tmp_path, pages + server.page(START + 100))
    job, serving = profile.job, profile.job.serving
    assert (job.framework, job.kind, job.requests_per_s) == ("vllm", "inference_online", 1.0)
    assert serving is not None
    assert serving.generated_tokens_per_s == 100.0
    assert serving.preemptions_per_s == 0.04
    assert serving.requests_waiting == 2.0
    assert serving.requests_running == (100 + 100) / 2
    assert serving.kv_cache_fraction == 0.5
    # 60 of 100 below 0.5 s, all of them below 1 s: straight lines inside the buckets.
    assert job.latency_ms is not None
    assert job.latency_ms.p50 == pytest.approx(100 + 400 * 50 / 60)
    assert job.latency_ms.p95 == pytest.approx(500 + 500 * 35 / 40)
    assert job.latency_ms.mean == pytest.approx(1000 * (60 * 0.3 + 40 * 0.75) / 100)
    assert profile.work is not None
    assert (profile.work.unit, profile.work.done, profile.work.rate_per_s) == ("token", 1e4, 100.0)
    assert profile.window is not None
    assert profile.window.duration_s == 100.0


def test_a_restart_is_no_negative_count(tmp_path: Path) -> None:
    """Counters of a server that started anew go on from 0."""
    first, again = Server(), Server()
    first.serve("0", [0.2] * 90, 900)
    before = first.page(START)
    again.serve("0", [0.2] * 10, 100)
    profile = _read(tmp_path, before + again.page(START + 10))
    assert profile.job.requests_per_s == 1.0
    assert profile.job.serving is not None
    assert profile.job.serving.generated_tokens_per_s == 10.0


def test_one_page_has_no_rates_and_says_since_when(tmp_path: Path) -> None:
    """A single page: what waits now, latency since the start, a quantile beyond the last bound."""
    server = Server()
    server.serve("0", [0.3] * 90 + [60.0] * 10, 1_000)
    profile = _read(tmp_path, server.page(START))
    assert profile.job.requests_per_s is None
    assert profile.work is None
    assert profile.job.serving is not None
    assert profile.job.serving.generated_tokens_per_s is None
    assert profile.job.serving.requests_waiting == 1.0
    assert profile.job.latency_ms is not None
    assert profile.job.latency_ms.p50 is not None
    assert profile.job.latency_ms.p99 is None
    notes = " ".join(profile.provenance.notes)
    assert "longer than 2500 ms" in notes
    assert "since the server's start" in notes


def test_pages_without_times_have_rates_only_with_an_interval(tmp_path: Path) -> None:
    """Pages appended to each other say nothing of the time between them."""
    server = Server()
    server.serve("0", [0.2] * 5, 10)
    first = generate_latest(server.registry).decode()
    server.serve("0", [0.2] * 50, 500)
    text = first + generate_latest(server.registry).decode()
    assert _read(tmp_path, text).job.requests_per_s is None
    told = _read(tmp_path, text, Hints(interval_s=10.0))
    assert told.job.requests_per_s == 5.0


OTHERS = {
    # The form of the pages in the documentation of SGLang and Triton.
    "sglang": (
        (
            'sglang:token_usage{model_name="m",tp_rank="0"} 0.28\n'
            'sglang:token_usage{model_name="m",tp_rank="1"} 0.28\n'
            'sglang:num_running_reqs{model_name="m",tp_rank="0"} 12\n'
            'sglang:num_running_reqs{model_name="m",tp_rank="1"} 12\n'
            'sglang:num_queue_reqs{model_name="m",tp_rank="0"} 3\n'
        ),
        {"kv_cache_fraction": 0.28, "requests_running": 12.0, "requests_waiting": 3.0},
    ),
    "triton": (
        (
            'nv_inference_pending_request_count{model="a",version="1"} 4\n'
            'nv_inference_request_success{model="a",version="1"} 200\n'
            'nv_inference_request_summary_us{model="a",version="1",quantile="0.5"} 504\n'
            'nv_inference_request_summary_us{model="a",version="1",quantile="0.99"} 1156\n'
            'nv_inference_request_summary_us_count{model="a",version="1"} 200\n'
            'nv_inference_request_summary_us_sum{model="a",version="1"} 110000\n'
        ),
        {"requests_waiting": 4.0},
    ),
    "tgi": ("tgi_queue_size 2\ntgi_batch_current_size 7\n", {"requests_waiting": 2.0}),
    "vllm": (
        (
            'ray_vllm_num_requests_waiting{model_name="m"} 9\n'
            'ray_vllm_gpu_cache_usage_perc{model_name="m"} 0.4\n'
            'ray_vllm_kv_cache_usage_perc{model_name="m"} 0.4\n'
        ),
        {"requests_waiting": 9.0, "kv_cache_fraction": 0.4},
    ),
}


@pytest.mark.parametrize("server", OTHERS)
def test_other_servers_are_known(server: str, tmp_path: Path) -> None:
    """Ranks of one engine count once, times become milliseconds, Ray's prefix is known."""
    text, expected = OTHERS[server]
    job = _read(tmp_path, text).job
    assert job.framework == server
    assert {name: getattr(job.serving, name) for name in expected} == expected
    if server == "triton":
        assert job.latency_ms == Latency(mean=0.55, p50=0.504, p99=1.156)


def test_a_server_complements_the_telemetry_of_its_gpus(tmp_path: Path) -> None:
    """A page of the server beside nvidia-smi's log is one job with both."""
    server = Server()
    server.serve("0", [0.2], 10)
    page = tmp_path / "vllm.prom"
    page.write_text(server.page(START), encoding="utf-8")
    (profile,) = read_telemetry([path("nvidia_smi.csv"), str(page)], Hints())
    assert profile.gpu_count == 2
    assert profile.job.serving is not None
    assert profile.readings("util.kernel_time")


def test_servers_of_several_pods_stay_with_their_jobs(tmp_path: Path) -> None:
    """A Prometheus answer with two pods gives each its own GPU and its own queue."""
    result = [
        {
            "metric": {"__name__": name, "pod": pod, "gpu": gpu, "UUID": f"GPU-{pod}"},
            "values": [[START + i, str(value)] for i in (0, 30, 60)],
        }
        for pod, gpu, util, queue in (("chat", "0", 50, 3), ("code", "1", 90, 8))
        for name, value in (("DCGM_FI_DEV_GPU_UTIL", util), ("vllm:num_requests_waiting", queue))
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    file = tmp_path / "range.json"
    file.write_text(json.dumps(answer), encoding="utf-8")
    found = {one.job.name: one for one in read_source(str(file), Hints())}
    assert {name: one.mean("util.kernel_time") for name, one in found.items()} == {
        "chat": 0.5,
        "code": 0.9,
    }
    waiting = {n: one.job.serving and one.job.serving.requests_waiting for n, one in found.items()}
    assert waiting == {"chat": 3.0, "code": 8.0}


def test_names_of_no_server_are_passed_over() -> None:
    """Only names of the tables count, whatever stands around them."""
    assert server_of("vllm:num_requests_running") == ("vllm", "num_requests_running")
    assert server_of("kserve_vllm:num_requests_running") == ("vllm", "num_requests_running")
    assert server_of("my_vllm:num_requests_dreamt") is None
    assert server_of("node_cpu_seconds_total") is None


SERVE = {
    "date": "20260310-182556",
    "endpoint_type": "openai",
    "model_id": "m",
    "request_rate": "inf",
    "max_concurrency": 16,
    "duration": 50.0,
    "completed": 200,
    "failed": 5,
    "total_input_tokens": 40_000,
    "total_output_tokens": 20_000,
    "request_throughput": 4.0,
    "output_throughput": 400.0,
    "mean_ttft_ms": 40.0,
    "median_ttft_ms": 35.0,
    "p99_ttft_ms": 90.0,
    "median_tpot_ms": 20.0,
}


def test_a_benchmark_of_a_server_is_read(tmp_path: Path) -> None:
    """`vllm bench serve`: rates over its duration, percentiles by name, the load in a note."""
    profile = _read(tmp_path, json.dumps({**SERVE, "p99_e2el_ms": 4100.0, "median_e2el_ms": 3900}))
    assert profile.job.requests_per_s == 4.0
    assert profile.job.latency_ms == Latency(p50=3900.0, p99=4100.0)
    serving = profile.job.serving
    assert serving is not None
    assert (serving.generated_tokens_per_s, serving.prompt_tokens_per_s) == (400.0, 800.0)
    assert serving.failures_per_s == 0.1
    assert serving.first_token_ms == Latency(mean=40.0, p50=35.0, p99=90.0)
    assert serving.token_ms == Latency(p50=20.0)
    assert "at most 16 at a time" in " ".join(profile.provenance.notes)


def test_requests_of_a_benchmark_give_their_own_latency(tmp_path: Path) -> None:
    """`--save-detailed`: a request is its first token and the pauses between the others."""
    detail = {**SERVE, "ttfts": [0.1, 0.3], "itls": [[0.05] * 2, [0.1] * 3]}
    latency = _read(tmp_path, json.dumps(detail)).job.latency_ms
    assert latency is not None
    assert latency.mean == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("result", "kind", "unit"),
    [
        (
            {
                "elapsed_time": 10.0,
                "num_requests": 100,
                "total_num_tokens": 5_000,
                "requests_per_second": 10.0,
                "tokens_per_second": 500.0,
            },
            "inference_offline",
            "token",
        ),
        ({"avg_latency": 0.2, "latencies": [0.2] * 30}, "inference_online", None),
    ],
)
def test_other_benchmarks_are_read(
    result: dict[str, object], kind: str, unit: str | None, tmp_path: Path
) -> None:
    """`vllm bench throughput` and `latency` say what they measured, no more."""
    profile = _read(tmp_path, json.dumps(result))
    assert profile.job.kind == kind
    assert (profile.work and profile.work.unit) == unit


def test_a_benchmark_without_a_duration_is_refused(tmp_path: Path) -> None:
    """A result that lacks its length is no measurement of a rate."""
    with pytest.raises(InputError, match="--save-result"):
        _read(tmp_path, json.dumps({"request_throughput": 4.0}))
