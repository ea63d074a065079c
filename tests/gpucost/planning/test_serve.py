"""`gpucost serve`: copies and tokens of language models under a latency target."""

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from planner.serving import load, search, traffic
from planner.serving.language_model import model_named, models
from planner.serving.server import server
from pricing.hardware import gpus
from tests.gpucost.conftest import Call, Ran, Write

LLAMA = ("--model", "meta-llama/Llama-3.1-8B-Instruct")
TARGETS = ("--ttft-p99", "500ms", "--tpot-p99", "50ms")
LIMITS_P95 = ("--ttft-p95", "500ms", "--tpot-p95", "40ms")
DAY = ("--as-of", "2026-11-20")
PLAN = ("serve", "plan", *LLAMA, "--rate", "20", *TARGETS, *DAY)


SIMULATED = cache(load.served)


@pytest.fixture(autouse=True)
def simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a load once for all tests: the same requests give the same times."""
    for module in (load, search):
        monkeypatch.setattr(module, "served", SIMULATED)


def planned(call: Call, *more: str) -> Any:
    """The answer of `serve plan` as JSON."""
    ran = call(*PLAN, *more, "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_every_option_keeps_the_targets_and_carries_the_rate(call: Call) -> None:
    """Copies times what one takes are at least the rate; the times are within the limits."""
    answer = planned(call)
    assert answer["options"]
    for option in answer["options"]:
        assert option["copies"] * option["limit"]["rate"] >= 20
        assert option["ttft_ms"][2]["mid"] <= 500
        assert option["tpot_ms"][2]["mid"] <= 50
        assert option["ttft_ms"][2]["low"] < option["ttft_ms"][2]["mid"]
    costs = [
        (option["odds_fraction"] < 0.8, Decimal(option["usd_per_hour"]))
        for option in answer["options"]
    ]
    assert costs == sorted(costs)


def test_the_cheapest_that_likely_keeps_the_targets_is_recommended(call: Call) -> None:
    """What costs less at odds under 80 % is listed after all others and named as risky."""
    few = ("serve", "plan", *LLAMA, "--rate", "5", *TARGETS, *DAY)
    options = json.loads(call(*few, "-f", "json").out)["options"]
    cheapest = min(options, key=lambda option: Decimal(option["usd_per_hour"]))
    assert options[0]["odds_fraction"] >= 0.8 > cheapest["odds_fraction"]
    assert options.index(cheapest) > 0
    screen = " ".join(call(*few).out.split())
    assert screen.index(f"Cheaper but risky: {cheapest['offer']['provider']}/") > 0


def test_no_copy_is_sure_that_is_nearly_full(call: Call) -> None:
    """By hand: unmeasured, 69 % is kept in Phi(1.645 x ln(1 / 0.69 / 1.3) / ln 1.25) = 80 %."""
    answer = planned(call)
    assert 0 < answer["options"][0]["load_fraction"] <= 0.7
    for option in answer["options"]:
        limit = option["limit"]["saturated_rate"]
        assert option["load_fraction"] == pytest.approx(20 / option["copies"] / limit)
        room = math.log(1 / option["load_fraction"] / 1.3) / math.log(1.25) * 1.645
        assert option["odds_fraction"] <= NormalDist().cdf(room) + 0.001
    screen = " ".join(call(*PLAN).out.split())
    shown = f"Load of a copy: {answer['options'][0]['load_fraction']:.0%} of saturation"
    assert shown in screen


def test_copies_are_added_where_their_odds_are_low(call: Call) -> None:
    """Of one model of GPU, more copies of it raise the odds; both answers are listed."""
    options = planned(call, "--gpu", "RTX-6000-Ada", "--rate", "5")["options"]
    by_odds = sorted((option["odds_fraction"], option["copies"]) for option in options)
    assert by_odds[0][0] < 0.8 <= by_odds[-1][0]
    assert by_odds[0][1] < by_odds[-1][1]


def test_the_odds_of_an_answer_are_of_its_own_ranges(call: Call) -> None:
    """A time as far under its target as its range reaches is kept nineteen times in twenty."""
    for option in planned(call)["options"]:
        assert 0.5 <= option["odds_fraction"] < 1
        room = [
            (
                target / option[metric][2]["mid"],
                option[metric][2]["high"] / option[metric][2]["mid"],
            )
            for metric, target in (("ttft_ms", 500.0), ("tpot_ms", 50.0))
        ]
        # ... and so is a rate as far under what a full copy answers by the law.
        room.append((1 / option["load_fraction"] / 1.3, 1.25))
        nineteen_in_twenty = all(has >= factor for has, factor in room)
        assert (option["odds_fraction"] >= 0.95) == nineteen_in_twenty


def test_a_million_tokens_cost_the_hour_over_the_tokens_of_the_hour(call: Call) -> None:
    """To the cent, by hand: $/h over 20 x 300 x 3600 output tokens, and over 20 x 800 x 3600."""
    for option in planned(call)["options"]:
        hour = Decimal(option["offer"]["usd_per_hour"]) * option["machines"]
        output = hour / (20 * 300 * 3600) * 1_000_000
        both = hour / (20 * 800 * 3600) * 1_000_000
        assert round(Decimal(option["usd_per_million_output"]), 2) == round(output, 2)
        assert round(Decimal(option["usd_per_million_tokens"]), 2) == round(both, 2)
        assert Decimal(option["usd_per_month"]) == hour * 730
        assert Decimal(option["usd_per_million_output_full"]) <= output


def test_spare_and_peak_are_added(call: Call) -> None:
    """A peak of 2x asks for as many copies as twice the rate; one more is spare."""
    plain, peak = planned(call, "--gpu", "L40S"), planned(call, "--gpu", "L40S", "--peak", "2x")
    spare = planned(call, "--gpu", "L40S", "--spare", "1")
    copies = plain["options"][0]["copies"]
    assert 2 * copies - 1 <= peak["options"][0]["copies"] <= 2 * copies
    assert spare["options"][0]["copies"] == copies
    assert Decimal(spare["options"][0]["usd_per_hour"]) > Decimal(
        plain["options"][0]["usd_per_hour"]
    )


def test_the_screen_is_short_in_two_languages(call: Call) -> None:
    """At most 24 lines on both streams, the answer among them."""
    for lang, words in (("en", "Rent "), ("zh", "建议租用")):
        ran = call(*PLAN, "--lang", lang)
        assert ran.code == 0, ran.err
        assert len((ran.out + ran.err).splitlines()) <= 24
        assert words in ran.out


def test_a_terminal_of_80_columns_holds_all_that_a_plan_says(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 lines with the messages as such a terminal breaks them, whatever there is to say."""
    monkeypatch.setenv("COLUMNS", "80")
    few = ("serve", "plan", "--model", "mixtral-8x7b", "--rate", "5", *DAY)
    for asked in (PLAN, few):
        ran = call(*asked)
        messages = (textwrap.wrap(line, 80) for line in ran.err.splitlines())
        assert sum(map(len, messages)) + len(ran.out.splitlines()) <= 24
        assert "odds a month" in ran.out


def test_a_refusal_is_in_the_language_that_is_asked(call: Call) -> None:
    """All of it: the sentence, and what it says of the best GPU."""
    refused(call(*PLAN, "--ttft-p99", "5ms", "--lang", "zh"), "在售的 GPU 都达不到目标", "几乎空载")


