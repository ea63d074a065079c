"""Copies of a service by the hour."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Copies of a service by the hour.

    Attributes:
        by_hour: copies in each hour of a day (24) or of a week from Monday 0 h (168); one number
            where they are the same at any time.
        starts: copies started over that day or week.
        start_s: from a new machine to a copy that answers.
        paid: copies that are paid for at a time, on average, their starts included.
        busiest_fraction: the largest share of its GPU's time that a copy takes in any hour, mean.
        latency_ms: the longest in any hour, by the strictest percentile measured; None where
            latency was not measured.
        limit: what sets how much one copy can answer, in words.
    """

    by_hour: tuple[int, ...]
    starts: int
    start_s: float
    paid: float
    busiest_fraction: float
    latency_ms: float | None
    limit: str

    @property
    def peak(self) -> int:
        """The most copies at any time."""
        return max(self.by_hour)

    @property
    def fewest(self) -> int:
        """The fewest copies at any time."""
        return min(self.by_hour)
