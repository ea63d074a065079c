"""How a candidate runs on its machines: spread over GPUs, what it survives, what is set there."""

from planner.actions.machine_settings import MachineSettings, machine_settings, today_settings
from planner.actions.settings import PlannedRun, profiled_run
from planner.baseline.baseline import gpu_memory_gib
from planner.models.failures import survival
from planner.options.candidate import Candidate
from planner.options.context import JobContext, gpus_used
from planner.options.parallelism import Distribution, distribution
from planner.prediction.layout import Layout
from pricing.hardware import gpus


def how_it_runs(
    draft: Candidate, case: JobContext, actions: tuple[str, ...]
) -> tuple[Distribution | None, MachineSettings]:
    """Return how one copy of the job spreads over the machines, and what to set on each.

    Args:
        draft: the candidate.
        case: of the job.
        actions: codes that the option names.
    """
    run = _run(draft, case)
    spread = _spread(draft, case, run)
    found = machine_settings(
        actions,
        case.signals,
        gpus()[draft.offer.gpu],
        run,
        nnodes=spread.nnodes if spread else "",
    )
    return spread, found


def how_it_runs_today(case: JobContext) -> MachineSettings:
    """Return how the job runs today, and what each action would set there."""
    hours = case.work.hours.mid
    return today_settings(case.signals, profiled_run(case.profile, hours, case.asked.checkpoints))


def _run(draft: Candidate, case: JobContext) -> PlannedRun:
    offer, working = draft.offer, max(1, gpus_used(draft.offer, case))
    held = 1.0 if draft.tenancy is None else draft.tenancy.held / draft.tenancy.of
    return PlannedRun(
        gpus=working,
        nodes=max(1, draft.count // case.work.replicas),
        vcpus=None if offer.vcpus is None else offer.vcpus * held,
        needs=survival(working, draft.hours.mid, case.asked.checkpoints),
    )


def _spread(draft: Candidate, case: JobContext, run: PlannedRun) -> Distribution | None:
    offer = draft.offer
    layout = Layout.of(offer, run.nodes, run.gpus)
    return distribution(case.profile, layout, memory_gib=gpu_memory_gib(offer), needs=run.needs)
