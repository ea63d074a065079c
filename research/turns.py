"""Pairs of jobs that take turns on a GPU: the law of step times, each job left out in turn."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from planner.prediction.sharing import expected_speed, terms
from research.class_fits import quantile
from research.co_location import Together, measured, pairs
from research.score import Array, Coverage, Errors, Score, Section, errors

_RIDGE = 0.3
"""How strongly the effect of one job on its neighbours is held at 0."""
_BARS = {"K80": 8.0, "P100-SXM-16GB": 9.5}


def fitted(some: Sequence[Together], neighbours: Sequence[str] = ()) -> Array:
    """Return the coefficients of the law, then the effect of each neighbour (ln of speed)."""
    design = _design(some, neighbours)
    held = np.full(design.shape[1], 1e-6)
    held[len(terms(1.0, 1.0)) :] = _RIDGE
    true = np.log([pair.true for pair in some])
    return np.asarray(np.linalg.solve(design.T @ design + np.diag(held), design.T @ true), float)


def shipped(known: Sequence[Together]) -> Mapping[str, Mapping[str, Any]]:
    """Return the law of each GPU, for two jobs that were in no measurement."""
    return {gpu: _law([p for p in known if p.gpu == gpu]) for gpu in _BARS}


def beside_others(folder: Path) -> tuple[Together, ...]:
    """Return what was measured but for jobs beside their own copies."""
    return tuple(one for one in measured(folder) if one.jobs[0] != one.jobs[1])


def _by_shares(folder: Path, gpu: str) -> Errors:
    """Return the errors of the rule, on the pairs whose shares are known."""
    known = [pair for pair in pairs(folder) if pair.gpu == gpu]
    guesses = [expected_speed(sum(pair.shares)) for pair in known]
    return errors(guesses, [pair.true for pair in known])


def _errors(off: Array) -> Errors:
    return errors(np.exp(off), np.ones(len(off)))


def _law(known: Sequence[Together]) -> Mapping[str, Any]:
    steps = [step_s for pair in known for step_s in pair.steps_s]
    return {
        "law": [round(float(one), 4) for one in fitted(known)],
        "factor": round(math.exp(quantile(_both_unseen(known))), 3),
        "shortest_s": round(min(steps), 4),
        "longest_s": round(max(steps), 3),
    }


def section(folder: Path) -> Section:
    """Return the scores of the law for each GPU, beside the rule of shares."""
    scores, coverages = [], []
    for gpu, bar in _BARS.items():
        known = [pair for pair in beside_others(folder) if pair.gpu == gpu]
        seen, unseen = _victim_unseen(known), _both_unseen(known)
        scores.append(
            Score(
                question=f"two jobs in turns on a {gpu}, the job unseen in both roles",
                cases=len(known),
                ours=_errors(seen),
                baseline=("1 / max(1, sum of shares)", _by_shares(folder, gpu)),
                bar=(bar, None),
                note=(
                    "the other job was measured beside others; with neither seen, as a plan has "
                    f"them: {_errors(unseen)}"
                ),
            )
        )
        coverages += [
            _coverage(f"in turns on a {gpu}, the job unseen", known, seen),
            _coverage(f"in turns on a {gpu}, neither seen", known, unseen),
        ]
    return Section(
        title="Taking turns on a GPU",
        scores=tuple(scores),
        coverages=tuple(coverages),
        notes=(
            """\
Gavel's pairs of training jobs, time-shared, by seconds a step alone. A job is a model with its
batch size; other batch sizes of the same model stay in the fit. The rule is scored on the pairs
whose shares are known. The law is used by `predict_sharing(mode="time-slicing")` for two jobs that
keep a K80 or a P100 busy; fleets are packed by shares.""",
        ),
    )


def _coverage(question: str, known: Sequence[Together], off: Array) -> Coverage:
    """Return how often an interval held that was calibrated without the job in question."""
    jobs = np.array([pair.jobs[0] for pair in known])
    inside = np.zeros(len(known), bool)
    for job in sorted(set(jobs)):
        inside[jobs == job] = np.abs(off[jobs == job]) <= quantile(off[jobs != job])
    return Coverage(question=question, share=float(np.mean(inside)), factor=math.exp(quantile(off)))


def _victim_unseen(known: Sequence[Together]) -> Array:
    """Return ln of predicted over true speed; the job's own pairs, in both roles, left out."""
    neighbours = sorted({pair.jobs[1] for pair in known})
    off = np.zeros(len(known))
    for job in sorted({pair.jobs[0] for pair in known}):
        rest = [pair for pair in known if job not in pair.jobs]
        found = fitted(rest, neighbours)
        _predict(
            known, [n for n, p in enumerate(known) if p.jobs[0] == job], neighbours, found, off
        )
    return off


def _both_unseen(known: Sequence[Together]) -> Array:
    """Return ln of predicted over true speed; the pairs of both jobs left out."""
    off = np.zeros(len(known))
    for number, pair in enumerate(known):
        rest = [one for one in known if not set(pair.jobs) & set(one.jobs)]
        _predict(known, [number], (), fitted(rest), off)
    return off


def _predict(
    known: Sequence[Together],
    asked: Sequence[int],
    neighbours: Sequence[str],
    found: Array,
    off: Array,
) -> None:
    some = [known[n] for n in asked]
    off[list(asked)] = _design(some, neighbours) @ found - np.log([pair.true for pair in some])


def _design(some: Sequence[Together], neighbours: Sequence[str]) -> Array:
    law = np.array([terms(*pair.steps_s) for pair in some])
    beside = [[float(pair.jobs[1] == name) for name in neighbours] for pair in some]
    return np.hstack([law, np.array(beside).reshape(len(some), len(neighbours))])