def test_a_trace_gives_its_own_rate_and_lengths(call: Call, write: Write) -> None:
    """Azure's columns; 100 requests in 50 s are 2.02 a second."""
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    rows += [f"{second / 2},{400},{100}" for second in range(100)]
    trace = write("requests.csv", "\n".join(rows))
    ran = call("serve", "plan", *LLAMA, "--trace", trace, *TARGETS, *DAY, "-f", "json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert answer["rate"] == pytest.approx(100 / 49.5)
    assert (answer["prompt_tokens"], answer["output_tokens"]) == (400, 100)


def test_tokens_of_an_api_break_even_both_ways(call: Call) -> None:
    """By hand: the API's month at the rate where one copy's month is the same."""
    answer = planned(call, "--tokens", "--gpu", "H100")
    assert answer["tokens"]
    first, option = answer["tokens"][0], answer["options"][0]
    request = 500 * Decimal(first["usd_per_million_input"]) + 300 * Decimal(
        first["usd_per_million_output"]
    )
    month = request / 1_000_000 * 20 * 730 * 3600
    assert Decimal(first["usd_per_month"]) == pytest.approx(month)
    even = Decimal(option["usd_per_month"]) / (month / 20)
    if first["break_even_rate"] is None:
        assert even > option["limit"]["rate"]
    else:
        assert Decimal(first["break_even_rate"]) == pytest.approx(even, rel=Decimal("0.001"))


def test_two_readings_of_a_tokens_price_are_held_against_each_other(call: Call) -> None:
    """By hand: 2/s of 800 tokens at $0.70 are $2,943.36 a month, at LiteLLM's $0.63 $2,649.02.

    The same copy then breaks even at 0.70 / 0.63 times the rate.
    """
    slow = ("--ttft-p99", "2s", "--tpot-p99", "100ms", "--tokens", *DAY)
    mixtral = ("serve", "plan", "--model", "mixtral-8x7b", "--rate", "2", *slow)
    offers = json.loads(call(*mixtral, "-f", "json").out)["tokens"]
    (offer,) = (o for o in offers if o["provider"] == "ovhcloud")
    second_month = Decimal(offer["second_usd_per_month"])
    assert round(second_month, 2) == round(Decimal("0.63") * 800 * 2 * 3600 * 730 / 1_000_000, 2)
    ratio = Decimal(offer["second_break_even_rate"]) / Decimal(offer["break_even_rate"])
    assert ratio == pytest.approx(Decimal("0.70") / Decimal("0.63"), rel=Decimal("0.001"))
    text = " ".join(call(*mixtral).out.split())
    assert "LiteLLM 1.110.2 (2026-12-01) has it at $2,649.02 a month: Hosting is cheaper" in text
    same = call("serve", "plan", *LLAMA, "--rate", "2", *slow).out
    assert "LiteLLM 1.110.2 (2026-12-01) has the same price." in " ".join(same.split())


def test_tokens_of_another_model_are_not_offered(call: Call) -> None:
    """GLM-4.6V sees and costs half of GLM-4.6; Ministral 3 has 3B and 8B."""
    for model, wrong in (("glm-4.6", "4.6v"), ("ministral-3-3b", "8b")):
        asked = ("serve", "plan", "--model", model, "--rate", "2", "--ttft-p99", "9s", *DAY)
        answer = json.loads(call(*asked, "--tpot-p99", "99ms", "--tokens", "-f", "json").out)
        assert answer["tokens"]
        assert not any(wrong in offer["model"].lower() for offer in answer["tokens"])


SERVING = {
    "kv_cache_fraction": 0.03,
    "requests_running": 2.4,
    "requests_waiting": 0,
    "prompt_tokens_per_s": 500,
    "generated_tokens_per_s": 300,
    "token_ms": {"p50": 8.0, "p99": 9.5},
    "first_token_ms": {"p50": 35, "p99": 80},
}


def profile(serving: Mapping[str, Any] = SERVING, **job: Any) -> dict[str, Any]:
    """A copy of an 8B model on an H100 at one request a second."""
    return {
        "schema": "gpucost.profile/v1",
        "job": {
            "name": "chat",
            "kind": "inference_online",
            "framework": "vllm",
            "parameters": 8.03e9,
            "precision": "bf16",
            "requests_per_s": 1.0,
            "serving": dict(serving),
        }
        | job,
        "hardware": {"gpu": "H100-SXM-80GB", "gpu_count": 1},
        "window": {"duration_s": 600},
        "gpus": [{"index": 0, "metrics": {"util.kernel_time": {"mean": 0.5}}}],
    }


def test_eight_idle_copies_are_one(call: Call, write: Write) -> None:
    """The idle 8B case: 1 copy instead of 8, $2,190 instead of $17,520 at $3 an hour."""
    name = write("profile.json", profile())
    arguments = ("serve", "copies", name, "--copies", "8", *TARGETS, "--price", "3.00")
    answer = json.loads(call(*arguments, "-f", "json").out)
    assert answer["copies"] == 1
    assert (answer["usd_per_month"], answer["usd_per_month_now"]) == ("2190.00", "17520.00")
    spare = json.loads(call(*arguments, "--spare", "1", "-f", "json").out)
    assert spare["copies"] == 2
    text = " ".join(call(*arguments).out.split())
    assert ": 1 of 8 copies;" in text
    assert "That would be $2,190.00 a month instead of $17,520.00." in text


def test_copies_are_given_back_by_the_busiest_hour_and_not_by_a_mean(
    call: Call, write: Write
) -> None:
    """Ten minutes say nothing of a day's peak: that is asked for, unless a rate is stated."""
    arguments = ("serve", "copies", write("profile.json", profile()), "--copies", "8", *TARGETS)
    mean, stated = (
        " ".join(call(*arguments, "--price", "3.00", *rate).out.split())
        for rate in ((), ("--rate", "16"))
    )
    assert "before you give copies back, say the busiest hour with --rate" in mean
    assert "of 8 copies;" in stated
    assert "busiest hour" not in stated


@pytest.mark.parametrize(("rate", "copies", "safer"), [(8, 1, None), (20, 1, 2), (40, 2, 3)])
def test_copies_of_one_run_have_odds(
    rate: float, copies: int, safer: int | None, call: Call, write: Write
) -> None:
    """By hand: full at 22.8/s, 20/s in one copy is kept in Phi(1.645 ln(22.8/20) / ln 1.33)."""
    name = write("profile.json", profile())
    asked = ("serve", "copies", name, "--copies", "8", *TARGETS, "--rate", f"{rate}")
    answer = json.loads(call(*asked, "-f", "json").out)
    assert (answer["copies"], answer["safer_copies"]) == (copies, safer)
    room = answer["fit"]["saturated_rate"] * copies / rate
    odds = NormalDist().cdf(1.645 * math.log(room) / math.log(1.33))
    assert answer["odds_fraction"] == pytest.approx(odds, abs=0.005)
    text = " ".join(call(*asked).out.split())
    assert f"kept with odds of about {min(odds, 0.99):.0%}" in text
    assert ("3 copies keep them at 80% or more" in text) == (safer == 3)


BUSY_70B = {
    "requests_running": 5.5,
    "requests_waiting": 0,
    "prompt_tokens_per_s": 360,
    "generated_tokens_per_s": 150,
    "token_ms": {"p50": 38.0, "p95": 57.0},
    "first_token_ms": {"p50": 176, "p95": 430},
}


@pytest.mark.parametrize(
    ("ttft", "rate", "copies", "words"),
    [
        ("500ms", (), 3, ": 3 of 3 copies;"),
        ("500ms", ("--rate", "3.6"), 6, "3 copies are too few for 3.6 requests/s"),
        (
            "500ms",
            ("--rate", "0.5"),
            1,
            "Enough for 0.5 requests/s (TTFT p95 500 ms, TPOT p95 60 ms): 1 of 3",
        ),
        ("420ms", (), None, "no number of copies keeps TTFT p95"),
    ],
)
def test_a_copy_takes_what_its_own_run_shows(  # noqa: PLR0913, PLR0917 - a case
    ttft: str, rate: tuple[str, ...], copies: int | None, words: str, call: Call, write: Write
) -> None:
    """Measured percentiles that keep the targets go before the law, whose tail is wider."""
    document = profile(BUSY_70B, requests_per_s=0.6, parameters=70.6e9)
    document["hardware"] = {"gpu": "A100-SXM-80GB", "gpu_count": 2, "interconnect": "nvlink"}
    document["gpus"] *= 2
    name = write("profile.json", document)
    limits = ("--ttft-p95", ttft, "--tpot-p95", "60ms", "--price", "3.58")
    arguments = ("serve", "copies", name, "--copies", "3", *limits, *rate)
    ran = call(*arguments)
    assert words in " ".join((ran.out + ran.err).split())
    if copies is not None:
        answer = json.loads(call(*arguments, "-f", "json").out)
        assert answer["copies"] == copies
        assert answer["odds_fraction"] is None
        assert "No odds: each copy does no more than in this run." in " ".join(ran.out.split())


def test_serve_plans_offline(call: Call) -> None:
    """--offline is known here as everywhere prices are used, and gives the same answer."""
    asked = [word for word in PLAN if word not in DAY]
    ran = call(*asked, "--offline", "-f", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["options"]


def test_copies_of_what_does_not_run_are_planned(call: Call) -> None:
    """A rate without a measured copy is answered with the command that takes one."""
    refused(call("serve", "copies", "--copies", "4", "--rate", "0.5"), "gpucost serve plan --model")


def test_a_copy_on_a_listed_machine_has_its_price(call: Call, write: Write) -> None:
    """Without --price the dollars are the list's, and that is said."""
    document = profile()
    document["hardware"] |= {"provider": "lambda", "instance_type": "gpu_1x_h100_sxm5"}
    ran = call("serve", "copies", write("profile.json", document), "--copies", "8", *TARGETS)
    assert "a month instead of $" in ran.out
    assert "lambda/gpu_1x_h100_sxm5" in ran.err


FINE = tuple(0.001 * 1.2**step for step in range(60))
COARSE = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)  # s, as vLLM's


def test_tokens_that_cost_less_are_the_first_advice(call: Call) -> None:
    """By hand: 248 M tokens in at $0.02 and 52 M out at $0.05 are under $9, a GPU is over $800."""
    little = ("serve", "plan", *LLAMA, "--rate", "0.0787", "--prompt", "1200", "--answer", "250")
    lines = call(*little, *DAY, "--tokens").out.split("Rent ")[0]
    assert re.search(r"Buy tokens: \$[3-9]\.\d\d a month", " ".join(lines.split()))
    assert "Hosting costs $" in " ".join(lines.split())
    unasked = " ".join(call(*little, *DAY).out.split())
    assert re.search(r"would be 1?\d% used: .* --tokens .*gpucost\[tokens\]", unasked)
    assert "--tokens" not in call(*PLAN).out


def test_a_short_name_is_the_plain_release() -> None:
    """No name without such an ending means a quantized upload; one with it has its precision."""
    for name, model in models().items():
        short = name.rpartition("/")[2].lower()
        assert model_named(short) == model
        assert ("nvfp4" in short) <= (model.native_precision == "fp4")
    assert model_named("deepseek-v3").name == "deepseek-ai/DeepSeek-V3"
    tuned = model_named("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic")
    assert (tuned.native_precision, tuned.layers) == ("fp8", 32)


def test_bf16_weights_run_on_gpus_that_have_it(call: Call) -> None:
    """Below compute capability 8.0 is no bfloat16: no V100, no T4 but for other weights."""
    sizes = ("--prompt", "1200", "--answer", "250", "--rate", "6", *LIMITS_P95, *DAY, "-f", "json")
    mixtral = json.loads(call("serve", "plan", "--model", "mixtral-8x7b", *sizes).out)
    gpus = {option["layout"]["gpu"] for option in mixtral["options"]}
    assert not any(gpu.startswith(("V100", "T4")) for gpu in gpus)
    slow = ("--ttft-p99", "9s", "--tpot-p99", "200ms", "--rate", "0.1", *DAY, "-f", "json")
    int4 = call("serve", "plan", *LLAMA, "--gpu", "T4", "--weights", "int4", *slow)
    assert json.loads(int4.out)["options"]
    refused(call("serve", "curve", *LLAMA, "--gpu", "T4"), "no bfloat16", "--weights fp16")


def test_rows_keep_the_targets_cost_no_fortune_and_split_over_pcie_last(call: Call) -> None:
    """Of 4 L40S at one price the single copies come first; no row is over 5 times the best."""
    sizes = ("--prompt", "1200", "--answer", "250", "--rate", "6", *LIMITS_P95, *DAY, "-f", "json")
    same = json.loads(call("serve", "plan", *LLAMA, "--gpu", "L40S", *sizes).out)["options"]
    assert len({option["usd_per_month"] for option in same}) == 1
    assert [option["layout"]["tensor_parallel"] for option in same] == [1, 2]
    options = json.loads(call("serve", "plan", *LLAMA, *sizes).out)["options"]
    most = 5 * Decimal(options[0]["usd_per_month"])
    assert all(Decimal(option["usd_per_month"]) <= most for option in options)
    assert all(option["odds_fraction"] >= 0.5 for option in options)


def test_hosts_of_third_parties_are_said(call: Call) -> None:
    """Left out, a line says so; let in by their provider's name, the option says so."""
    assert "community hosts) are left out" in call(*PLAN).err
    ran = call(*PLAN, "--provider", "runpod", "--gpu", "L40S", "--ttft-p99", "2s")
    assert "community hosts) are left out" not in ran.err
    assert "third party's machine" in " ".join(ran.out.split())


class Vllm:
    """A page with vLLM's names, written by the library that vLLM writes it with."""

    def __init__(self, bounds: Sequence[float] = FINE) -> None:
        self.registry = CollectorRegistry()
        self.counters = {
            name: Counter(f"vllm:{name}", "-", ["model_name"], registry=self.registry).labels(
                LLAMA[1]
            )
            for name in ("request_success", "prompt_tokens", "generation_tokens")
        }
        self.gauges = {
            name: Gauge(f"vllm:{name}", "-", ["model_name"], registry=self.registry).labels(
                LLAMA[1]
            )
            for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
        }
        self.times = {
            name: Histogram(
                f"vllm:{name}", "-", ["model_name"], registry=self.registry, buckets=bounds
            ).labels(LLAMA[1])
            for name in (
                "time_to_first_token_seconds",
                "time_per_output_token_seconds",
                "e2e_request_latency_seconds",
            )
        }

    def serve(self, requests: int, token_s: float = 0.008) -> None:
        """Count requests of 500 + 300 tokens, the first after 35 ms."""
        for name, each in (
            ("request_success", 1),
            ("prompt_tokens", 500),
            ("generation_tokens", 300),
        ):
            self.counters[name].inc(each * requests)
        for _ in range(requests):
            self.times["time_to_first_token_seconds"].observe(0.035)
            self.times["time_per_output_token_seconds"].observe(token_s)
            self.times["e2e_request_latency_seconds"].observe(0.035 + 299 * token_s)

    def page(self) -> str:
        """The page as it is now."""
        return generate_latest(self.registry).decode()


def test_an_overloaded_server_is_given_a_copy(call: Call, write: Write) -> None:
    """14 wait and the cache is full: two scrapes are one server at $11,942.80, two cost twice."""
    vllm, names = Vllm(), []
    for name in ("z-before.prom", "after.prom"):
        vllm.serve(60)
        for gauge, value in (("running", 22), ("waiting", 14)):
            vllm.gauges[f"num_requests_{gauge}"].set(value)
        vllm.gauges["kv_cache_usage_perc"].set(0.97)
        names.append(write(name, vllm.page()))
    ran = call("plan", *names, "--machine", "lambda/gpu_4x_h100_sxm5", "-f", "json", *DAY)
    (job,) = json.loads(ran.out)["jobs"]
    assert job["answer"]["now"]["what"].startswith("overloaded: requests wait all the time (14 on")
    assert "room for the KV cache" in job["answer"]["now"]["what"]
    assert "add a copy" in job["answer"]["now"]["what"]
    assert job["answer"]["now"]["actions"] == ["kv-cache-room"]
    copies = ("--window", "10m", "--gpu", "H100-SXM-80GB", "--tp", "4", "--price", "16.36")
    text = " ".join(call("serve", "copies", *names, *copies).out.split())
    assert text.startswith("overloaded: requests wait all the time (14 on average) and the KV")
    assert "2 copies instead of 1" in text
    assert "$23,885.60 a month instead of $11,942.80" in text
    assert "Measure a lower rate" not in text
    assert "No odds: what a copy takes before requests wait was not measured" in text
    for rate, needed in (("0.35", 4), ("0.2", 3), ("0.05", 1)):  # a full copy answers 0.1 a second
        asked = ("serve", "copies", *names, *copies, "--rate", rate, "-f", "json")
        assert call(*asked).json["copies"] == needed


def test_two_scrapes_are_a_run(call: Call, write: Write) -> None:
    """600 requests in ten minutes are one a second of 500 + 300 tokens."""
    vllm = Vllm()
    vllm.serve(50)
    vllm.gauges["num_requests_running"].set(2.4)
    before = write("before.prom", vllm.page())
    vllm.serve(600)
    after = write("after.prom", vllm.page())
    ran = call(
        "serve", "fit", before, after, "--window", "10m", "--gpu", "H100-SXM-80GB", "-f", "json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["rate"], found["prompt_tokens"], found["output_tokens"]) == (1, 500, 300)
    assert found["model"] == "meta-llama/Meta-Llama-3.1-8B"  # as the page names it
    assert found["requests"] == 600
    assert found["expected_running"] == pytest.approx(2.4, rel=0.1)
    assert 0.9 <= found["step_factor"] <= 1.3


def test_a_benchmark_is_a_run(call: Call, write: Write) -> None:
    """The result of `vllm bench serve`."""
    result = {
        "backend": "vllm", "request_throughput": 1.0, "duration": 600, "completed": 600,
        "total_input_tokens": 300_000, "total_output_tokens": 180_000, "median_ttft_ms": 35.0,
        "p99_ttft_ms": 80.0, "median_tpot_ms": 8.0, "p99_tpot_ms": 9.5, "median_e2el_ms": 2430.0,
    }  # fmt: skip
    name = write("bench.json", result)
    ran = call("serve", "fit", name, "--gpu", "H100-SXM-80GB", *LLAMA, "-f", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["tpot_p50_ms"] == 8.0


@pytest.mark.parametrize(
    ("token_s", "running", "words"),
    [
        (0.028, 12.6, "TPOT p95 40 ms."),  # 1.5/s x (0.035 + 299 x 0.028 s)
        (0.039, 17.5, "TPOT p95 40 ms may have been kept, its histogram says 25-50 ms."),
    ],
)
def test_means_are_of_sums_and_a_coarse_bucket_condemns_nobody(
    token_s: float, running: float, words: str, call: Call, write: Write
) -> None:
    """By hand: 1.5/s of e2e's sum over its count are running; all in 25-50 ms, 4 copies suffice."""
    vllm = Vllm(COARSE)
    vllm.gauges["num_requests_running"].set(running)
    pages = []
    for number, requests in enumerate((100, 900)):
        vllm.serve(requests, token_s)
        pages.append(write(f"{number}.prom", vllm.page()))
    more = ("--gpu", "L40S", "--window", "10m", "--copies", "4", "--price", "1.86", *LIMITS_P95)
    ran = call("serve", "copies", *pages, *more, "-f", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["copies"] <= 4
    assert found["fit"]["expected_running"] == pytest.approx(running, rel=0.01)
    assert found["fit"]["tpot_mean_ms"] == pytest.approx(1000 * token_s)
    assert found["fit"]["tpot_p50_ms"] is None
    assert words in " ".join(call("serve", "copies", *pages, *more).out.split())


def bench(**figures: Any) -> dict[str, Any]:
    """A result of `vllm bench serve`: 1,000 requests in 171.42 s, medians of two kinds."""
    return {
        "backend": "vllm", "request_throughput": 5.834, "duration": 171.42, "completed": 1000,
        "total_input_tokens": 1_200_000, "total_output_tokens": 249_731, "median_ttft_ms": 84.1,
        "p99_ttft_ms": 268.7,
        "median_tpot_ms": 11.6, "p99_tpot_ms": 16.8, "median_itl_ms": 9.2, "p99_itl_ms": 71.3,
    } | figures  # fmt: skip


def test_a_benchmark_is_of_the_model_that_it_names(call: Call, write: Write) -> None:
    """By hand: 1,000 / 171.42 s is 5.83/s at TPOT 11.6 ms, well under 40 ms: one copy takes 6/s."""
    name = write("bench.json", bench(model_id="meta-llama/Llama-3.1-8B-Instruct"))
    copies = ("--copies", "2", "--rate", "6", "--price", "3.49", *LIMITS_P95)
    ran = call("serve", "copies", name, "--gpu", "H100-SXM-80GB", *copies, "-f", "json")
    found = json.loads(ran.out)
    assert found["copies"] == 1
    assert (found["fit"]["tpot_p50_ms"], found["fit"]["requests"]) == (11.6, 1000)
    assert found["fit"]["model"] == "meta-llama/Meta-Llama-3.1-8B"
    on = ("--measured", name, "--measured-on", "H100-SXM-80GB")
    planned = call("serve", "plan", *on, "--rate", "6", *LIMITS_P95, *DAY)
    assert "one measured run (1,000 requests)" in " ".join(planned.out.split())


def test_a_run_that_names_no_model_asks_for_it(call: Call, write: Write) -> None:
    """How full a copy is depends on the model: none is assumed, and --model is named."""
    name = write("bench.json", bench())
    refused(call("serve", "fit", name, "--gpu", "H100-SXM-80GB"), "add --model NAME")


def refused(ran: Ran, *words: str) -> None:
    """It exits 2 with a sentence that has the words."""
    assert ran.code == 2, ran.out + ran.err
    text = " ".join(ran.err.split())
    for word in words:
        assert word in text


HOLDERS = ("do not fit any machine", "8x H200-SXM-141GB in fp8", "8x H100-SXM-80GB in int4")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--model", "nobody/knows-9B"), ("--params 8e9", "config.json")),
        (("--gpu", "RTX-4090", "--model", "deepseek-v3"), HOLDERS),
        (("--gpu", "T4", *LLAMA), ("T4 cannot run it", "no bfloat16", "--weights fp16 or int4")),
        (("--model", "deepseek-v3.1"), ("Near: nvidia/DeepSeek-V3.1-NVFP4.",)),
        (("--model", "bge-m3"), ("not a text generator", "gpucost profile")),
        (("--requests", "1000", *LLAMA), ("--rate is of a service and --requests of a batch",)),
        (("--offline", "--refresh", *LLAMA), ("--offline and --refresh contradict",)),
        (("--provider", "amazon", *LLAMA), ("--provider amazon", "did you mean aws?")),
        (("--model", "mixtral"), ("Near: mistralai/Mixtral-8x7B-v0.1",)),
        (("--ttft-p99", "5ms", *LLAMA), ("no GPU on sale keeps", "Raise", "--weights fp8")),
        (("--ttft-p99", "5ms", *LLAMA, "--weights", "fp8"), ("TTFT p99 5 ms", "--weights int4")),
        (("--tpot-p99", "1ms", *LLAMA), ("TPOT p99 1 ms", "ms at almost no load")),
        (("--shape", "agent", *LLAMA), ("bursts", "--request-log", "--peak")),
        (("--shape", "code", *LLAMA), ("bursts", "--request-log")),
        (("--with", "speculative-decoding", *LLAMA), ("not modelled", "--measured")),
        (("--with", "disaggregated", "--with", "lora", *LLAMA), ("disaggregated, lora",)),
        (("--with", "expert-parallel", *LLAMA), ("not modelled",)),
        (("--rate", "0", *LLAMA), ("--rate 20",)),
        ((), ("which model",)),
    ],
)
def test_what_cannot_be_planned_is_refused(
    more: tuple[str, ...], words: tuple[str, ...], call: Call
) -> None:
    """One sentence, one remedy."""
    refused(call("serve", "plan", "--rate", "20", *more, *DAY), *words)


def test_a_prompt_that_uses_up_the_target_by_itself_is_nothing_to_rent(call: Call) -> None:
    """A chat's p99 prompt is 3.5 times the mean: 42,000 tokens, nearly 3 s on eight H100."""
    asked = ("--rate", "2", "--prompt", "12000", "--answer", "250", "--ttft-p99")
    shape = ("--tpot-p99", "60ms", "--gpu", "H100-SXM-80GB", *DAY)
    model = ("--model", "meta-llama/Llama-3.1-70B-Instruct")
    tight = " ".join(call("serve", "plan", *model, *asked, "3s", *shape).out.split())
    assert "Nothing to rent yet" in tight
    assert "Rent " not in tight
    assert "p99 prompt (41,864 tokens by --shape chat) takes 2,851 ms by itself" in tight
    assert "raise that target" in tight
    assert "Nothing to rent" not in call("serve", "plan", *model, *asked, "5s", *shape).out


def test_lengths_stay_in_the_window_of_the_model(call: Call) -> None:
    """Qwen2.5-7B takes 32,768 tokens: 100,000 are refused, and 30,000 in the mean are cut there."""
    long = ("serve", "plan", "--model", "qwen2.5-7b", "--rate", "0.05", "--ttft-p99", "10s", *DAY)
    refused(call(*long, "--prompt", "100000", "--answer", "500"), "100,500 tokens", "32,768")
    asked = traffic.Traffic(rate=1.0, prompt=30_000.0, output=500.0, longest=32_268)
    drawn = traffic.requests(asked, 1.0, 1000, 1).prompts
    assert max(drawn) == 32_268
    assert sum(drawn) / 1000 == pytest.approx(30_000, rel=0.005)
    fixed = traffic.requests(structs.replace(asked, shape="fixed"), 1.0, 100, 1)
    assert set(fixed.prompts) == {30_000}
    assert set(fixed.outputs) == {500}
    refused(call(*long, "--peak", "5"), "such as 2.5x")


@pytest.mark.parametrize(
    ("name", "model", "precision"),
    [
        ("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", "bf16"),
        ("qwen3-14b-fp8", None, "fp8"),
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", "bf16"),
        ("llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "bf16"),
        ("mistral-small", "mistralai/Mistral-Small-24B-Instruct-2501", "bf16"),
        ("deepseek-r1-0528", "deepseek-ai/DeepSeek-R1", "fp8"),
        ("glm-4.5", "zai-org/GLM-4.5", "bf16"),
        ("Meta-Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-8B", "bf16"),
        ("Qwen2-72B", "Qwen/Qwen2-72B-Instruct", "bf16"),
    ],
)
def test_popular_names_are_known(name: str, model: str | None, precision: str) -> None:
    """A beginning that one model has, without what says how it was tuned or when."""
    found = model_named(name)
    assert found.native_precision == precision
    assert found.name == (model or name)


def test_the_folder_of_the_weights_names_the_model(tmp_path: Path) -> None:
    """By hand: 2 x 128256 x 4096 outside, 32 blocks of 41.9 M and 176.2 M: 8.03 billion."""
    shape = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    shape |= {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}
    (tmp_path / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    assert model_named(f"{tmp_path}").parameters == pytest.approx(8.03e9, rel=0.001)


def test_a_unit_must_be_written(call: Call) -> None:
    """500 is neither seconds nor milliseconds."""
    refused(call("serve", "plan", *LLAMA, "--rate", "20", "--ttft-p99", "500"), "ms or s")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"requests_waiting": 4}, ("wait all the time", "Measure a lower rate")),
        ({"requests_running": 12}, ("Little's law",)),
        ({"first_token_ms": {"p50": 18_000}}, ("API server or the client is the limit",)),
        ({"token_ms": {"p50": 2.0}}, ("H100-SXM-80GB needs 4.07 ms to read the weights",)),
    ],
)
def test_a_run_that_says_nothing_of_the_gpu_is_refused(
    changed: dict[str, Any], words: tuple[str, ...], call: Call, write: Write
) -> None:
    """Saturated, of another window, limited by what is not the GPU, or faster than its memory.

    8.03e9 parameters of 2 bytes, 85 % of them at 3.35 TB/s: 4.07 ms.
    """
    name = write("profile.json", profile(SERVING | changed))
    refused(call("serve", "fit", name), *words)


