"""`gpucost plan`: exit codes, limits, the fleet, and the same answer in any order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pricing.catalog.regions import place_of
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, Document, changed, inference, training, unpriced

Limits = Sequence[str]


def _plan(call: Call, *arguments: str) -> Any:
    ran = call("plan", *arguments, "--as-of", AS_OF, "-f", "json", "-q")
    assert ran.code == 0, ran.err
    return ran.json


def _offers(plan: Any) -> list[Document]:
    return [option["offer"] for job in plan["jobs"] for option in job["options"]]


def _in_the_eu(offer: Document) -> bool:
    place = place_of(offer["provider"], offer["region"])
    return place is not None and place.in_eu


def test_the_visual_search_case(call: Call, write: Write) -> None:
    """A starved GPU is found by its CPU, with its dollars, and moved: three options or more."""
    write("profile.json", training())
    (job,) = _plan(call)["jobs"]
    first = job["findings"][0]
    assert first["code"] == "data-loading"
    assert any("cpu" in proof["metric"] for proof in first["evidence"])
    assert {"gpu-preprocessing", "dataloader-workers"} <= set(first["actions"])
    assert float(first["waste_usd"]) > 0
    assert len(job["options"]) >= 3
    assert len({option["offer"]["provider"] for option in job["options"]}) >= 2


INFEASIBLE: dict[str, tuple[Limits, str]] = {
    "deadline": (("--deadline", "1m", "--work-total", "900000000"), "deadline"),
    "budget": (("--budget", "1"), "budget"),
    "count": (("--gpus", "7"), "gpu-count"),
    "not sold there": (("--provider", "lambda", "--gpu", "T4"), "nothing is sold"),
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_what_nothing_keeps_is_exit_3(case: str, call: Call, write: Write) -> None:
    """Where no job has a feasible option, exit 3 names the job and the tightest limit."""
    limits, tightest = INFEASIBLE[case]
    write("profile.json", training())
    ran = call("plan", "--as-of", AS_OF, *limits)
    assert ran.code == 3
    assert "train: " in ran.err
    assert tightest in ran.err
    assert "leave it" not in ran.out.lower(), "today's machine breaks the limit as well"


def test_the_tightest_limit_comes_with_the_nearest_case(call: Call, write: Write) -> None:
    """The case named beside the tightest limit is the one that came nearest to keeping it."""
    write("profile.json", training())
    cheapest = min(float(o["cost"]["high"]) for o in _plan(call)["jobs"][0]["options"])
    ran = call("plan", "--as-of", AS_OF, "--budget", "1")
    assert ran.code == 3
    assert f"{cheapest:.2f}" in ran.err


def test_some_jobs_without_an_option_is_a_warning(call: Call, write: Write) -> None:
    """Where only some jobs have no feasible option, the exit code is 0 and a warning says so."""
    cheap = changed(training("cheap"), ("usage", "hours_per_month"), 1)
    paths = write("cheap.json", cheap), write("dear.json", inference("dear"))
    plan = _plan(call, *paths, "--budget", "20")
    assert any("dear" in warning and "limit" in warning for warning in plan["warnings"])


def test_only_today_is_exit_0(call: Call, write: Write) -> None:
    """A job that can only stay where it is is not a failure."""
    write("profile.json", inference("steady"))
    only = ("--provider", "digitalocean", "--gpu", "H100", "--gpus", "1")
    plan = _plan(call, *only)
    assert plan["jobs"][0]["recommended"] == "o0"


@pytest.mark.parametrize(("limit", "code"), [("0.01", 7), ("100000", 0)])
def test_fail_over_trips_above_its_limit(limit: str, code: int, call: Call, write: Write) -> None:
    """`--fail-over` exits 7 above its limit, still prints the plan, and says why."""
    write("profile.json", training())
    ran = call("plan", "--as-of", AS_OF, "--fail-over", limit)
    assert ran.code == code
    assert "You pay" in ran.out
    assert ("--fail-over" in ran.err) == (code == 7)


def test_fail_over_compares_the_recommended_cost(call: Call, write: Write) -> None:
    """The limit itself does not trip; a cent less does."""
    write("profile.json", training())
    (job,) = _plan(call)["jobs"]
    cost = next(o["cost"]["mid"] for o in job["options"] if o["id"] == job["recommended"])
    below = str(float(cost) - 0.02)
    assert call("plan", "--as-of", AS_OF, "-q", "--fail-over", below).code == 7
    above = str(float(cost) + 0.02)
    assert call("plan", "--as-of", AS_OF, "-q", "--fail-over", above).code == 0


def test_an_unknown_cost_does_not_pass_for_nothing(call: Call, write: Write) -> None:
    """Where the recommended cost is unknown, `--fail-over` says so instead of taking it as 0."""
    write("profile.json", unpriced())
    ran = call("plan", "--as-of", AS_OF, "--fail-over", "0.01")
    assert "fail-over" in ran.err


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        (("--provider", "digitalocean"), lambda o: o["provider"] == "digitalocean"),
        (("--gpu", "L4", "--gpu", "T4"), lambda o: o["gpu"] in ("L4", "T4")),
        (("--gpus", "4"), lambda o: o["gpu_count"] == 4),
        (("--purchase", "spot"), lambda o: o["purchase"] == "spot"),
        (("--region", "us-east-1"), lambda o: o["region"] == "us-east-1"),
        (("--region", "EU"), _in_the_eu),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_limit_holds_for_every_option(
    limits: Limits, holds: Any, call: Call, write: Write
) -> None:
    """Every option keeps the limit that was given."""
    write("profile.json", training())
    offers = _offers(_plan(call, *limits))
    assert offers
    assert all(holds(offer) for offer in offers)


def test_nobody_is_offered_unasked(call: Call, write: Write) -> None:
    """Community hosts, another vendor and another CPU come only with --include."""
    write("profile.json", training())
    plain = {str(offer) for offer in _offers(_plan(call))}
    assert not any("community" in offer or "MI300X" in offer for offer in plain)
    included = ("--include", "community", "--include", "any-vendor", "--include", "any-arch")
    wider = _plan(call, *included)
    assert {str(offer) for offer in _offers(wider)} != plain


def test_four_small_jobs_fit_on_one_gpu(call: Call, write: Write) -> None:
    """Four jobs, a fifth busy and 8 GiB each: one GPU, three quarters saved."""
    paths = [write(f"{i}.json", inference(f"infer-{i}")) for i in range(4)]
    fleet = _plan(call, *paths)["fleet"]
    assert (fleet["gpus_before"], fleet["gpus_after"]) == (4, 1)
    assert fleet["saves"]["fraction"] == pytest.approx(0.75, abs=0.01)


def test_memory_stops_a_third_job(call: Call, write: Write) -> None:
    """With 30 GiB each two fit on a GPU, and memory is the reason that a third does not."""
    paths = [write(f"{i}.json", inference(f"infer-{i}", memory_gib=30.0)) for i in range(4)]
    fleet = _plan(call, *paths)["fleet"]
    assert (fleet["gpus_before"], fleet["gpus_after"]) == (4, 2)
    assert "memory" in {one["reason"] for one in fleet["unmoved"]}


def test_a_latency_target_refuses_to_share(call: Call, write: Write) -> None:
    """A target without a measured latency shares with nobody: reason latency."""
    paths = [write(f"{i}.json", inference(f"infer-{i}")) for i in range(4)]
    fleet = _plan(call, *paths, "--slo-ms", "50")["fleet"]
    assert fleet["gpus_after"] == 4
    assert {one["reason"] for one in fleet["unmoved"]} == {"latency"}


def test_consolidation_can_be_switched(call: Call, write: Write) -> None:
    """Off for one job, on for several, and as the flag says otherwise."""
    one, two = (write(f"{i}.json", inference(f"infer-{i}")) for i in range(2))
    assert _plan(call, one)["fleet"] is None
    assert _plan(call, one, two)["fleet"] is not None
    assert _plan(call, one, two, "--no-consolidate")["fleet"] is None
    assert _plan(call, one, "--consolidate")["fleet"] is not None


@pytest.mark.slow
def test_the_order_of_inputs_does_not_show(call: Call, write: Write) -> None:
    """Any order of the same files gives the same bytes, also for jobs of one name, and again."""
    jobs = [inference("same"), inference("same", memory_gib=9.0), training("b"), training("a")]
    paths = [write(f"{i}.json", job) for i, job in enumerate(jobs)]
    usual = _files(call, *paths)
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        assert _files(call, *(paths[i] for i in order)) == usual, order
    assert _files(call, ".") == usual


def _files(call: Call, *sources: str) -> tuple[str, str]:
    ran = call("plan", *sources, "--as-of", AS_OF, "-f", "md", "-o", "../plan.json")
    assert ran.code == 0, ran.err
    return Path("../plan.json").read_text(encoding="utf-8"), ran.out


@pytest.mark.parametrize("option", ["--work-total", "--slo-ms", "--hours-per-month"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "many"])
def test_a_number_that_is_none_is_refused(
    option: str, value: str, call: Call, write: Write
) -> None:
    """Not a number, no end, not above 0: exit 2 naming the option."""
    write("profile.json", training())
    ran = call("plan", option, value)
    assert ran.code == 2, ran.err
    assert option in ran.err


@pytest.mark.parametrize("value", ["nan", "0.5", "x"])
def test_a_slowdown_that_is_none_is_refused(value: str, call: Call, write: Write) -> None:
    """A slowdown is a number of at least 1."""
    write("profile.json", training())
    ran = call("plan", "--max-slowdown", value)
    assert ran.code == 2
    assert "--max-slowdown" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--provider", "digitalocan"), "digitalocean"),
        (("--gpu", "H1000"), "H100"),
        (("--region", "mars"), "mars"),
        (("--current", "aws/g4dn.xlarg"), "g4dn.xlarge"),
        (("--current", "aws"), "PROVIDER/TYPE"),
        (("--objective", "fame"), "--objective"),
        (("--deadline", "24"), "8.5h"),
        (("--as-of", "tomorrow"), "2026-07-01"),
    ],
)
def test_a_bad_wish_is_refused(
    arguments: tuple[str, ...], told: str, call: Call, write: Write
) -> None:
    """A wish that nothing could meet, by its spelling, exits 2 and shows the right one."""
    write("profile.json", training())
    ran = call("plan", *arguments)
    assert ran.code == 2, ran.err
    assert told in ran.err


def test_a_run_is_planned_per_run(call: Call, write: Write) -> None:
    """--work-total makes the period a run: total / rate hours on today's machine."""
    write("profile.json", training())
    plan = _plan(call, "--work-total", "9000000")
    assert plan["period"] == "run"
    assert plan["jobs"][0]["baseline"]["hours"]["mid"] == pytest.approx(10.0)
    assert _plan(call)["period"] == "month"


