"""Energy and carbon beside the dollars: from measured board power, else unknown.

kWh = mean board power x GPUs at work x hours / 1000, of the boards alone unless the host's share of
a node's power and the site's PUE are given; a GPU that is paid for and not used, in the next larger
machine sold, draws its idle power. kgCO2e = kWh x grid intensity / 1000, where that is
given. The nameplate power is not a stand-in: measured jobs drew 0.57 of it on average, a quarter of
them under 0.28 (Zeus traces).

Power on another GPU: the same fraction of (TDP - idle) as measured today (planner/models/power.py);
idle power that nobody measured is taken as the typical share of TDP of such boards.
"""

from dataclasses import dataclass

from planner.actions import ACTIONS
from planner.baseline.site import Site
from planner.models.estimate import Estimate
from planner.models.power import idle_w, other_gpu_factor
from planner.options.candidate import Candidate
from planner.options.context import JobContext, gpus_used, idle_gpus
from planner.profile.model import Profile
from pricing.hardware import Gpu, find

_MEASURED = "power.board_w"
_COUNTED = "energy.total_j"
# Of actions that change no code: this one leaves the GPU fewer idle hours.
_LESS_IDLE = "idle-shutdown"
# These spread the same work over GPUs, so that none is busier for it.
_SPREADING = ("data-parallel", "sharded-data-parallel", "tensor-parallel", "pipeline-parallel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What a period takes.

    Attributes:
        kwh: None where power was not measured, or cannot be carried over to another GPU.
        kgco2e: None where the energy or the grid's intensity is unknown.
    """

    kwh: Estimate | None = None
    kgco2e: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Power:
    """Mean power of one GPU board, and where it comes from."""

    low_w: float
    mid_w: float
    high_w: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Boards:
    """The boards of an option, of all replicas together.

    Attributes:
        working: GPUs that work.
        idle_w: drawn by all of those that do not.
    """

    working: int
    idle_w: float = 0.0


def energy_today(profile: Profile, hours: Estimate, site: Site, replicas: int = 1) -> Energy:
    """Return the energy of the period on the measured hardware, of so many copies of the job."""
    power = _measured(profile)
    return (
        Energy()
        if power is None
        else _energy(power, _Boards(working=profile.gpu_count * replicas), hours, site)
    )


def energy_of(candidate: Candidate, actions: tuple[str, ...], context: JobContext) -> Energy:
    """Return the energy of the period on a candidate.

    Args:
        candidate: its GPU, machines, speed and hours.
        actions: codes of all that changes.
        context: what was measured, where it runs today, what is known of the place.
    """
    profile, site, hours = context.profile, context.asked.site, candidate.hours
    measured, boards = _measured(profile), _boards(candidate, context)
    if measured is None or boards is None:
        return Energy()
    copies = candidate.scaling
    busier = copies is not None or any(_makes_busier(code) for code in actions)
    today = find(profile.hardware.gpu, memory_gib=profile.hardware.gpu_memory_gib)
    there = find(candidate.offer.gpu)
    if today is not None and there == today and not busier:
        return _energy(measured, boards, hours, site)
    today_h = context.baseline.hours.mid * context.work.replicas / candidate.copies
    work = max(1.0, candidate.speed.high, today_h / max(hours.low, 1e-9)) if busier else 1.0
    power = _carried(measured, today, there, work)
    return Energy() if power is None else _energy(power, boards, hours, site)


def _boards(candidate: Candidate, context: JobContext) -> _Boards | None:
    """Return the boards that draw power; None for a slice of a GPU, or where idling is unknown."""
    offer, replicas = candidate.offer, candidate.copies
    if context.baseline.has_size(offer):
        return _Boards(working=context.profile.gpu_count * replicas)
    if offer.gpu_count < 1:
        return None
    working, idle = gpus_used(offer, context), idle_gpus(offer, context)
    gpu = find(offer.gpu)
    idles_at_w = 0.0 if not idle else None if gpu is None else idle_w(gpu)
    if idles_at_w is None:
        return None
    return _Boards(working=working * replicas, idle_w=idles_at_w * idle * replicas)


def _makes_busier(code: str) -> bool:
    return code == _LESS_IDLE or (ACTIONS[code].kind != "structural" and code not in _SPREADING)


def _measured(profile: Profile) -> _Power | None:
    """Return the mean power of one board: by its energy counter, else by its power readings."""
    joules = profile.mean(_COUNTED)
    duration_s = profile.window.duration_s if profile.window else None
    if joules and duration_s:
        power_w, basis = joules / duration_s, "energy counters over the window"
    else:
        mean_w = profile.mean(_MEASURED)
        if mean_w is None:
            return None
        power_w, basis = mean_w, "measured board power"
    return _Power(low_w=power_w, mid_w=power_w, high_w=power_w, basis=basis)


def _carried(measured: _Power, today: Gpu | None, there: Gpu | None, work: float) -> _Power | None:
    """Return the power on a GPU from today's fraction of (TDP - idle).

    Args:
        measured: on today's GPU.
        today: the GPU measured.
        there: the GPU of the option.
        work: the most by which it may be busier than today, >= 1.
    """
    here, other = _range_w(today), _range_w(there)
    if here is None or other is None:
        return None
    fraction = min(1.0, max(0.0, (measured.mid_w - here[0]) / (here[1] - here[0])))
    most = min(1.0, fraction * work)
    factor = 1.0 if there == today else other_gpu_factor()
    low_w, mid_w, high_w = (
        other[0] + share * (other[1] - other[0])
        for share in (fraction, (fraction + most) / 2.0, most)
    )
    basis = f"{measured.basis}, carried over as the same fraction of (TDP - idle)"
    if work > 1.0:
        basis += ", up to that times the speed-up, as the GPU is busier"
    return _Power(
        low_w=max(other[0], low_w / factor),
        mid_w=mid_w,
        high_w=min(other[1], high_w * factor),
        basis=basis,
    )


def _range_w(gpu: Gpu | None) -> tuple[float, float] | None:
    """Return idle power and TDP of a GPU; None where either is unknown."""
    idle = None if gpu is None else idle_w(gpu)
    if gpu is None or idle is None or gpu.tdp_w is None:
        return None
    return idle, gpu.tdp_w


def _energy(power: _Power, boards: _Boards, hours: Estimate, site: Site) -> Energy:
    low_w, mid_w, high_w = (
        one_w * boards.working + boards.idle_w for one_w in (power.low_w, power.mid_w, power.high_w)
    )
    scale = site.factor / 1000.0
    kwh = Estimate(
        low=low_w * hours.low * scale,
        mid=mid_w * hours.mid * scale,
        high=high_w * hours.high * scale,
        basis=f"{power.basis}; {site.covers}",
    )
    grid = site.grid_g_per_kwh
    if grid is None:
        return Energy(kwh=kwh)
    kg = grid / 1000.0
    carbon = Estimate(
        low=kwh.low * kg,
        mid=kwh.mid * kg,
        high=kwh.high * kg,
        basis=f"{kwh.basis}; {grid:g} gCO2e/kWh as given",
    )
    return Energy(kwh=kwh, kgco2e=carbon)