def test_a_plan_that_meets_no_latency_target_names_the_command_that_finds_copies(
    call: Call, write: Write
) -> None:
    """Where every machine breaks the target alone, more copies are the next thing to ask for."""
    slow = {"latency_slo_ms": 1, "latency_ms": {"p50": 4800, "p99": 12400}}
    ran = call("plan", write("profile.json", profile({}, **slow)), *DAY)
    assert "`gpucost serve plan` finds the GPUs and copies" in " ".join(ran.out.split())


def test_a_measured_file_that_anchors_nothing_is_refused(call: Call, write: Write) -> None:
    """A profile without a run of a server is not passed over as if none had been given."""
    name = write("profile.json", profile({}))
    refused(
        call("serve", "plan", *LLAMA, "--rate", "2", "--measured", name, *DAY), "chat: too little"
    )


def test_a_run_near_saturation_is_not_an_anchor(call: Call, write: Write) -> None:
    """22 requests a second are over 85 % of what an H100 takes."""
    near = SERVING | {
        "requests_running": 160.0, "prompt_tokens_per_s": 11_000.0,
        "generated_tokens_per_s": 6600.0, "token_ms": {"p50": 24.0}, "first_token_ms": {"p50": 90},
    }  # fmt: skip
    name = write("profile.json", profile(near, requests_per_s=22.0))
    refused(call("serve", "fit", name), "of saturation", "85 % or less")


