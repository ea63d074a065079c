"""Lays the GPUs of a fleet out: machines as boxes, GPUs as cells, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from templates.language.speech import say
from templates.report_text import place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.plan_document.bill import OfferDocument
    from planner.plan_document.document import PlacementDocument, PlanDocument
    from planner.plan_document.jobs import JobDocument
    from planner.plan_document.options import BaselineDocument, OptionDocument

_MOST_CELLS = 16  # of one job; more GPUs are counted in one cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
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
    cells: tuple[Cell, ...]


def before(plan: PlanDocument) -> list[Box]:
    """Return the machines of today."""
    return list(_today(plan.jobs))


def after(plan: PlanDocument) -> list[Box]:
    """Return the machines as recommended: GPUs that are shared first, then each job's own."""
    taken = {job.placement for job in plan.jobs} - {None}
    places = plan.fleet.recommended if plan.fleet else ()
    boxes = list(_shared(one for one in places if one.id in taken))
    own = [job for job in plan.jobs if job.placement is None]
    boxes += [_box(job, job.choice, None) for job in own if job.choice is not None]
    return [*boxes, *_today([job for job in own if job.choice is None])]


def _shared(places: Iterable[PlacementDocument]) -> Iterator[Box]:
    """Yield machines of GPUs that are shared; GPUs are numbered on within one."""
    machine: list[PlacementDocument] = []
    for one in places:
        if machine and (one.offer != machine[0].offer or one.gpu <= machine[-1].gpu):
            yield _machine(machine)
            machine = []
        machine.append(one)
    if machine:
        yield _machine(machine)


def _machine(places: list[PlacementDocument]) -> Box:
    cells = tuple(
        Cell(
            jobs=one.jobs,
            percent=_percent(one.busy_fraction),
            mode=one.mode,
            placement=one.id if one.mode else None,
        )
        for one in places
    )
    return Box(title=_title(places[0].offer, 1), cells=cells)


def _today(jobs: Iterable[JobDocument]) -> Iterator[Box]:
    """Yield today's machines; jobs of one machine stand in one box, with what none holds."""
    known = {job.name: job for job in jobs}
    while known:
        job = known.pop(next(iter(known)))
        share = job.baseline.share
        if share is None:
            yield _box(job, job.baseline, job.busy_fraction)
            continue
        beside = [known.pop(name) for name in share.beside if name in known]
        cells = [cell for one in (job, *beside) for cell in _held(one)]
        offer = job.baseline.offer
        # Without a neighbour that is known the rest of the machine is somebody else's.
        gpus = round(offer.gpu_count) if offer and share.beside else 0
        nobody = [Cell(jobs=(), percent=0)] * max(0, gpus - sum(cell.gpus for cell in cells))
        yield Box(title=_title(job.baseline.offer, 1), cells=(*cells, *nobody))


def _held(job: JobDocument) -> list[Cell]:
    held = job.baseline.share.held if job.baseline.share else 1
    return _cells(job, max(1, round(held)), job.busy_fraction)


def _box(job: JobDocument, way: BaselineDocument | OptionDocument, busy: float | None) -> Box:
    gpus = max(1, round(way.offer.gpu_count * way.count)) if way.offer else way.count
    return Box(title=_title(way.offer, way.count), cells=tuple(_cells(job, gpus, busy)))


def _cells(job: JobDocument, gpus: int, busy: float | None) -> list[Cell]:
    percent = _percent(busy)
    if gpus > _MOST_CELLS:
        return [Cell(jobs=(job.name,), percent=percent, gpus=gpus)]
    return [Cell(jobs=(job.name,), percent=percent)] * gpus


def _title(offer: OfferDocument | None, count: int) -> str:
    """Return where a machine is rented, and the GPUs of one."""
    if offer is None:
        return say("a machine without a known price")
    gpus = f"{offer.gpu_count:g}x {offer.gpu}" if offer.gpu_count != 1 else offer.gpu
    return f"{place(offer, count)}: {gpus}"


def _percent(share: float | None) -> int | None:
    return None if share is None else round(100 * share)
