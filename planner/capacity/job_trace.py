"""What was submitted to a pool of GPUs: when, for how long, how many GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pricing.errors import InputError

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedJob:
    """One job of a trace.

    Attributes:
        submit_s: when it was submitted, seconds from any fixed moment.
        duration_s: how long it ran, seconds, > 0.
        gpus: GPUs that it held, >= 1.
        limit_s: how long its user said it would run at most, seconds; None: not said.
    """

    submit_s: float
    duration_s: float
    gpus: int
    limit_s: float | None = None

    def __post_init__(self) -> None:
        if not (self.duration_s > 0 and self.gpus >= 1):
            raise InputError(
                f"a job of {self.duration_s:g} s on {self.gpus} GPUs cannot be replayed."
            )

    @property
    def expected_s(self) -> float:
        """How long a scheduler would expect it to run: its limit, else as long as it did."""
        return self.duration_s if self.limit_s is None else max(self.limit_s, self.duration_s)


@dataclass(frozen=True, slots=True)
class JobTrace:
    """Jobs in order of their submission; the first one is submitted at second 0.

    Raises:
        InputError: there is no job.
    """

    jobs: tuple[TracedJob, ...]

    def __post_init__(self) -> None:
        if not self.jobs:
            raise InputError("the trace holds no job that ran on a GPU.")

    @property
    def span_s(self) -> float:
        """From the first submission to the last one, in seconds, at least a second."""
        return max(self.jobs[-1].submit_s, 1.0)

    @property
    def load_gpus(self) -> float:
        """GPUs that are busy on average while jobs are submitted: GPU-seconds over seconds."""
        return sum(job.duration_s * job.gpus for job in self.jobs) / self.span_s

    @property
    def widest(self) -> int:
        """The most GPUs that one job holds."""
        return max(job.gpus for job in self.jobs)

    def only(self, fewest: int, most: int) -> "JobTrace":
        """Return the jobs that hold so many GPUs.

        Raises:
            InputError: there is none.
        """
        kept = [job for job in self.jobs if fewest <= job.gpus <= most]
        if not kept:
            raise InputError(f"no job of the trace holds {fewest} to {most} GPUs.")
        return ordered(kept)


def ordered(jobs: Sequence[TracedJob]) -> JobTrace:
    """Return a trace of jobs in any order, with the first submission at second 0."""
    first = min((job.submit_s for job in jobs), default=0.0)
    moved = (
        TracedJob(
            submit_s=job.submit_s - first,
            duration_s=job.duration_s,
            gpus=job.gpus,
            limit_s=job.limit_s,
        )
        for job in jobs
    )
    return JobTrace(tuple(sorted(moved, key=lambda job: job.submit_s)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReading:
    """What a file of jobs holds.

    Attributes:
        trace: its jobs.
        rows: rows of the file, header left out.
        dropped: rows that cannot be replayed, by reason.
        waits_s: how long each job really waited, where the file has submission and start.
    """

    trace: JobTrace
    rows: int
    dropped: Mapping[str, int]
    waits_s: tuple[float, ...]
