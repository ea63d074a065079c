"""Fills the page of a plan: what decides, figures to play with, charts, jobs, GPUs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import UNSET, UnsetType

from templates import report_text
from templates.language.translate import (
    _,
    current_language,
    gap,
    join,
    page_words,
    rate_words,
    translate_text,
    word,
)
from templates.report_text import place
from templates.reports.decision import decision, named_options, year_words
from templates.reports.first_screen import first_screen
from templates.reports.fleet_rows import (
    Alike,
    alike,
    alternative,
    fleet_rows,
    group_row,
    held,
    sureness,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.plan.bill import RentedOffer
    from planner.plan.job import JobPlan
    from planner.plan.option import Baseline, Option
    from planner.plan.plan import Placement, Plan

    Way = Baseline | Option

# A unit is used from twice its length on.
_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"))


def drawn(line: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a time line for the page; None where nothing was recorded over time."""
    if line is None:
        return None
    points = len(line["busy"])
    unit_s, unit = _unit(line["point_s"] * points)
    return {
        "gpus": line["gpus"],
        "unit": unit,
        "point": float(f"{line['point_s'] / unit_s:.6g}"),
        **{
            name: [_percent(share) for share in line[name]]
            for name in ("busy", "least", "most", "host")
        },
        "phases": _stretches(line["phases"]),
    }


def _unit(length_s: float) -> tuple[float, str]:
    return next(((s, name) for s, name in _UNITS if length_s >= 2 * s), (1.0, "seconds"))


def _percent(share: float | UnsetType | None) -> int | None:
    return None if share is None or share is UNSET else round(100 * share)


def _stretches(phases: Sequence[str | None]) -> list[list[Any]]:
    """Return each phase in words, the point that it begins with and the one that it ends before."""
    found, at = [], 0
    for kind, members in groupby(phases):
        end = at + len(list(members))
        if kind is not None:
            found.append([word("phase", kind), at, end])
        at = end
    return found


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


def before(plan: Plan) -> list[Box]:
    """Return the machines of today."""
    return list(_today(plan.jobs))


