"""How a candidate runs on its machines: spread over GPUs, what it survives, what is set there."""

from planner.actions.settings import (
    MachineSettings,
    PlannedRun,
    machine_settings,
    profiled_run,
    today_settings,
)
from planner.baseline.baseline import gpu_memory_gib
from planner.models.failures import survival
from planner.options.candidate import Candidate
from planner.options.context import JobContext, gpus_used, measured_cores
from planner.options.parallelism import Distribution, distribution
from planner.prediction.layout import Layout
from pricing.hardware import gpus


def how_it_runs(
    candidate: Candidate, context: JobContext, actions: tuple[str, ...]
) -> tuple[Distribution | None, MachineSettings]:
    """Return how one copy of the job spreads over the machines, and what to set on each.

    Args:
        candidate: the candidate.
        context: of the job.
        actions: codes that the option names.
    """
    run = _run(candidate, context)
    spread = _spread(candidate, context, run)
    found = machine_settings(
        actions,
        context.signals,
        gpus()[candidate.offer.gpu],
        run,
        context.applying,
        nnodes=spread.nnodes if spread else "",
    )
    return spread, found


def how_it_runs_today(context: JobContext) -> MachineSettings:
    """Return how the job runs today, and what each action would set there."""
    hours, asked = context.work.hours.mid, context.asked
    run = profiled_run(context.profile, hours, asked.checkpoints)
    return today_settings(context.signals, run, context.applying)


def _run(candidate: Candidate, context: JobContext) -> PlannedRun:
    working = max(1, gpus_used(candidate.offer, context))
    interrupted = candidate.interruptions
    spot_up_s = None if interrupted is None else interrupted.mean_s
    held = 1.0 if candidate.tenancy is None else candidate.tenancy.held / candidate.tenancy.of
    return PlannedRun(
        gpus=working,
        nodes=max(1, candidate.count // candidate.copies),
        vcpus=_cores(candidate, context, held),
        needs=survival(working, candidate.hours.mid, context.asked.checkpoints, spot_up_s),
    )


def _cores(candidate: Candidate, context: JobContext, held: float) -> float | None:
    """Return the threads of one machine for the job: of today's size at most those measured."""
    vcpus, measured = candidate.offer.vcpus, measured_cores(candidate.offer, context)
    known = [cores for cores in (vcpus and vcpus * held, measured) if cores]
    return min(known, default=None)


def _spread(candidate: Candidate, context: JobContext, run: PlannedRun) -> Distribution | None:
    offer = candidate.offer
    layout = Layout.of(offer, run.nodes, run.gpus)
    return distribution(context.profile, layout, memory_gib=gpu_memory_gib(offer), needs=run.needs)
