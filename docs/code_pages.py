"""The pages of finding and action codes, and which action serves which aim."""  # noqa: INP001 - beside a script

from collections.abc import Iterator

from page_text import MADE, prose, table

from gpucost.commands.planning.explain import action_facts, how_lines, test_words
from planner.actions import ACTIONS, Action
from planner.diagnosis.rules import RULES
from planner.diagnosis.rules.rule import Rule

# What people want to improve: the findings that ask for it, the actions that do it.
TOPICS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "data loading: workers, prefetch, pinned memory, asynchronous copies, caches, GPU decoding",
        ("data-loading", "host-to-device"),
        (
            "dataloader-workers",
            "dataloader-prefetch",
            "persistent-workers",
            "pinned-memory",
            "async-copy",
            "local-cache",
            "offline-preprocessing",
            "gpu-preprocessing",
            "environment-workers",
            "gpu-sampling",
            "device-data",
        ),
    ),
    ("half precision and TF32", ("no-mixed-precision",), ("mixed-precision", "tf32")),
    (
        "batch size: what fits, accumulation, recomputing activations",
        ("small-batch", "memory-pressure"),
        ("larger-batch", "gradient-accumulation", "gradient-checkpointing"),
    ),
    (
        "several GPUs: data, tensor and pipeline parallel, affinity, links",
        ("communication-bound", "slow-interconnect", "imbalanced-gpus"),
        (
            "data-parallel",
            "sharded-data-parallel",
            "tensor-parallel",
            "pipeline-parallel",
            "numa-binding",
            "nccl-tuning",
            "more-gpus",
            "fewer-gpus",
        ),
    ),
    (
        "inference: pruning, quantisation, batching",
        ("under-used-inference", "latency-risk", "memory-bandwidth-bound"),
        ("pruning", "quantization", "dynamic-batching", "kv-cache-room", "share-gpu", "scale-down"),
    ),
    ("checkpoints", ("host-bound",), ("checkpoint-interval", "spot")),
    (
        "GPU memory: allocator settings, no needless copies",
        ("memory-pressure", "host-to-device"),
        ("allocator-tuning", "pinned-memory", "async-copy"),
    ),
    (
        "newer and smaller GPUs, priced per job",
        ("memory-bandwidth-bound", "power-throttled", "over-provisioned-gpu"),
        ("newer-gpu", "smaller-gpu", "move-provider", "commit"),
    ),
    (
        "compiled and fused execution",
        ("host-bound", "small-batch"),
        ("compile", "cuda-graphs", "fused-optimizer", "channels-last"),
    ),
    (
        "restarts and elastic jobs, sized to the failure rate",
        ("host-bound",),
        ("data-parallel", "sharded-data-parallel", "checkpoint-interval"),
    ),
)


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
        "program is given to no other (`planner/actions/families.py`)."
    )
    yield from ("", "## By aim", "")
    yield from table(
        ("what", "findings", "actions"),
        [(words, _codes(found), _codes(does)) for words, found, does in TOPICS],
    )
    yield from ("", "## Overview", "")
    yield from table(
        ("code", "what to do", "class", "effect", "rests on", "effort, h"),
        [_row(one) for one in ACTIONS.values()],
    )
    yield ""
    for one in ACTIONS.values():
        yield from _action(one)


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
