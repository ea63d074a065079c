"""Finds how many workers end the wait for batches, by trying more of them while the program runs.

One number after another, each over the same count of rounds; no batch is left out or read for
nothing. It ends where the program waits for less than a twentieth of a step, or where more workers
do not make it faster.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .certificate import Evidence

NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)
_ROUNDS = 24  # that count, at least: our choice
_ENOUGH = 0.05  # of a step that may be waited for
_GAIN = 0.05  # faster than with fewer, or it is not worth its workers
_PATIENCE = 2  # numbers that gained nothing, until it is over


class Search:
    """What was tried of one loader, and what comes next.

    Args:
        evidence: of its batches without workers.

    Attributes:
        workers: how many it has now, or gets next.
        over: whether the number is found.
        changed: whether `workers` is another number than that of the workers that run.
        tried: number, seconds of a step, seconds of it that were waited.
        why: what ended it, in words.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.workers = NUMBERS[0]
        self.over = self.changed = False
        self.tried = [(0, evidence.round_typical_s, evidence.fetch_typical_s)]
        self.why = ""
        self._begin()

    def _begin(self) -> None:
        self._seen = 0
        self._step_s = self._wait_s = 0.0

    def refused(self) -> None:
        """Take that there is no room for so many workers."""
        self._choose("there is no room for %d" % self.workers)

    def took(self, round_s: float, wait_s: float) -> None:
        """Take a round of the program's loop, and what of it was waited."""
        if self.over or self.changed:
            return
        self._seen += 1
        # They began together: their first rounds are of empty hands, and batches come in bursts.
        settle = 2 * self.workers + 2
        if self._seen <= settle:
            return
        self._step_s += round_s
        self._wait_s += wait_s
        counted = -(-_ROUNDS // self.workers) * self.workers
        if self._seen == settle + counted:
            self.tried.append((self.workers, self._step_s / counted, self._wait_s / counted))
            self._go_on()

    def started(self) -> None:
        """Take that as many workers run as it says."""
        self.changed = False
        self._begin()

    def _go_on(self) -> None:
        workers, step_s, wait_s = self.tried[-1]
        if wait_s <= _ENOUGH * step_s:
            self._choose("the wait has ended")
        elif workers == NUMBERS[-1]:
            self._choose("more were not tried")
        elif self._since_gain() >= _PATIENCE:
            self._choose("more make it no faster")
        else:
            self.workers = NUMBERS[NUMBERS.index(workers) + 1]
            self.changed = True

    def _since_gain(self) -> int:
        """Return how many numbers in a row were not faster than the best before them."""
        best_s, since = self.tried[0][1], 0
        for _, step_s, _ in self.tried[1:]:
            since = 0 if step_s < best_s * (1.0 - _GAIN) else since + 1
            best_s = min(best_s, step_s)
        return since

    def _choose(self, why: str) -> None:
        """Take the fewest workers that are as fast as the fastest."""
        running = self.tried[-1][0]
        best_s = min(step_s for _, step_s, _ in self.tried)
        fast = [n for n, step_s, _ in self.tried if step_s * (1.0 - _GAIN) <= best_s]
        self.workers = min(fast)
        self.over, self.why = True, why
        self.changed = self.workers != running

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        told = ["%d: %.3g ms (%.3g waited)" % (n, s * 1e3, w * 1e3) for n, s, w in self.tried]
        return "num_workers %d found, %s; a step by workers: %s" % (
            self.workers,
            self.why,
            ", ".join(told),
        )

    def trials(self) -> list[dict[str, Any]]:
        """Return what was tried, as events tell it."""
        return [
            {
                "setting": "num_workers",
                "value": workers,
                "step_s": round(step_s, 9),
                "wait_s": round(wait_s, 9),
                "chosen": self.over and workers == self.workers,
            }
            for workers, step_s, wait_s in self.tried
        ]
