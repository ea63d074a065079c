"""The pages of finding and action codes, and which action serves which aim."""  # noqa: INP001 - beside a script

from collections.abc import Iterator

from page_text import MADE, prose, table

from gpucost.commands.planning.explain import action_facts, how_lines, test_words
from planner.actions import ACTIONS, Action
from planner.diagnosis.rules import RULES, Rule

# What people want to improve, by the name that actions know it by: its title, and the findings that
# ask for it. The actions that serve it say so themselves.
TOPICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "loading": (
        "data loading: workers, prefetch, pinned memory, asynchronous copies, caches, GPU decoding",
        ("data-loading", "host-to-device"),
    ),
    "precision": ("half precision and TF32", ("no-mixed-precision",)),
    "batch": (
        "batch size: what fits, accumulation, recomputing activations",
        ("small-batch", "memory-pressure"),
    ),
    "several-gpus": (
        "several GPUs: data, tensor and pipeline parallel, affinity, links",
        ("communication-bound", "slow-interconnect", "imbalanced-gpus"),
    ),
    "inference": (
        "inference: pruning, quantisation, batching",
        ("under-used-inference", "latency-risk", "memory-bandwidth-bound"),
    ),
    "checkpoints": ("checkpoints", ("host-bound",)),
    "program": (
        "the program's own time: its Python, logging, evaluation, samples, start-up, memory",
        ("host-bound", "evaluation", "generation", "start-up", "memory-leak"),
    ),
    "memory": (
        "GPU memory: allocator settings, no needless copies",
        ("memory-pressure", "host-to-device"),
    ),
    "machines": (
        "newer and smaller GPUs, priced per job; a host that fails",
        ("failing-gpu", "memory-bandwidth-bound", "power-throttled", "over-provisioned-gpu"),
    ),
    "compiling": ("compiled and fused execution", ("host-bound", "small-batch")),
    "restarts": ("restarts and elastic jobs, sized to the failure rate", ("host-bound",)),
}


def findings() -> Iterator[str]:
    """Yield findings.md."""
    yield from ("# Findings", "", MADE, "")
    yield from prose(
        "What `gpucost diagnose` can say, the readings that lead there, and what helps. The "
        "same text, code by code: `gpucost explain CODE`. A finding is made when all tests of "
        "one case hold; the first such case counts. *measured* means that the cause itself "
        "was timed or counted, *likely* that counters point to it, *possible* that they allow "
        "it. A reading that was not measured holds no test, unless the table says so. Readings "
        "that speak against a finding do not remove it; they are shown beside it. The limits "
        "are round figures from practice; they are not fitted to any file. What each action is: "
        "[actions](actions.md)."
    )
    yield ""
    for rule in RULES:
        yield from _finding(rule)


def _finding(rule: Rule) -> Iterator[str]:
    yield from (f"### {rule.code}", "", rule.meaning, "")
    rows = [
        (
            case.confidence,
            case.cause,
            "; ".join(test_words(test) for test in case.tests),
            case.waste.words if case.waste else "",
            _codes(case.actions or ()),
        )
        for case in rule.cases
    ]
    yield from table(("sure", "cause", "tests", "wastes", "helps here"), rows)
    if rule.against:
        words = "; ".join(test_words(test) for test in rule.against)
        yield from ("", f"Speaks against it: {words}.")
    yield from ("", f"Helps: {_codes(rule.actions) or 'nothing to do'}. Source: {rule.source}.", "")


def actions() -> Iterator[str]:
    """Yield actions.md."""
    yield from ("# Actions", "", MADE, "")
    yield from prose(
        "What helps against the [findings](findings.md), and how it is done; the same, code by "
        "code: `gpucost explain CODE`. *safe* leaves results unchanged. *numeric* may change "
        "them, and is never part of an option by itself. *structural* chooses the machine. An "
        "effect is the speed-up of one part of the run time (least, typical, most); where "
        "nothing is known, nothing is promised and no option counts on it. Of several actions "
        "on the same part the best counts, so no second is saved twice. Effort is our estimate. "
        "Facts about frameworks are of PyTorch 2, Lightning 2, Transformers 4 and 5, Accelerate "
        "1, Keras 3 and JAX; `N` is the value that the profile gives. What belongs to one kind of "
        "program is given to no other."
    )
    yield from ("", "## By aim", "")
    yield from table(
        ("what", "findings", "actions"),
        [(words, _codes(found), _codes(_serving(aim))) for aim, (words, found) in TOPICS.items()],
    )
    yield from ("", "## Overview", "")
    yield from table(
        ("code", "what to do", "class", "effect", "rests on", "effort, h"),
        [_row(one) for one in ACTIONS.values()],
    )
    yield ""
    for one in ACTIONS.values():
        yield from _action(one)


def _serving(aim: str) -> tuple[str, ...]:
    return tuple(action.code for action in ACTIONS.values() if aim in action.aims)


def _row(one: Action) -> tuple[str, ...]:
    effect = ""
    if one.effect is not None:
        effect = ", ".join(f"x{factor:g}" for factor in one.effect) + f" of {one.mechanism}"
    effort = f"{one.effort_hours:g}" if one.effort_hours else ""
    link = f"[`{one.code}`](#{one.code})"
    return (link, one.title, one.kind, effect, one.grade, effort)


def _action(one: Action) -> Iterator[str]:
    yield from (f"### {one.code}", "", f"{one.title[0].upper()}{one.title[1:]} (*{one.kind}*).", "")
    for label, text in action_facts(one):
        yield f"- {label}: {text}"
    yield from ("", "How:", "")
    for label, text in how_lines(one.code):
        yield f"- {label}: `{text}`" if label == "environment" else f"- {label}: {text}"
    yield ""


def _codes(codes: tuple[str, ...]) -> str:
    return ", ".join(f"`{code}`" for code in codes)
