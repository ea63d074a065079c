"""An option: an offer with actions, its hours, its bill, its energy, and how the job runs there.

Energy and carbon beside the dollars: from measured board power, else unknown.
kWh = mean board power x GPUs at work x hours / 1000, of the boards alone unless the host's share of
a node's power and the site's PUE are given; a GPU that is paid for and not used, in the next larger
machine sold, draws its idle power. kgCO2e = kWh x grid intensity / 1000, where that is
given. The nameplate power is not a stand-in: measured jobs drew 0.57 of it on average, a quarter of
them under 0.28 (Zeus traces).

Power on another GPU: the same fraction of (TDP - idle) as measured today (planner/models/power.py);
idle power that nobody measured is taken as the typical share of TDP of such boards.

How a training job spreads over several GPUs, and how it survives their failures.
Data parallel where model, gradients and optimiser fit one GPU; sharded (FSDP) where they do not and
links are fast; tensor parallel inside a machine and pipeline between machines where the network is
slow. What it needs to survive failures is worked out in `planner.models.interruption`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from planner.actions import ACTIONS
from planner.actions.settings import (
    MachineSettings,
    PlannedRun,
    Settings,
    machine_settings,
    on_machine,
    profiled_run,
    settings_by_action,
    today_settings,
)
from planner.choice.baseline import gpu_memory_gib
from planner.choice.candidate import Candidate
from planner.choice.context import JobContext, measured_cores
from planner.choice.requirements import Site
from planner.models.communication import link_class
from planner.models.copies import Scaling
from planner.models.costs import Benefit, Move, Saving, UsdRange, WorkCost
from planner.models.draws import Source
from planner.models.estimate import Estimate, exactly
from planner.models.interruption import Distribution, Survival, survival
from planner.models.power import EnergyUse, idle_w, other_gpu_factor
from planner.prediction.layout import Layout
from planner.profile.kinds import Parallelism
from planner.profile.model import Profile
from planner.signals.thresholds import NODE_NETWORK_GBPS, USABLE
from pricing.billing.quote import Quote
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu, find
from pricing.message import Message, join

_MEASURED = "power.board_w"
_COUNTED = "energy.total_j"
# Of actions that change no code: this one leaves the GPU fewer idle hours.
_LESS_IDLE = "idle-shutdown"
# These spread the same work over GPUs, so that none is busier for it.
_SPREADING = ("data-parallel", "sharded-data-parallel", "tensor-parallel", "pipeline-parallel")


def energy_today(profile: Profile, hours: Estimate, site: Site, replicas: int = 1) -> EnergyUse:
    """Return the energy of the period on the measured hardware, of so many copies of the job."""
    power = _measured(profile)
    return (
        EnergyUse()
        if power is None
        else _energy(power, hours, site, working=profile.gpu_count * replicas)
    )


def energy_of(candidate: Candidate, context: JobContext) -> EnergyUse:
    """Return the energy of the period on a candidate.

    Args:
        candidate: its GPU, machines, speed and hours.
        context: what was measured, where it runs today, what is known of the place.
    """
    profile, site, hours = context.profile, context.asked.site, candidate.hours
    measured, boards = _measured(profile), _boards(candidate, context)
    if measured is None or boards is None:
        return EnergyUse()
    working, idle_w = boards
    copies = candidate.scaling
    busier = copies is not None or any(
        code == _LESS_IDLE or (ACTIONS[code].kind != "structural" and code not in _SPREADING)
        for code in candidate.codes
    )
    today = find(profile.hardware.gpu, memory_gib=profile.hardware.gpu_memory_gib)
    gpu = find(candidate.offer.gpu)
    if today is not None and gpu == today and not busier:
        return _energy(measured, hours, site, working=working, idle_w=idle_w)
    today_h = context.baseline.hours.mid * context.work.replicas / candidate.copies
    work = max(1.0, candidate.speed.high, today_h / max(hours.low, 1e-9)) if busier else 1.0
    power = _carried(measured, today, gpu, work)
    if power is None:
        return EnergyUse()
    return _energy(power, hours, site, working=working, idle_w=idle_w)


def _boards(candidate: Candidate, context: JobContext) -> tuple[int, float] | None:
    """Return the boards of all replicas that work, and the watts that all others draw idle.

    None for a slice of a GPU, or where idling is unknown.
    """
    offer, replicas = candidate.offer, candidate.copies
    if context.baseline.has_size(offer):
        return context.profile.gpu_count * replicas, 0.0
    if offer.gpu_count < 1:
        return None
    working, idle = candidate.size.used, candidate.size.idle
    gpu = find(offer.gpu)
    idles_at_w = 0.0 if not idle else None if gpu is None else idle_w(gpu)
    if idles_at_w is None:
        return None
    return working * replicas, idles_at_w * idle * replicas


def _measured(profile: Profile) -> Estimate | None:
    """Return the mean power of one board, W: by its energy counter, else by its power readings.

    Idle hours before and after the job are in it, at the board's idle power.
    """
    joules = profile.mean(_COUNTED)
    duration_s = profile.window.duration_s if profile.window else None
    if joules and duration_s:
        power_w, basis = joules / duration_s, Message("energy.counters")
    else:
        mean_w = profile.mean(_MEASURED)
        if mean_w is None:
            return None
        power_w, basis = mean_w, Message("energy.measured")
    around, gpu = profile.idle_around_fraction, find(profile.hardware.gpu)
    if around and gpu is not None:
        power_w += around * ((idle_w(gpu) or 0.0) - power_w)
    return exactly(power_w, basis)


def _carried(
    measured: Estimate, today: Gpu | None, target: Gpu | None, work: float
) -> Estimate | None:
    """Return the power on a GPU from today's fraction of (TDP - idle).

    Args:
        measured: on today's GPU.
        today: the GPU measured.
        target: the GPU of the option.
        work: the most by which it may be busier than today, >= 1.
    """
    range_now, range_there = _range_w(today), _range_w(target)
    if range_now is None or range_there is None:
        return None
    fraction = min(1.0, max(0.0, (measured.mid - range_now[0]) / (range_now[1] - range_now[0])))
    most = min(1.0, fraction * work)
    factor = 1.0 if target == today else other_gpu_factor()
    low_w, mid_w, high_w = (
        range_there[0] + share * (range_there[1] - range_there[0])
        for share in (fraction, (fraction + most) / 2.0, most)
    )
    code = "energy.carried-busier" if work > 1.0 else "energy.carried"
    basis = Message(code, basis=measured.basis)
    return Estimate(
        low=max(range_there[0], low_w / factor),
        mid=mid_w,
        high=min(range_there[1], high_w * factor),
        basis=basis,
    )


def _range_w(gpu: Gpu | None) -> tuple[float, float] | None:
    """Return idle power and TDP of a GPU; None where either is unknown."""
    idle = None if gpu is None else idle_w(gpu)
    if gpu is None or idle is None or gpu.tdp_w is None:
        return None
    return idle, gpu.tdp_w


def _energy(
    power: Estimate, hours: Estimate, site: Site, *, working: int, idle_w: float = 0.0
) -> EnergyUse:
    """Return the energy of boards that work, each at that power [W], and of those that idle."""
    low_w, mid_w, high_w = (
        board_w * working + idle_w for board_w in (power.low, power.mid, power.high)
    )
    scale = site.factor / 1000.0
    kwh = Estimate(
        low=low_w * hours.low * scale,
        mid=mid_w * hours.mid * scale,
        high=high_w * hours.high * scale,
        basis=join((power.basis, site.covers)),
    )
    grid = site.grid_g_per_kwh
    if grid is None:
        return EnergyUse(kwh=kwh)
    carbon = kwh.times(grid / 1000.0, join((kwh.basis, Message("energy.grid", g=grid))))
    return EnergyUse(kwh=kwh, kgco2e=carbon)


# Weights, gradients and two moments of Adam, in single precision or AMP: bytes a parameter.
_STATE_BYTES = 16.0
_GIB = 2.0**30


def distribution(
    profile: Profile, layout: Layout, *, memory_gib: float, needs: Survival
) -> Distribution | None:
    """Return how a training job would run on a layout; None for other jobs and for one GPU.

    Args:
        profile: what was measured.
        layout: the GPUs.
        memory_gib: that a process can use on one of them.
        needs: what it takes to survive failures there.
    """
    if not profile.job.kind.trains or layout.gpu_count == 1 or profile.works_apart:
        return None
    mode, why = _mode(profile, layout, memory_gib)
    nodes = layout.machines
    minimum = nodes - 1 if nodes > 1 and mode.survives_a_lost_machine else nodes
    return Distribution(
        mode=mode,
        why=why,
        failures=needs.failures,
        max_restarts=needs.max_restarts,
        nnodes=f"{minimum}:{nodes}" if minimum < nodes else str(nodes),
        checkpoint_every_s=needs.checkpoint_every_s,
    )


def _mode(profile: Profile, layout: Layout, memory_gib: float) -> tuple[Parallelism, str]:
    job, room = profile.job, USABLE * memory_gib
    states = None if job.parameters is None else job.parameters * _STATE_BYTES / _GIB
    used_gib = profile.peak("mem.used_gib")
    is_replicated = not job.splits_the_model
    if states is None:
        if not is_replicated and job.parallelism is not None:
            return job.parallelism, Message("split.as-today")
        fits = used_gib is None or used_gib <= room
        return (Parallelism.DDP, Message("split.held-fits")) if fits else _sharded(layout)
    if max(states, used_gib or 0.0 if is_replicated else 0.0) <= room:
        return Parallelism.DDP, Message("split.fits", gib=states)
    if states / layout.gpu_count <= room:
        return _sharded(layout)
    return (Parallelism.PIPELINE, Message("split.exceeds", gib=states))


def _sharded(layout: Layout) -> tuple[Parallelism, str]:
    """Return how to split what one GPU cannot hold, by the links."""
    fast = link_class(layout.interconnect, layout.gpu_name) == "nvlink"
    network = layout.network_gbps
    if layout.machines == 1 or (network is not None and network >= NODE_NETWORK_GBPS):
        link = "NVLink" if fast else "PCIe"
        return Parallelism.FSDP, Message("split.sharded", link=link)
    if fast:
        return (Parallelism.TENSOR, Message("split.inside"))
    return Parallelism.PIPELINE, Message("split.stages")


def how_it_runs(
    candidate: Candidate, context: JobContext
) -> tuple[Distribution | None, MachineSettings, Mapping[str, Settings]]:
    """Return how one copy of the job spreads over the machines, and what to set on each.

    The last is what each action that applies there would set, by code.
    """
    run = _run(candidate, context)
    spread = _spread(candidate, context, run)
    signals = on_machine(context.signals, candidate.offer.card, run)
    values = settings_by_action(signals, run)
    trains, nnodes = context.profile.job.kind.trains, spread.nnodes if spread else ""
    machine = machine_settings(candidate.codes, values, run, trains=trains, nnodes=nnodes)
    return spread, machine, values


def how_it_runs_today(context: JobContext) -> tuple[MachineSettings, Mapping[str, Settings]]:
    """Return how the job runs today, and what each action would set there, by code."""
    hours, requirements = context.work.hours.mid, context.asked
    run = profiled_run(context.profile, hours, requirements.checkpoints)
    machine = today_settings(run, trains=context.profile.job.kind.trains)
    return machine, settings_by_action(context.signals, run)


def _run(candidate: Candidate, context: JobContext) -> PlannedRun:
    working = max(1, candidate.size.used)
    interrupted = candidate.interruptions
    spot_up_s = None if interrupted is None else interrupted.mean_s
    share = 1.0 if candidate.tenancy is None else candidate.tenancy.held / candidate.tenancy.of
    return PlannedRun(
        gpus=working,
        nodes=max(1, candidate.count // candidate.copies),
        vcpus=_cores(candidate, context, share),
        needs=survival(working, candidate.hours_mid, context.asked.checkpoints, spot_up_s),
    )


def _cores(candidate: Candidate, context: JobContext, share: float) -> float | None:
    """Return the threads of one machine for the job: those measured on today's."""
    vcpus, measured = candidate.offer.vcpus, measured_cores(candidate.offer, context)
    limits = [cores for cores in (vcpus and vcpus * share, measured) if cores]
    return measured if measured and share == 1.0 else min(limits, default=None)


