"""What spot capacity adds to a job: lost work, restarts, checkpoints, and whether it ends in time.

How often machines are taken back comes from the user's availability trace, else from the provider's
published bucket; where neither is known, nothing is added and a warning says so. Wall time and
deadlines need a trace: without one, a job with a deadline is refused.

One job on N machines stops when any of them is taken: where they are taken independently of each
other, as a Poisson process of rate 1/M each, that is N times as often, every M/N. Machines of one
pool may also be taken together, which counts once; so the rare end keeps the rate of one machine.
"""

from dataclasses import dataclass

from planner.baseline.rejection import Reason
from planner.models.failures import checkpoint_every_s
from planner.models.interruption import (
    Availability,
    Billed,
    CheckpointCosts,
    expected_billed,
    mean_up_from_monthly_share,
    miss_probability,
    replay_starts,
)
from pricing.catalog.interruptions import interruptions
from pricing.catalog.offer import Offer
from pricing.errors import InputError

MOST_LIKELY_TO_MISS = 0.05
# The open bucket (> 20 % a month) has no upper end; half of the machines is taken for it.
_OPEN_END = 0.5
# No machine of a closed lowest bucket (< 5 %) may be taken back; a tenth of its end is taken.
_NEVER = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """Mean time between interruptions of one copy of a job, in seconds: rare, expected, often.

    Attributes:
        rare_s: at the low end of what is known.
        mean_s: expected.
        often_s: at the high end.
        checkpoints: what one costs.
        interval_s: of work between checkpoints, as it is set on the machine.
        basis: where the rate comes from.
    """

    rare_s: float
    mean_s: float
    often_s: float
    checkpoints: CheckpointCosts
    interval_s: float
    basis: str

    def billed(self, work_h: float, end: str) -> Billed:
        """Return the billed time of so many hours of work at one end: low, mid or high cost."""
        mean_up_s = {"low": self.rare_s, "mid": self.mean_s, "high": self.often_s}[end]
        return expected_billed(work_h * 3600.0, mean_up_s, self.checkpoints, self.interval_s)


def rate(
    offer: Offer,
    trace: Availability | None,
    checkpoints: CheckpointCosts,
    gpus: int,
    machines: int = 1,
) -> Interruptions | None:
    """Return how often a job on a spot offer is interrupted; None where that is not known.

    Args:
        offer: spot capacity.
        trace: of one machine; None: the provider's published bucket counts.
        checkpoints: what one costs.
        gpus: at work in one copy of the job, >= 1; they fail, too.
        machines: that one copy of the job stands on, >= 1; it stops when any of them is taken.
    """
    if trace is not None:
        up_s = trace.mean_up_s
        if up_s is None:
            return None
        # The rate of one half of a trace predicts billed hours of the other within 8 % (median).
        return Interruptions(
            rare_s=up_s * 2.0,
            mean_s=up_s / machines,
            often_s=up_s / 2.0 / machines,
            checkpoints=checkpoints,
            interval_s=checkpoint_every_s(gpus, checkpoints, up_s / machines),
            basis=f"availability trace: {up_s / 3600.0:.1f} h between interruptions"
            + _any_of(machines),
        )
    bucket = interruptions(offer)
    if bucket is None:
        return None
    high = bucket.high if bucket.high is not None else _OPEN_END
    low = bucket.low or high * _NEVER
    shares = (low, (bucket.low + high) / 2.0, high)
    rare_s, mean_s, often_s = (mean_up_from_monthly_share(share) for share in shares)
    return Interruptions(
        rare_s=rare_s,
        mean_s=mean_s / machines,
        often_s=often_s / machines,
        checkpoints=checkpoints,
        interval_s=checkpoint_every_s(gpus, checkpoints, mean_s / machines),
        basis=f"{bucket.text} of machines interrupted a month ({bucket.source}, {bucket.as_of})"
        + _any_of(machines),
    )


def _any_of(machines: int) -> str:
    return f", any of {machines} stops the job" if machines > 1 else ""


def misses_deadline(
    work_h: float,
    trace: Availability | None,
    checkpoints: CheckpointCosts,
    deadline_h: float | None,
    gpus: int,
) -> tuple[Reason, str] | None:
    """Return why spot cannot keep a deadline; None where it can, or none is asked for."""
    if deadline_h is None:
        return None
    if trace is None:
        return "deadline", "when spot capacity comes back is unknown; give a trace (--spot-trace)"
    up_s = trace.mean_up_s or len(trace.up) * trace.tick_s
    runs = replay_starts(
        trace,
        work_h * 3600.0,
        checkpoints,
        interval_s=checkpoint_every_s(gpus, checkpoints, up_s),
    )
    missed = miss_probability(runs, deadline_h * 3600.0)
    if missed <= MOST_LIKELY_TO_MISS:
        return None
    return "deadline", f"{missed:.0%} chance to miss the {deadline_h:.3g} h deadline on spot"


def check_ends(found: Interruptions, work_h: float) -> tuple[Reason, str] | None:
    """Return why the work never ends under these interruptions; None when it does."""
    try:
        found.billed(work_h, "high")
    except InputError as error:
        return "purchase", error.problems[0]
    return None
