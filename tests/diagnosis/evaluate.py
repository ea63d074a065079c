"""How well the diagnosis finds the labels: `python -m tests.diagnosis.evaluate`.

The verdict is the first finding. Macro-F1 is the mean over the labelled codes of
F1 = 2 TP / (2 TP + FP + FN), so a rare cause counts as much as a common one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.diagnosis.diagnose import diagnose
from planner.signals.finding import Finding
from planner.signals.signals import read_signals
from tests.conftest import OUTSIDE
from tests.diagnosis.labelled import LabelledCase, cases, nudged

# What must never be said of a GPU that does useful work.
BELITTLING_CODES = frozenset(("idle", "idle-held", "over-provisioned-gpu"))
BELITTLING_ACTIONS = frozenset(("smaller-gpu",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case and what the diagnosis said of it."""

    case: LabelledCase
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """The first finding's code."""
        return self.findings[0].code

    @property
    def right(self) -> bool:
        """Whether the verdict is the label."""
        return self.verdict == self.case.label

    @property
    def belittled(self) -> tuple[str, ...]:
        """What was said that must never be said of useful work."""
        if not self.case.useful:
            return ()
        codes = {f.code for f in self.findings} & BELITTLING_CODES
        actions = {a for f in self.findings for a in f.actions} & BELITTLING_ACTIONS
        return tuple(sorted(codes | actions))

    @property
    def missed(self) -> tuple[str, ...]:
        """Causes beside the verdict that were not named, or named though absent."""
        codes = {f.code for f in self.findings}
        return (
            *(code for code in self.case.also if code not in codes),
            *(f"not {code}" for code in self.case.absent if code in codes),
        )


def judge(shared: Path | None, *, scale: float = 1.0) -> tuple[Judged, ...]:
    """Return every case that can be read here, diagnosed.

    Args:
        shared: the folder with the published recordings; None where it is absent.
        scale: what each reading of GPU and host is multiplied with, to see how firm verdicts are.
    """
    found = []
    for case in cases():
        profile = case.profile(shared)
        if profile is not None:
            measured = profile if scale == 1.0 else nudged(profile, scale)
            beside = {
                "bill.egress": case.egress,
                "serving.spare_copies": case.spare_copies,
                **case.scaling,
            }
            findings = diagnose(measured, signals=read_signals(measured, beside))
            found.append(Judged(case=case, findings=findings))
    return tuple(found)


def f1_by_code(judged: Sequence[Judged]) -> dict[str, float]:
    """Return the F1 of each labelled code, 0-1."""
    labels = Counter(one.case.label for one in judged)
    verdicts = Counter(one.verdict for one in judged)
    right = Counter(one.verdict for one in judged if one.right)
    return {code: 2 * right[code] / (labels[code] + verdicts[code]) for code in sorted(labels)}


def macro_f1(judged: Sequence[Judged]) -> float:
    """Return the mean F1 over the labelled codes, 0-1."""
    scores = f1_by_code(judged)
    return sum(scores.values()) / len(scores)


def report(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the scores, those on the cases held out apart, and what came out otherwise."""
    open_ = [one for one in judged if not one.case.held_out]
    held_out = [one for one in judged if one.case.held_out]
    recorded = [one for one in judged if one.case.recorded]
    yield f"{len(judged)} cases, {len(recorded)} of them published recordings"
    for words, group in (("rules were written with", open_), ("held out", held_out)):
        right = sum(one.right for one in group)
        yield f"{words}: macro-F1 {macro_f1(group):.3f}, {right} of {len(group)} verdicts right"
    yield from _confusion(judged)
    for one in judged:
        if not one.right:
            said = ", ".join(f"{f.code} ({f.confidence})" for f in one.findings)
            yield f"wrong: {one.case.name}: {one.case.label} expected; said {said}"
        if one.missed:
            yield f"beside the verdict: {one.case.name}: {', '.join(one.missed)}"
    belittled = [one for one in judged if one.belittled]
    yield f"useful work called idle or too large: {len(belittled)}"
    for one in belittled:
        yield f"  {one.case.name}: {', '.join(one.belittled)}"


def _confusion(judged: Sequence[Judged]) -> Iterator[str]:
    wrong = Counter((one.case.label, one.verdict) for one in judged if not one.right)
    labels = Counter(one.case.label for one in judged)
    for code, score in f1_by_code(judged).items():
        taken = [f"{v} {n}x" for (label, v), n in sorted(wrong.items()) if label == code]
        note = f"; taken for {', '.join(taken)}" if taken else ""
        yield f"  {code:24} F1 {score:.2f}  of {labels[code]}{note}"


def _firmness(shared: Path | None) -> Iterator[str]:
    for scale in (0.9, 0.95, 1.05, 1.1):
        judged = judge(shared, scale=scale)
        right = sum(one.right for one in judged)
        yield f"all readings x {scale:g}: macro-F1 {macro_f1(judged):.3f}, {right} right"


if __name__ == "__main__":
    data = OUTSIDE if OUTSIDE.is_dir() else None
    print("\n".join((*report(judge(data)), *_firmness(data))))  # noqa: T201