def test_a_run_without_end_is_refused(call: Call, write: Write) -> None:
    """Work that the measured rate would never finish is an input error, not a bug."""
    endless = changed(
        training(), ("work",), {"unit": "image", "rate_per_s": 1e-300, "total": 1e300}
    )
    ran = call("plan", write("endless.json", endless))
    assert ran.code == 2
    assert "work." in ran.err


def test_a_machine_of_another_gpu_than_the_profile_is_refused(call: Call, write: Write) -> None:
    """Both GPUs are named, and a machine that has the measured one."""
    write("profile.json", training())
    ran = call("plan", "--as-of", AS_OF, "--current", "digitalocean/gpu-h100x8-640gb")
    assert ran.code == 2
    assert all(word in ran.err for word in ("T4", "H100-SXM-80GB", "--machine aws/g4dn.xlarge"))


def test_a_part_of_a_gpu_is_not_none_of_it(call: Call, write: Write) -> None:
    """An eighth of an L4 is 0.125 of one on the screen, and has the price of its machine."""
    eighth = {"gpu": "L4", "gpu_memory_gib": 2.79, "instance_type": "g6f.large"}
    profile = inference("slice")
    profile["hardware"] |= eighth | {"region": "us-east-1", "provider": "aws"}
    for reading in profile["gpus"]:
        reading["metrics"]["mem.used_gib"] = {"mean": 1.2, "max": 1.5}
    ran = call("plan", write("slice.json", profile), "--as-of", AS_OF)
    assert "0.125x L4 on aws/g6f.large" in ran.out, ran.err


