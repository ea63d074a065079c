"""plan.json, the diagnosis and the marks that scripts and readers rely on."""

from decimal import Decimal
from typing import Any

import pytest

from gpucost.cli import COMMANDS
from planner.actions import ACTIONS
from planner.diagnosis.rules import RULES
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, inference, training
from tests.plan_keys import KEYS, at


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REASONS = _words(
    "memory latency deadline budget slowdown capability gpu-count region purchase unavailable "
    "stale-price unknown-gpu interconnect"
)
FINDINGS = _words(
    "data-loading host-to-device host-bound small-batch no-mixed-precision memory-bandwidth-bound "
    "communication-bound slow-interconnect power-throttled thermal-throttled memory-pressure "
    "idle-held idle bursty-interactive over-provisioned-gpu imbalanced-gpus under-used-inference "
    "latency-risk well-used unmeasured crashed evaluation start-up memory-leak "
    "generation egress-cost failing-gpu spare-copies left-on no-checkpoints poor-scaling slow-fp64"
)
ACTION_CODES = _words(
    "dataloader-workers dataloader-prefetch pinned-memory persistent-workers async-copy "
    "local-cache offline-preprocessing gpu-preprocessing mixed-precision tf32 larger-batch "
    "gradient-accumulation gradient-checkpointing compile channels-last fused-optimizer "
    "cuda-graphs data-parallel sharded-data-parallel tensor-parallel pipeline-parallel "
    "numa-binding nccl-tuning quantization pruning dynamic-batching checkpoint-interval "
    "allocator-tuning newer-gpu smaller-gpu fewer-gpus more-gpus share-gpu spot commit "
    "move-provider scale-down idle-shutdown reduce-egress"
)


@pytest.fixture
def plan(call: Call, write: Write) -> Any:
    """Return plan.json of three jobs of two kinds."""
    paths = [write(f"{name}.json", inference(name)) for name in ("a", "b")]
    ran = call("plan", write("t.json", training()), *paths, "--as-of", AS_OF, "-o", "-")
    assert ran.code == 0, ran.err
    return ran.json


def test_plan_json_has_the_keys_of_the_contract(plan: Any) -> None:
    """Every key of the contract is there, at every place, and every place is in the plan."""
    found = {path: at(plan, path) for path in KEYS}
    assert [path for path in KEYS if not found[path]] == []
    missing = {p: [_words(KEYS[p]) - set(one) for one in found[p]] for p in KEYS}
    assert {path: lacks for path, lacks in missing.items() if any(lacks)} == {}


def test_codes_are_those_of_the_contract(plan: Any) -> None:
    """Findings and reasons use the contract's words only; of actions there may be more."""
    assert {rule.code for rule in RULES} == FINDINGS
    assert set(ACTIONS) >= ACTION_CODES
    assert {one["code"] for one in at(plan, "jobs[].findings[]")} <= FINDINGS
    assert {one["reason"] for one in at(plan, "jobs[].rejected[]")} <= REASONS
    for path in ("jobs[].findings[]", "jobs[].options[]"):
        assert {code for one in at(plan, path) for code in one["actions"]} <= set(ACTIONS)


def test_options_are_named_once(plan: Any) -> None:
    """Ids are unique within a job, o0 is not among the options, the recommended one is known."""
    for job in plan["jobs"]:
        ids = [option["id"] for option in job["options"]]
        assert len(ids) == len(set(ids))
        assert "o0" not in ids
        assert job["recommended"] in (*ids, "o0")


def test_ranges_are_in_order(plan: Any) -> None:
    """Low <= mid <= high for hours and dollars, and the lines of a bill make its middle."""
    for option in at(plan, "jobs[].options[]"):
        hours, cost = option["hours"], option["cost"]
        assert 0 < hours["low"] <= hours["mid"] <= hours["high"]
        assert float(cost["low"]) <= float(cost["mid"]) <= float(cost["high"])
        lines = sum(float(line["usd"]) for line in cost["lines"])
        assert lines == pytest.approx(float(cost["mid"]), abs=0.01 * len(cost["lines"]))


def test_the_diagnosis_has_the_findings_of_the_plan(call: Call, write: Write) -> None:
    """`diagnose -f json` is the contract's document, with the plan's findings but their dollars."""
    write("profile.json", training())
    document = call("diagnose", "-f", "json").json
    assert document["schema"] == "gpucost.diagnosis/v1"
    (job,) = document["jobs"]
    planned = call("plan", "--as-of", AS_OF, "-o", "-").json["jobs"][0]["findings"]
    assert [f["code"] for f in job["findings"]] == [f["code"] for f in planned]
    assert {f["waste_usd"] for f in job["findings"]} == {None}


