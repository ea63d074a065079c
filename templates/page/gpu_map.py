"""The map of a plan's GPUs: machines as boxes, GPUs as cells, today and as advised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from templates.language.translate import _
from templates.report_text import machine_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.plan.bill import RentedOffer
    from planner.plan.job import JobPlan
    from planner.plan.option import Baseline, Option
    from planner.plan.plan import Placement, Plan

_MOST_CELLS = 16  # of one job; more GPUs are counted in one cell


def _percent(share: float | UnsetType | None) -> int | None:
    return None if share is None or share is UNSET else round(100 * share)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A GPU on the map.

    Attributes:
        jobs: who runs on it; empty where it is free.
        percent: of the time that kernels run; None where it is not known.
        mode: how jobs share it; None for one alone.
        gpus: that the cell stands for.
        placement: its number in the plan; None where nobody is to share it.
    """

    jobs: tuple[str, ...]
    percent: int | None
    mode: str | None = None
    gpus: int = 1
    placement: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A machine on the map, or several alike: where it is rented, and its GPUs."""

    title: str
    cells: tuple[_Cell, ...]


def map_before(plan: Plan) -> list[Box]:
    """Return the machines of today."""
    return list(_today(plan.jobs))


def map_after(plan: Plan) -> list[Box]:
    """Return the machines as recommended: GPUs that are shared first, then each job's own."""
    boxes = list(_shared(plan.placements))
    own = [job for job in plan.jobs if job.placement is None]
    boxes += [_box(job, job.choice, UNSET) for job in own if job.choice is not None]
    return [*boxes, *_today([job for job in own if job.choice is None])]


def _shared(places: Iterable[Placement]) -> Iterator[Box]:
    """Yield machines of GPUs that are shared; GPUs are numbered on within one."""
    machine: list[Placement] = []
    for item in places:
        if machine and (item.offer != machine[0].offer or item.gpu <= machine[-1].gpu):
            yield _machine(machine)
            machine = []
        machine.append(item)
    if machine:
        yield _machine(machine)


def _machine(places: list[Placement]) -> Box:
    cells = tuple(
        _Cell(
            jobs=item.jobs,
            percent=_percent(item.busy_fraction),
            mode=item.mode,
            placement=item.id if item.mode else None,
        )
        for item in places
    )
    return Box(title=_title(places[0].offer, 1), cells=cells)


def _today(jobs: Iterable[JobPlan]) -> Iterator[Box]:
    """Yield today's machines; jobs of one machine stand in one box, with what none holds."""
    by_name = {job.name: job for job in jobs}
    while by_name:
        job = by_name.pop(next(iter(by_name)))
        share = job.baseline.share
        if share is None:
            yield _box(job, job.baseline, job.busy_fraction)
            continue
        neighbors = [by_name.pop(name) for name in share.beside if name in by_name]
        cells = [cell for item in (job, *neighbors) for cell in _cells_of(item)]
        offer = job.baseline.offer
        # Without a neighbour that is known the rest of the machine is somebody else's.
        gpus = round(offer.gpu_count) if offer and share.beside else 0
        nobody = [_Cell(jobs=(), percent=0)] * max(0, gpus - sum(cell.gpus for cell in cells))
        yield Box(title=_title(job.baseline.offer, 1), cells=(*cells, *nobody))


def _cells_of(job: JobPlan) -> list[_Cell]:
    gpus = job.baseline.share.held if job.baseline.share else 1
    return _cells(job, max(1, round(gpus)), job.busy_fraction)


def _box(job: JobPlan, way: Baseline | Option, busy: float | UnsetType) -> Box:
    gpus = max(1, round(way.offer.gpu_count * way.count)) if way.offer else way.count
    return Box(title=_title(way.offer, way.count), cells=tuple(_cells(job, gpus, busy)))


def _cells(job: JobPlan, gpus: int, busy: float | UnsetType) -> list[_Cell]:
    percent = _percent(busy)
    if gpus > _MOST_CELLS:
        return [_Cell(jobs=(job.name,), percent=percent, gpus=gpus)]
    return [_Cell(jobs=(job.name,), percent=percent)] * gpus


def _title(offer: RentedOffer | None, count: int) -> str:
    """Return where a machine is rented, and the GPUs of one."""
    if offer is None:
        return _("a machine without a known price")
    gpus = f"{offer.gpu_count:g}x {offer.gpu}" if offer.gpu_count != 1 else offer.gpu
    return f"{machine_name(offer, count)}: {gpus}"