AT_ONCE = {  # gpt-oss-120b on one H100 as GPUStack's lab published it, 2026-08-21
    "backend": "openai-chat", "model_id": "openai/gpt-oss-120b", "request_rate": "inf",
    "max_concurrency": None, "request_throughput": 14.84, "duration": 67.40, "completed": 1000,
    "total_input_tokens": 215_312, "total_output_tokens": 195_544, "median_ttft_ms": 25_973.43,
    "p99_ttft_ms": 54_033.43, "mean_tpot_ms": 54.10, "median_tpot_ms": 47.57, "p99_tpot_ms": 193.3,
}  # fmt: skip


def test_a_benchmark_of_all_requests_at_once_is_a_full_copy(call: Call, write: Write) -> None:
    """1,000 requests in 67.4 s: a copy takes 14.8 a second; 10 are two thirds of one H100.

    2,901 tokens a second of 47.57 ms each are 138 requests at a time, whatever waits in line.
    """
    name = write("bench.json", AT_ONCE)
    ran = call("serve", "fit", name, "--gpu", "H100-SXM-80GB", "-f", "json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["saturated_rate"] == pytest.approx(1000 / 67.4, rel=0.001)
    assert (told["load_fraction"], told["ttft_p50_ms"]) == (pytest.approx(1.0), None)
    assert told["expected_running"] == pytest.approx(138.0, rel=0.001)
    assert "sent at once" in told["notes"][-1]
    on = ("--measured", name, "--measured-on", "H100-SXM-80GB", "--gpu", "H100-SXM-80GB")
    sizes = ("--prompt", "215", "--answer", "196", "--shape", "sharegpt", "--ttft-p99", "2s")
    asked = ("serve", "plan", "--model", "gpt-oss-120b", "--rate", "10", *sizes, *on, *DAY)
    plan = json.loads(call(*asked, "--tpot-p99", "200ms", "-f", "json").out)
    single = next(o for o in plan["options"] if o["layout"]["tensor_parallel"] == 1)
    assert single["load_fraction"] == pytest.approx(10 / (1000 / 67.4) / single["copies"], rel=0.01)
    assert single["limit"]["saturated_rate"] == pytest.approx(1000 / 67.4, rel=0.01)


BROKEN = {  # an 8B on an A100 80 GB, vllm-project/vllm#8104; the times of a token are not of it
    "backend": "vllm", "model_id": "meta-llama/Meta-Llama-3.1-8B", "request_rate": "inf",
    "request_throughput": 0.08, "duration": 12105.85, "completed": 1000,
    "total_input_tokens": 19_495, "total_output_tokens": 1_376_769, "median_ttft_ms": 515_000.0,
    "mean_tpot_ms": 300.0, "median_tpot_ms": 290.0, "p99_tpot_ms": 420.0,
}  # fmt: skip


@pytest.mark.parametrize(("times", "sign"), [(1, "host memory"), (1 / 5000, "several copies")])
def test_a_run_that_contradicts_the_law_anchors_no_plan(
    call: Call, write: Write, times: float, sign: str
) -> None:
    """114 tokens a second of a batch are one request's: 2 TB/s read 16 GB 125 times a second.

    5,000 times as many (569,000) are more than 312 TFLOP/s compute of 16 GFLOP each: 19,500.
    """
    bench = BROKEN | {"duration": BROKEN["duration"] * times, "request_throughput": 0.08 / times}
    name = write("bench.json", bench)
    for asked in (
        ("fit", name, "--gpu", "A100-SXM-80GB"),
        ("plan", "--measured", name, "--measured-on", "A100-SXM-80GB", "--rate", "1", *DAY),
    ):
        refused(call("serve", *asked), "by the law", sign)


def test_a_rate_that_no_copy_with_such_times_answers_is_refused_in_words(
    call: Call, write: Write
) -> None:
    """256 requests of 300 tokens of 90 ms each end at 256 / 27 s = 9.5 a second: not 22."""
    over = SERVING | {
        "requests_running": 594.0, "prompt_tokens_per_s": 11_000.0,
        "generated_tokens_per_s": 6600.0, "token_ms": {"p50": 90.0}, "first_token_ms": {"p50": 90},
    }  # fmt: skip
    name = write("profile.json", profile(over, requests_per_s=22.0))
    ran = call("serve", "fit", name)
    refused(ran, "it answered 22 requests a second", "those of a queue")
    assert "of saturation" not in ran.err


def test_an_instant_that_chance_explains_is_a_note(call: Call, write: Write) -> None:
    """5 running where 2.4 are the mean: within 2 x sqrt(2.4); 6 are not."""
    near = write("near.json", profile(SERVING | {"requests_running": 5}))
    ran = call("serve", "fit", near, "-f", "json")
    assert ran.code == 0, ran.err
    assert any("an instant may differ" in note for note in json.loads(ran.out)["notes"])
    far = write("far.json", profile(SERVING | {"requests_running": 6}))
    refused(call("serve", "fit", far), "6 requests were running", "Little's law")


def test_a_run_that_shows_no_lora_stands_for_none(call: Call, write: Write) -> None:
    """A benchmark without a word of LoRA is refused; one that names its adapters is read."""
    arguments = ("serve", "plan", *LLAMA, "--rate", "2", "--with", "lora", *DAY, "--measured")
    on = ("--measured-on", "H100-SXM-80GB")
    refused(call(*arguments, write("plain.json", profile()), *on), "shows no sign of it")
    named = profile(name="chat-lora-adapters")
    assert call(*arguments, write("lora.json", named), *on).code == 0


def test_a_guidellm_result_names_its_model_and_counts_its_tokens(call: Call, write: Write) -> None:
    """Two requests a second of 512 + 256 tokens."""

    def mean(value: float) -> dict[str, Any]:
        return {"successful": {"mean": value, "median": value, "percentiles": {"p50": value}}}

    metrics = {
        "requests_per_second": mean(2.0),
        "request_latency": mean(2.2),
        "prompt_token_count": mean(512),
        "output_token_count": mean(256),
        "time_to_first_token_ms": mean(35.0),
        "inter_token_latency_ms": mean(8.5),
        "output_tokens_per_second": mean(500.0),
    }
    load = {
        "type_": "generative_benchmark",
        "config": {"strategy": {"type_": "constant", "rate": 2}},
        "duration": 300.0,
        "metrics": metrics,
        "worker": {"backend_model": "meta-llama/Llama-3.1-8B-Instruct"},
    }
    name = write("guidellm.json", {"benchmarks": [load]})
    told = json.loads(call("serve", "fit", name, "--gpu", "H100-SXM-80GB", "-f", "json").out)
    assert told["model"] == "meta-llama/Meta-Llama-3.1-8B"
    assert (told["rate"], told["prompt_tokens"], told["output_tokens"]) == (2, 512, 256)


def test_a_p99_of_few_requests_is_refused(call: Call, write: Write) -> None:
    """100 requests have no p99."""
    few = profile() | {"window": {"duration_s": 100}}
    name = write("profile.json", few)
    for targets in (TARGETS, ()):  # stated or assumed: both are of the p99
        refused(call("serve", "copies", name, "--copies", "8", *targets), "100 requests is noise")
        on = ("--measured", name, "--measured-on", "H100-SXM-80GB")
        refused(call("serve", "plan", "--rate", "2", *on, *targets, *DAY), "100 requests is noise")
    ran = call("serve", "copies", name, "--copies", "8", "--ttft-p95", "500ms", "-f", "json")
    assert ran.code == 0, ran.err


def test_scrapes_that_import_has_no_use_for_are_sent_to_serve(call: Call, write: Write) -> None:
    """`import` of two pages of which none is later names the command that reads them."""
    vllm = Vllm()
    vllm.serve(10)
    pages = [write(f"{number}.prom", vllm.page()) for number in range(2)]
    refused(call("import", *pages, "--gpu", "L40S"), "gpucost serve fit")


def test_one_scrape_has_no_rates(call: Call, write: Write) -> None:
    """Counters are differences, and the time between them must be said."""
    vllm = Vllm()
    vllm.serve(10)
    page = write("page.prom", vllm.page())
    refused(call("serve", "fit", page, "--gpu", "H100-SXM-80GB", "--window", "1m"), "a second one")
    refused(call("serve", "fit", page, page, "--gpu", "H100-SXM-80GB"), "--window 10m")


def test_what_is_weak_says_so(call: Call) -> None:
    """TTFT with nothing measured, and tensor parallel over PCIe, in words and in the range."""
    for option in planned(call)["options"]:
        assert any("factor of 4" in why for why in option["weak"])
        assert option["ttft_ms"][0]["high"] == pytest.approx(4 * option["ttft_ms"][0]["mid"])
    answer = json.loads(
        call(
            "serve", "plan", "--model", "meta-llama/Llama-2-13b-chat", "--rate", "2", "--gpu",
            "A10G", "--tpot-p99", "200ms", *DAY, "-f", "json",
        ).out
    )  # fmt: skip
    split = [option for option in answer["options"] if option["layout"]["tensor_parallel"] > 1]
    assert split
    assert all(any("over PCIe" in why for why in option["weak"]) for option in split)


def test_a_run_of_one_gpu_is_no_anchor_of_several(call: Call, write: Write) -> None:
    """A slow measured copy slows the options of one GPU, and leaves those of two as they were."""
    slow = SERVING | {"token_ms": {"p50": 16.0}, "requests_running": 4.9}
    name = write("profile.json", profile(slow))
    arguments = ("--gpu", "H100-SXM-80GB", "--precision", "bf16")
    law, measured = planned(call, *arguments), planned(call, *arguments, "--measured", name)

    def rates(answer: Any) -> dict[int, float]:
        return {
            option["layout"]["tensor_parallel"]: option["limit"]["rate"]
            for option in answer["options"]
        }

    assert rates(measured)[1] < 0.8 * rates(law)[1]
    assert rates(measured)[2] == rates(law)[2]
    bases = {o["layout"]["tensor_parallel"]: o["tpot_ms"][0]["basis"] for o in measured["options"]}
    assert (bases[1], bases[2]) == ("measured", "law")  # nor is what it says of two as sure


def test_a_curve_rises(call: Call) -> None:
    """More requests a second cost more time and less money a token."""
    ran = call("serve", "curve", *LLAMA, "--gpu", "L40S", "--price", "1.90", "-f", "json")
    points = json.loads(ran.out)["points"]
    tpot = [point["tpot_ms"][0] for point in points]
    usd = [Decimal(point["usd_per_million_output"]) for point in points]
    assert tpot == sorted(tpot)
    assert usd == sorted(usd, reverse=True)
    first = Decimal("1.90") / Decimal(str(points[0]["rate"] * 300 * 3600)) * 1_000_000
    assert usd[0] == pytest.approx(first)
    refused(
        call("serve", "curve", *LLAMA, "--gpu", "T4", "--weights", "fp16"),
        "--tp",
        "1x L40S in bf16",
    )


def test_a_curve_ends_where_the_memory_of_a_copy_is_full(call: Call) -> None:
    """No rate is priced at which requests do not end as fast as they arrive (Little's law)."""
    model = ("--model", "llama-3.1-70b", "--gpu", "A100-SXM-80GB", "--tp", "2", "--price", "3.58")
    answer = json.loads(call("serve", "curve", *model, "-f", "json").out)
    assert 1.2 < answer["saturated_rate"] < 1.6
    for point in answer["points"]:
        lasts_s = (point["ttft_ms"][0] + 300 * point["tpot_ms"][0]) / 1000
        assert point["requests_running"] == pytest.approx(point["rate"] * lasts_s, rel=0.25)


# "How many GPUs do I need?" in public threads whose outcome is known; answered by hand first, as
# weights + 4 requests of 800 tokens against 90 % of the memory less 1.5 GB a GPU.
THREADS = (
    # vllm-project/vllm#5711, 2024-06-20: 70B at 16 bit needs two A100; at 4 bit one is enough.
    ("Meta-Llama-3.1-70B", "A100-SXM-80GB", 1, "bf16", False),
    ("Meta-Llama-3.1-70B", "A100-SXM-80GB", 2, "bf16", True),
    ("Meta-Llama-3.1-70B", "A100-SXM-80GB", 1, "int4", True),
    # huggingface/text-generation-inference#734, 2023-07-28: two A100 barely, four well.
    ("Llama-2-70b-chat", "A100-SXM-80GB", 4, "fp16", True),
    # vllm-project/vllm#864, 2023-08-25: eight A10 run it.
    ("Llama-2-70b-chat", "A10", 8, "fp16", True),
    # InternLM/lmdeploy#2960, 2025-01-31: out of memory on eight H800 of 80 GB.
    ("deepseek-ai/DeepSeek-V3", "H100-SXM-80GB", 8, "fp8", False),
    # sgl-project/sglang#3196, 2025-01-30: runs on eight H200.
    ("deepseek-ai/DeepSeek-V3", "H200-SXM-141GB", 8, "fp8", True),
    # runpod-workers/worker-vllm#41, 2024-02-04: one GPU of 80 GB cannot serve it.
    ("Mixtral-8x7B-v0.1", "A100-SXM-80GB", 1, "bf16", False),
    # sgl-project/sglang#51, 2024-01-19: works with two of 80 GB.
    ("Mixtral-8x7B-v0.1", "A100-SXM-80GB", 2, "bf16", True),
    # huggingface/huggingface-llama-recipes#21, 2024-07-24: INT4 is what eight A100 can run.
    ("Meta-Llama-3.1-405B", "A100-SXM-80GB", 8, "bf16", False),
    ("Meta-Llama-3.1-405B", "A100-SXM-80GB", 8, "int4", True),
    # huggingface/optimum-benchmark#241, 2024-08-13: out of memory on two L40S at 16 bit.
    ("Meta-Llama-3.1-70B", "L40S", 2, "fp16", False),
    # vllm-project/vllm#6746, 2024-07-25: FP8 runs on eight H100 with windows of 8,192 tokens.
    ("Meta-Llama-3.1-405B", "H100-SXM-80GB", 8, "fp8", True),
    # xorbitsai/inference#2864, 2025-02-24: four machines of eight A100, or one of them at 4 bit.
    ("deepseek-ai/DeepSeek-V3", "A100-SXM-80GB", 16, "bf16", False),
    ("deepseek-ai/DeepSeek-V3", "A100-SXM-80GB", 32, "bf16", True),
    ("deepseek-ai/DeepSeek-V3", "A100-SXM-80GB", 8, "int4", True),
    # QwenLM/Qwen3#686, 2024-06-21: eight of 24 GB hold it at 16 bit, for under 4,096 tokens.
    ("Qwen2-72B-Instruct", "RTX-4090", 8, "bf16", True),
    # QwenLM/Qwen3#499, 2024-06-07: two of 40 GB do not, unless it is quantized.
    ("Qwen2-72B-Instruct", "A100-SXM-40GB", 2, "bf16", False),
    ("Qwen2-72B-Instruct", "A100-SXM-40GB", 2, "int4", True),
    # vllm-project/vllm#17327, 2025-04-30: out of memory on four H20 of 96 GB, eight run it.
    ("Qwen3-235B-A22B", "H20-96GB", 4, "bf16", False),
    ("Qwen3-235B-A22B", "H20-96GB", 8, "bf16", True),
    # QwenLM/Qwen3-VL#1624, 2025-10-16: FP8 takes at least four A100 of 80 GB.
    ("Qwen3-VL-235B-A22B-Instruct", "A100-SXM-80GB", 2, "fp8", False),
    ("Qwen3-VL-235B-A22B-Instruct", "A100-SXM-80GB", 4, "fp8", True),
    # MoonshotAI/Kimi-K2#51, 2025-07-23: sixteen H20 of 96 GB serve it.
    ("Kimi-K2-Instruct", "H20-96GB", 16, "fp8", True),
    # deepspeedai/DeepSpeed-MII#374, 2024-01-11: ran on two A6000 there, without the tenth of the
    # memory that vLLM leaves free; with it the weights alone do not fit, so that we refuse.
    ("Mixtral-8x7B-v0.1", "RTX-A6000", 2, "bf16", False),
)


@pytest.mark.parametrize("thread", THREADS)
def test_a_public_thread_had_the_same_outcome(
    thread: tuple[str, str, int, str, bool], call: Call
) -> None:
    """What ran there is answered, and what ran out of memory is refused for memory."""
    model, gpu, count, precision, runs = thread
    layout = ("--gpu", gpu, "--tp", f"{count}", "--precision", precision, "--nvlink")
    ran = call("serve", "curve", "--model", model, *layout)
    assert ran.code == (0 if runs else 2), ran.err
    assert runs or "do not fit" in ran.err


def test_a_thread_counted_the_same_tokens() -> None:
    """Graph-COM/SubgraphRAG#19, 2025-02-19: 39,024 tokens of an 8B fit an RTX 3090; within 15 %."""
    copy = server(model_named(LLAMA[1]), gpus()["RTX-3090"])
    assert copy is not None
    assert copy.kv_tokens == pytest.approx(39_024, rel=0.15)


def test_money_of_a_batch_is_its_hours_to_the_cent(call: Call) -> None:
    """By hand: requests over what all copies take, times the machines' price."""
    arguments = ("--requests", "1000000", "--deadline", "8h")
    ran = call("serve", "plan", *LLAMA, *arguments, *DAY, "-f", "json")
    assert ran.code == 0, ran.err
    for option in json.loads(ran.out)["options"]:
        hours = 1_000_000 / (option["copies"] * option["limit"]["rate"]) / 3600
        hour = Decimal(option["offer"]["usd_per_hour"]) * option["machines"]
        assert hours <= 8
        assert option["batch_hours"] == pytest.approx(hours)
        assert float(option["batch_usd"]) == pytest.approx(float(hour) * hours, abs=0.005)
        token = float(hour) * hours / (1_000_000 * 300) * 1_000_000
        assert float(option["usd_per_million_output"]) == pytest.approx(token, abs=0.0005)


def test_a_batch_is_recommended_where_it_is_done_in_time_at_odds_of_four_fifths(call: Call) -> None:
    """Full copies of dense models answer 1 / 1.3 of the law, so an A100 is too slow for a day."""
    day = ("--requests", "1000000", "--prompt", "500", "--answer", "300", "--deadline", "24h")
    first = json.loads(call("serve", "plan", *LLAMA, *day, *DAY, "-f", "json").out)["options"][0]
    room = first["copies"] * first["limit"]["saturated_rate"] / 1.3 / (1_000_000 / 86_400)
    odds = NormalDist().cdf(math.log(room) / math.log(1.25) * NormalDist().inv_cdf(0.95))
    assert odds >= 0.8
    assert first["odds_fraction"] == pytest.approx(odds, abs=1e-3)


def test_requests_may_be_counted_by_the_minute(call: Call) -> None:
    """600 a minute are 10 a second; another unit is refused with those that are known."""
    plans = [call("serve", "plan", *LLAMA, "--rate", rate, *DAY).out for rate in ("10", "600/min")]
    assert plans[0] == plans[1]
    assert "/min or /h, such as 2.5/min" in call("serve", "plan", *LLAMA, "--rate", "9/d").err


def test_a_batch_is_shown_by_hours_and_dollars(call: Call) -> None:
    """It has no month and no latency, and says neither."""
    text = call("serve", "plan", *LLAMA, "--requests", "1000000", *DAY).out
    assert " in all; 1M tokens $" in text
    assert "hours" in text
    for word in ("a month", "TTFT", "TPOT", "Weak"):
        assert word not in text, word


@pytest.mark.parametrize(("weights", "told"), [((), True), (("--weights", "fp8"), False)])
def test_weights_of_eight_bits_are_named_where_the_model_is_split(
    weights: tuple[str, ...], call: Call, *, told: bool
) -> None:
    """70B in 16 bits takes several GPUs: half the weights may take fewer."""
    model = ("--model", "llama-3.1-70b", "--gpu", "H100-SXM-80GB", "--rate", "2")
    text = " ".join(call("serve", "plan", *model, *weights, *DAY).out.split())
    assert ("--weights fp8 (on GPUs that have it) or int8" in text) is told


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--requests", "1000000", "--budget", "5"), ("the least is $", "over the budget")),
        (("--rate", "20", "--budget", "100", *TARGETS), ("the least is $", "$100.00")),
        (("--rate", "20", "--deadline", "8h"), ("--requests N",)),
    ],
)
def test_money_and_time_that_do_not_suffice_are_refused(
    more: tuple[str, ...], words: tuple[str, ...], call: Call
) -> None:
    """Two amounts and a remedy."""
    refused(call("serve", "plan", *LLAMA, *more, *DAY), *words)