def test_engineering_time_is_weighed(call: Call, write: Write) -> None:
    """The plan says when its effort has paid off, at the rate that is listed as assumed."""
    write("profile.json", training())
    usual = call("plan", "--as-of", AS_OF, "-o", "-").json
    cheap = call("plan", "--as-of", AS_OF, "--engineer-rate", "80", "-o", "-").json
    assert 0 < cheap["roi"]["payback_days"] < usual["roi"]["payback_days"]
    assert any("100 USD/h" in line for line in usual["assumptions"])
    assert any("80 USD/h" in line for line in cheap["assumptions"])


def test_a_longer_horizon_recommends_no_less(call: Call, write: Write) -> None:
    """--horizon: what pays in a month pays in a year; a plan per run refuses it with a sentence."""
    write("profile.json", training())
    nets = []
    for given in ("1mo", "1y"):
        document = call("plan", "--as-of", AS_OF, "--horizon", given, "-o", "-").json
        nets.append([Decimal(one["net_usd"]) for one in at(document, "jobs[].options[].benefit")])
    assert max(nets[0]) < max(nets[1])
    run = call("plan", "--work-total", "1000000", "--horizon", "3mo")
    assert run.code == 2
    assert "--horizon is for plans per month" in run.err


@pytest.mark.parametrize("text", ["6", "0mo", "11y", "mo", "-3mo", "6months"])
def test_a_horizon_is_months_or_years(text: str, call: Call, write: Write) -> None:
    """Exit 2 with the forms that are known."""
    write("profile.json", training())
    ran = call("plan", "--horizon", text)
    assert ran.code == 2
    assert "horizon" in ran.err


@pytest.mark.parametrize(("option", "line"), [("--egress", "egress"), ("--storage", "disk")])
def test_data_of_the_period_is_billed(option: str, line: str, call: Call, write: Write) -> None:
    """--egress and --storage put their line on today's bill."""
    write("profile.json", training())
    bill = call("plan", "--as-of", AS_OF, option, "2TB", "-o", "-").json["jobs"][0]["baseline"]
    assert line in [one["what"] for one in bill["cost"]["lines"]]


def test_quote_finds_the_plan_of_the_folder(call: Call, write: Write) -> None:
    """PLAN defaults to ./plan.json for `quote --option`, as for every command that takes one."""
    write("profile.json", training())
    call("plan", "--as-of", AS_OF, "-q", "-o", "plan.json")
    assert call("quote", "--option", "train/o1").code == 0


@pytest.mark.parametrize("file_format", ["table", "json", "csv", "md"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--provider", "aws"),
        ("quote", "coreweave/coreweave-h100-sxm-classic", "--duration", "1h"),
        ("prices", "--provider", "coreweave", "--gpu", "H100"),
    ],
    ids=lambda words: words[0],
)
def test_old_prices_are_marked_in_every_output(
    arguments: tuple[str, ...], file_format: str, call: Call, write: Write
) -> None:
    """A price older than 60 days is marked in the data itself, whatever the format."""
    write("profile.json", training())
    old = call(*arguments, "--as-of", AS_OF, "-f", file_format, "-q")
    assert old.code == 0
    assert any(word in old.out for word in ("stale", "days old", " old", "price of 2026-")), (
        old.out[:2000]
    )


@pytest.mark.parametrize("command", ["plan", "diagnose", "quote", "prices", "report"])
def test_more_messages_are_on_standard_error(command: str, call: Call, write: Write) -> None:
    """-v is accepted, and adds nothing to the data of JSON."""
    assert command in COMMANDS
    write("profile.json", training())
    call("plan", "--as-of", AS_OF, "-q", "-o", "plan.json")
    day = ("--as-of", AS_OF)
    rest = {
        "plan": (*day, "-f", "json"),
        "diagnose": ("-f", "json"),
        "quote": ("digitalocean/gpu-h100x8-640gb", "--duration", "1h", *day, "-f", "json"),
        "prices": ("--gpu", "L4", *day, "-f", "json"),
        "report": (),
    }[command]
    assert call(command, *rest, "-v").out == call(command, *rest).out
