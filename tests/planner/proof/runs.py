"""Runs of one job that the tests hold against each other."""

import math
import random
from dataclasses import replace

from msgspec import structs

from planner.profile.model import Hardware, Job, Profile, Step, Work
from planner.proof.speed import MeasuredRun, StepRow

BEFORE = Profile(
    job=Job(name="train", kind="training", framework="pytorch", precision="fp32", batch_per_gpu=64),  # type: ignore[arg-type] # the word of a file
    hardware=Hardware(
        gpu="Tesla T4",
        gpu_count=1,
        provider="aws",
        instance_type="g4dn.xlarge",
        region="us-east-1",
    ),
    step=Step(count=4000, counted_by="optimizer", mean_s=0.2, p50_s=0.198, p95_s=0.23),
    work=Work(unit="sample", done=256000.0, rate_per_s=320.0),
)


def faster(profile: Profile, times: float) -> Profile:
    """Return the profile of a run that many times as fast."""
    step, work = profile.step or Step(), profile.work or Work()
    seconds = {
        name: value / times
        for name in ("mean_s", "p50_s", "p95_s")
        if (value := getattr(step, name)) is not None
    }
    return structs.replace(
        profile,
        step=structs.replace(step, **seconds),
        work=structs.replace(work, rate_per_s=(work.rate_per_s or 0.0) * times),
    )


def series(
    mean_s: float, rows: int = 400, *, hang: float = 0.6, seed: int = 1
) -> tuple[StepRow, ...]:
    """Return steps whose lengths follow an AR(1) of 5 % around a mean."""
    draw, x, found = random.Random(seed), 0.0, []  # noqa: S311 - no secret
    for row in range(rows):
        x = hang * x + draw.gauss(0.0, 0.05 * math.sqrt(1.0 - hang * hang))
        found.append(StepRow(step=10 * (row + 1), n=10, step_s=mean_s * math.exp(x)))
    return tuple(found)


def run(
    profile: Profile = BEFORE, steps: tuple[StepRow, ...] = (), name: str = "run"
) -> MeasuredRun:
    """Return a run as it is read."""
    return MeasuredRun(name=f"{name}.json", profile=profile, steps=steps)


def with_losses(
    steps: tuple[StepRow, ...], factor: float = 1.0, seed: int = 5
) -> tuple[StepRow, ...]:
    """Return the steps with a loss that falls as losses do, noisy by 2 %."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    return tuple(
        replace(row, loss=factor * (1.0 + 3.0 / math.sqrt(row.step)) * draw.gauss(1.0, 0.02))
        for row in steps
    )