def after(plan: Plan) -> list[Box]:
    """Return the machines as recommended: GPUs that are shared first, then each job's own."""
    taken = {job.placement for job in plan.jobs} - {None}
    places = plan.fleet.recommended if plan.fleet else ()
    boxes = list(_shared(item for item in places if item.id in taken))
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
        Cell(
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
    known = {job.name: job for job in jobs}
    while known:
        job = known.pop(next(iter(known)))
        share = job.baseline.share
        if share is None:
            yield _box(job, job.baseline, job.busy_fraction)
            continue
        beside = [known.pop(name) for name in share.beside if name in known]
        cells = [cell for item in (job, *beside) for cell in _held(item)]
        offer = job.baseline.offer
        # Without a neighbour that is known the rest of the machine is somebody else's.
        gpus = round(offer.gpu_count) if offer and share.beside else 0
        nobody = [Cell(jobs=(), percent=0)] * max(0, gpus - sum(cell.gpus for cell in cells))
        yield Box(title=_title(job.baseline.offer, 1), cells=(*cells, *nobody))


def _held(job: JobPlan) -> list[Cell]:
    held = job.baseline.share.held if job.baseline.share else 1
    return _cells(job, max(1, round(held)), job.busy_fraction)


def _box(job: JobPlan, way: Baseline | Option, busy: float | UnsetType) -> Box:
    gpus = max(1, round(way.offer.gpu_count * way.count)) if way.offer else way.count
    return Box(title=_title(way.offer, way.count), cells=tuple(_cells(job, gpus, busy)))


def _cells(job: JobPlan, gpus: int, busy: float | UnsetType) -> list[Cell]:
    percent = _percent(busy)
    if gpus > _MOST_CELLS:
        return [Cell(jobs=(job.name,), percent=percent, gpus=gpus)]
    return [Cell(jobs=(job.name,), percent=percent)] * gpus


def _title(offer: RentedOffer | None, count: int) -> str:
    """Return where a machine is rented, and the GPUs of one."""
    if offer is None:
        return _("a machine without a known price")
    gpus = f"{offer.gpu_count:g}x {offer.gpu}" if offer.gpu_count != 1 else offer.gpu
    return f"{place(offer, count)}: {gpus}"


_TOLD = 10  # jobs of which the causes are told: our own choice
_NOTES = 200
_RATE_CENTS = 10_000  # an hour, where the plan does not say


def render_page(
    plan: Plan, table: Mapping[str, Any], over_time: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return one HTML file that works offline.

    Args:
        plan: made now, or read back.
        table: the figures that can be worked out again, as `what_if_table` gives them.
        over_time: what was recorded over time, by job.
    """
    single = len(plan.jobs) == 1
    notes = [translate_text(note) for note in (*plan.assumptions, *plan.warnings)]
    groups = alike(plan)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            plan=plan,
            w=report_text,
            title=plan.jobs[0].name if single else _("{n} jobs", n=len(plan.jobs)),
            language=current_language(),
            rate_words=rate_words(),
            held=held,
            sureness=sureness,
            lead=_lead(plan),
            period=report_text.period_words(plan),
            year=year_words(plan),
            rows=decision(plan.jobs[0], plan) if single else fleet_rows(plan),
            rows_say_where=single,
            rate=table.get("rate_cents", _RATE_CENTS) // 100,
            before=before(plan),
            after=after(plan),
            ticks=_ticks(plan),
            groups=groups[:_TOLD],
            job_rows=[(job, group_row(Alike(jobs=(job,)), plan)) for job in plan.jobs],
            notes=notes[:_NOTES],
            data=_safe_json(
                {
                    "table": table,
                    "jobs": [
                        {**_job(job), "over_time": drawn(over_time.get(job.name))}
                        for job in plan.jobs
                    ],
                    "words": page_words(current_language()),
                }
            ),
            css=_part("page.css"),
            library=_part("chart.umd.min.js"),
            what_if=_part("what_if.js"),
            alternative=alternative,
            script=_part("page.js"),
        )
    )


@cache
def _environment() -> Environment:
    filled = Environment(
        loader=PackageLoader("templates", "page"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        autoescape=True,
    )
    filled.globals.update(_=_, translate_text=translate_text, word=word, gap=gap, join=join)
    return filled


def _purchase(name: str) -> str:
    return word("purchase", name.replace("_", " "))


def _short(title: str) -> str:
    """Return a title up to its colon."""
    return re.split("[:\uff1a]", title)[0]


@cache
def _part(name: str) -> Markup:
    """Return a file that is put into the page, without the address of its source map."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    kept = (line for line in text.splitlines() if not line.startswith("//# sourceMappingURL"))
    return Markup("\n".join(kept))  # noqa: S704 - our own files, no text of a plan


def _safe_json(value: object) -> Markup:
    """Return JSON that cannot end the script that it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - no sign of markup is left


def _lead(plan: Plan) -> list[str]:
    return [f"{line.label}{_(': ')}{line.text}" for line in first_screen(plan).lines]


def _ticks(plan: Plan) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return what may be taken: providers, purchases and cures of the options."""
    options = [option for job in plan.jobs for option in job.options]
    cures = {item.code for job in plan.jobs for item in job.remedies}
    used = sorted({code for option in options for code in option.actions if code in cures})
    providers = sorted({option.offer.provider for option in options})
    purchases = sorted({option.offer.purchase for option in options})
    return [
        ("provider", _("Providers"), [(name, name) for name in providers]),
        ("purchase", _("Purchase"), [(name, _purchase(name)) for name in purchases]),
        ("cure", _("Changes"), [(code, report_text.action(code, plan)) for code in used]),
    ]


def _job(job: JobPlan) -> dict[str, Any]:
    named = named_options(job)
    wanted = job.choice or job.option(job.cheapest)
    bill = [{"title": _("today"), "lines": _lines(job.baseline)}]
    for id_, (_titles, option) in named.items():
        title = _("{id} (at least)", id=id_) if option.cost.at_least else id_
        bill.append({"title": title, "lines": _lines(option)})
    return {
        "hours": _ends(job.baseline),
        "about": wanted.id if wanted else None,
        "ladder": [[_short(titles[0]), id_] for id_, (titles, _option) in named.items()],
        "bill": bill,
        "options": [_option(option) for option in job.options],
    }


def _option(option: Option) -> dict[str, Any]:
    cost, offer = option.cost, option.offer
    parts = ("by_hours", "by_price", "by_speed", "by_cure", "by_use")
    ends = {**{name: getattr(cost, name) for name in parts}, "cost": cost}
    return {
        "id": option.id,
        "where": report_text.place(offer, option.count),
        "gpu": f"{offer.gpu_count}x {offer.gpu}",
        "hours": _ends(option),
        "at_least": cost.at_least,
        "mid": str(cost.mid),
        **{name: [str(e.low), str(e.high)] if e else None for name, e in ends.items()},
    }


def _ends(way: Way) -> list[float]:
    return [way.hours.low, way.hours.mid, way.hours.high]


def _lines(way: Way) -> list[list[str]]:
    return [[word("line", line.what), str(line.usd)] for line in way.cost.lines]