def test_money_is_text_and_nothing_is_nan(call: Call, write: Write) -> None:
    """Dollars in plan.json are text with cents; no figure is NaN."""
    write("profile.json", training())
    ran = call("plan", "--as-of", AS_OF, "-o", "-")
    assert "NaN" not in ran.out
    for option in ran.json["jobs"][0]["options"]:
        for key in ("low", "mid", "high"):
            whole, _, cents = option["cost"][key].partition(".")
            assert whole.isdigit()
            assert len(cents) == 2


def test_the_objective_decides_the_order(call: Call, write: Write) -> None:
    """Options come by cost (where no price of a part is unknown), or by hours, as asked."""
    write("profile.json", training())
    by_cost = _plan(call, "--machine-only")["jobs"][0]["options"]
    costs = [float(option["cost"]["mid"]) for option in by_cost]
    assert costs == sorted(costs)
    by_time = _plan(call, "--objective", "time")["jobs"][0]["options"]
    hours = [option["hours"]["mid"] for option in by_time]
    assert hours == sorted(hours)


def test_a_plan_says_what_its_jobs_take_of_a_budget(call: Call, write: Write) -> None:
    """A g4dn.xlarge for 730 h is 383.98 USD; over the limit only if what is recommended is."""
    job = changed(training(), ("job", "team"), "Vision")
    write("profile.json", job)
    Path("budget.toml").write_text("[vision]\nusd-per-month = 5000\n[other]\nusd-per-month = 1\n")
    on = ("plan", "--as-of", AS_OF, "--hours-per-month", "730", "--machine-only")
    says = call(*on, "--current", "aws/g4dn.xlarge/us-east-1").err
    assert "note: budget vision: its jobs take $383.98 a month of its $5,000.00 today" in says
    assert "budget other" not in says
    Path("budget.toml").write_text("[vision]\nusd-per-month = 1\n")
    assert "note: OVER budget vision" in call(*on).err
    assert "budget" not in call(*on, "-q").err
