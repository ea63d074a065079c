"""The rule table: every contract code is there, and every name that it uses exists."""

import pytest

from planner.actions import ACTIONS
from planner.diagnosis.diagnose import reading_at, rule
from planner.diagnosis.rules import RULES, Rule
from planner.signals.condition import Test, parse_test
from planner.signals.signals import SIGNALS
from pricing.errors import InputError

FINDINGS = """
data-loading host-to-device host-bound small-batch no-mixed-precision memory-bandwidth-bound
communication-bound slow-interconnect power-throttled thermal-throttled memory-pressure idle-held
idle bursty-interactive over-provisioned-gpu imbalanced-gpus under-used-inference latency-risk
well-used unmeasured
"""
# Added to the contract's.
PROGRAMS = """
crashed evaluation start-up memory-leak generation egress-cost failing-gpu spare-copies left-on
no-checkpoints poor-scaling slow-fp64
"""
ACTION_CODES = """
dataloader-workers dataloader-prefetch pinned-memory persistent-workers async-copy local-cache
offline-preprocessing gpu-preprocessing mixed-precision tf32 larger-batch gradient-accumulation
gradient-checkpointing compile channels-last fused-optimizer cuda-graphs data-parallel
sharded-data-parallel tensor-parallel pipeline-parallel numa-binding nccl-tuning quantization
pruning dynamic-batching checkpoint-interval allocator-tuning newer-gpu smaller-gpu fewer-gpus
more-gpus share-gpu spot commit move-provider scale-down idle-shutdown reduce-egress
"""
each_rule = pytest.mark.parametrize("one", RULES, ids=lambda r: r.code)


def test_the_finding_codes_are_the_contracts() -> None:
    """Each code of the contract has one rule."""
    assert sorted(r.code for r in RULES) == sorted((FINDINGS + PROGRAMS).split())


def test_the_action_codes_are_the_contracts() -> None:
    """Each action of the contract is described, and every action under its own code."""
    assert set(ACTION_CODES.split()) <= set(ACTIONS)
    assert all(ACTIONS[code].code == code and ACTIONS[code].title for code in ACTIONS)


@each_rule
def test_a_rule_names_what_exists(one: Rule) -> None:
    """Actions are in ACTIONS, signals in SIGNALS, comparisons known, and it has a source."""
    assert set(one.actions) <= set(ACTIONS)
    assert len(set(one.actions)) == len(one.actions)
    assert one.meaning
    assert one.source
    assert one.cases
    for test in (t for case in one.cases for t in case.tests):
        assert test.signal in SIGNALS
        assert test.op in {"<", "<=", ">", ">=", "in", "unknown"}
        assert test.words


@each_rule
def test_no_verdict_needs_sm_activity(one: Rule) -> None:
    """Each code can be found on a machine that reports no SM activity.

    SM activity narrows a verdict; only nvidia-smi is everywhere.
    """

    def needs_sm(test: Test) -> bool:
        return test.signal == "util.sm_active.mean" and not test.or_unknown and test.op != "unknown"

    assert any(not any(needs_sm(t) for t in case.tests) for case in one.cases)


@each_rule
def test_a_rule_is_found_by_its_code(one: Rule) -> None:
    """`gpucost explain` finds each rule."""
    assert rule(one.code) is one


def test_an_unknown_code_lists_the_known() -> None:
    """A typo is answered with the list."""
    with pytest.raises(InputError, match="data-loading"):
        rule("data-lodaing")


@pytest.mark.parametrize(
    ("text", "value", "holds", "shown"),
    [
        ("s < 0.5", 0.4, True, "< 0.5"),
        ("s < 0.5", 0.5, False, "< 0.5"),
        ("s <= 0.5", 0.5, True, "<= 0.5"),
        ("s > 0.5", 0.5, False, "> 0.5"),
        ("s >= 0.5", 0.5, True, ">= 0.5"),
        ("s >= 0.5", None, False, None),
        ("s >= 0.5", "word", False, ">= 0.5"),
        ("s in a|b", "b", True, "one of a, b"),
        ("s in a|b", None, False, None),
        ("s unknown", None, True, None),
        ("s unknown", 0.0, False, "not measured"),
        ("s < 0.5 or unknown", None, True, None),
        ("s < 0.5 or unknown", 0.9, False, "< 0.5"),
        ("where s < 0.5", 0.1, True, None),
    ],
)
def test_a_test_holds_on_what_was_measured(
    text: str, value: float | str | None, *, holds: bool, shown: str | None
) -> None:
    """An unmeasured signal holds nothing by itself, and is not evidence."""
    test = parse_test(text)
    assert test.holds({"s": value}) is holds
    reading = reading_at(test, {"s": value})
    assert (reading.test if reading else None) == shown


@pytest.mark.parametrize("text", ["", "s", "s <", "s = 1", "s < 1 or", "s < STARVD", "where s"])
def test_what_is_not_a_test_is_refused(text: str) -> None:
    """A slip in a table ends with the text that is wrong, and never as a test that always fails."""
    with pytest.raises(ValueError, match="is not a test"):
        parse_test(text)
