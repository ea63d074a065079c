"""How long steps took: counts by length, which add up over lines, processes and restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import floor, log2
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# As the probe writes them (its timing/tally.py): bucket b holds 2**(b/16) to 2**((b+1)/16) s.
BUCKETS = 16
_SHORTEST_S = 1e-6


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Lengths of steps without evaluation and saving, each to within its bucket of 4.4 %.

    Attributes:
        counts: number of steps by bucket.
        longest_s: the longest, exactly; None without any.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    longest_s: float | None = None

    @property
    def n(self) -> int:
        """The number of steps."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> float | None:
        """Return the length that a share of the steps does not exceed, seconds; None without any.

        The middle of its bucket, so it is within 2.2 % of the true one; never above the longest.
        """
        rank, seen = share * self.n, 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank and self.longest_s is not None:
                return min(_middle_s(bucket), self.longest_s)
        return None

    def from_length(self, length_s: float) -> tuple[int, float]:
        """Return the number of steps of this length and more, and their sum, seconds.

        A bucket counts by its middle.
        """
        long = {b: n for b, n in self.counts.items() if _middle_s(b) >= length_s}
        longest_s = self.longest_s or 0.0
        total_s = sum(min(_middle_s(b), longest_s) * n for b, n in long.items())
        return sum(long.values()), total_s


def add_up(parts: Iterable[StepTimes]) -> StepTimes:
    """Return the steps of all parts, in whatever order they come."""
    counts: Counter[int] = Counter()
    longest_s: float | None = None
    for part in parts:
        counts.update(part.counts)
        if part.longest_s is not None:
            longest_s = part.longest_s if longest_s is None else max(longest_s, part.longest_s)
    return StepTimes(dict(sorted(counts.items())), longest_s)


def of_line(line: Mapping[str, Any]) -> StepTimes:
    """Return the lengths in one line of the probe; empty where they are unknown.

    A line without lengths, as older probes wrote, counts its steps at their mean.
    """
    n, step_s, longest_s = int(line.get("n") or 0), line.get("step_s"), line.get("longest_s")
    if step_s is None or n <= 0:
        return StepTimes()
    lengths = line.get("lengths")
    if lengths:
        return StepTimes({int(b): int(k) for b, k in lengths.items()}, longest_s)
    if longest_s is None:
        longest_s = max(0.0, step_s - (line.get("checkpoint_s") or 0.0)) / n
    return StepTimes({_bucket(longest_s): n}, longest_s)


def _bucket(length_s: float) -> int:
    return floor(log2(max(length_s, _SHORTEST_S)) * BUCKETS)


def _middle_s(bucket: int) -> float:
    return float(2.0 ** ((bucket + 0.5) / BUCKETS))