def test_a_model_and_a_rate_alone_are_planned(call: Call) -> None:
    """With the targets of a chat, which are said."""
    ran = call("serve", *LLAMA, "--rate", "20", *DAY)
    assert ran.code == 0
    assert "TTFT p99 500 ms, TPOT p99 30 ms" in ran.out
    assert "No latency target is stated" in ran.err


def test_money_of_a_plan_is_over_the_tokens_that_are_asked(call: Call, write: Write) -> None:
    """8 copies at 1/s of 300 tokens: $/1M is the month over 8 x 300 x 3600 x 730 tokens."""
    name = write("profile.json", profile(replicas={"now": 8}))
    answer = json.loads(call("plan", name, *DAY, "-f", "json").out)["jobs"][0]
    for option in answer["options"]:
        month = Decimal(option["cost"]["mid"])
        by_hand = month / (8 * 300 * 3600 * 730) * 1_000_000
        assert option["cost_per_work"]["unit"] == "1M output token"
        assert float(option["cost_per_work"]["mid"]) == pytest.approx(float(by_hand), abs=0.005)


def test_a_name_of_several_cards_is_the_one_that_nvlink_joins_and_says_so(call: Call) -> None:
    """Four H100 are of the SXM form with NVLink; without it the same copy takes far less."""
    layout = (*LLAMA, "--gpu", "H100", "--tp", "4", "-f", "json")
    ran = call("serve", "curve", *layout)
    assert "H100 names several cards" in ran.err
    assert "This is H100-SXM-80GB" in ran.err
    of_pcie = call("serve", "curve", *layout, "--no-nvlink").json
    assert ran.json["saturated_rate"] > 3 * of_pcie["saturated_rate"]