def _spread(candidate: Candidate, context: JobContext, run: PlannedRun) -> Distribution | None:
    offer = candidate.offer
    layout = Layout.of(offer, run.nodes, run.gpus)
    return distribution(context.profile, layout, memory_gib=gpu_memory_gib(offer), needs=run.needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A way to run the job.

    Attributes:
        id: `o1`, `o2` ... in order of the objective; unique within the job.
        offer: what is rented.
        count: machines, of all replicas together.
        provisionable: whether this version can launch it.
        actions: codes of what changes against today.
        speed: speed-up over today.
        hours: hours of the period.
        quote: the bill at the expected hours.
        compared: the bill by which options are told apart (`Candidate.compared`).
        usd_range: the bill from the low to the high end of hours and price, what an old price may
            have risen by included.
        by_hours: what it may be for its hours alone.
        by_price: what it may be for the age of its price alone.
        by_source: what `by_hours` comes from; empty but for the option that is told most about.
        saves: against today, expected.
        work_cost: what an amount of work costs; None where work is not measured.
        energy: of the period.
        benefit: what changing to it is worth.
        move: what moving there costs once; None in the same provider's region.
        why: one sentence.
        interruptions_known: whether lost work on spot is in hours and bill.
        distribution: how training spreads over several GPUs; None for one GPU and other jobs.
        machine: what to set on each of its machines.
        settings: what each action that applies there would set, by code.
        scaling: copies by the hour; None where as many run as today, all the time.
    """

    id: str
    offer: Offer
    count: int
    provisionable: bool
    actions: tuple[str, ...]
    speed: Estimate
    hours: Estimate
    quote: Quote
    compared: Decimal
    usd_range: UsdRange
    by_hours: UsdRange
    by_price: UsdRange
    by_source: Mapping[Source, UsdRange]
    saves: Saving
    work_cost: WorkCost | None
    energy: EnergyUse
    benefit: Benefit
    move: Move | None
    why: str
    interruptions_known: bool = False
    distribution: Distribution | None = None
    machine: MachineSettings
    settings: Mapping[str, Settings]
    scaling: Scaling | None = None

    @property
    def cost(self) -> Decimal:
        """The expected bill, exact."""
        return self.quote.exact
