"""Fills the page of a plan: what decides, figures to play with, charts, jobs, GPUs.

On its map machines are boxes and GPUs cells, today and as advised.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from itertools import groupby
from statistics import mode
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import UNSET, UnsetType

from planner.plan.bill import CostRange
from templates import report_text, templates_in
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
from templates.page.pieces import engineer_usd, what_if_table
from templates.report_text import machine_name
from templates.reports import fleet_rows
from templates.reports.decision import after, paid_back, year, year_words
from templates.reports.first_screen import first_screen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jinja2 import Environment

    from planner.plan.bill import CostLine, RentedOffer
    from planner.plan.job import JobPlan, Now
    from planner.plan.option import Baseline, Option
    from planner.plan.plan import Placement, Plan, RecommendedTotal
    from templates.reports.job_screen import FirstScreen

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


# A unit is used from twice its length on.
_UNITS = ((86_400.0, "{n} days"), (3_600.0, "{n} h"), (60.0, "{n} min"), (1.0, "{n} s"))
_COLOURS = 5  # of phases


_TOLD = 10  # kinds of jobs of which the details are on the page: our own choice
_NOTES = 200
_FULL, _NOTHING = Decimal(100), Decimal(0)
_NO_COST = CostRange.exactly(_NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """A figure that is read first: what it is, how much, and what belongs to it."""

    label: str
    value: str
    note: str
    good: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """An amount as a bar, in percent of the widest.

    Attributes:
        label: what it is.
        text: the amount in words.
        notes: what belongs to it, one below the other.
        percent: of the expected amount.
        low_percent: of its low end; None where there is no range.
        high_percent: of its high end.
        kind: `today`, `chosen` or empty; its colour.
    """

    label: str
    text: str
    notes: tuple[str, ...] = ()
    percent: float
    low_percent: float | None = None
    high_percent: float | None = None
    kind: str = ""


def render_page(plan: Plan, over_time: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one HTML file that works offline.

    Args:
        plan: made now, or read back.
        over_time: what was recorded over time, by job.
    """
    single, screen = len(plan.jobs) == 1, first_screen(plan)
    groups = fleet_rows.group_alike(plan)
    numbers = {job.name: number for number, job in enumerate(plan.jobs)}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            plan=plan,
            w=report_text,
            single=single,
            title=plan.jobs[0].name if single else _("{n} jobs", n=len(plan.jobs)),
            language=current_language(),
            period=report_text.period_words(plan),
            year=year_words(plan),
            rate_words=rate_words(),
            tiles=tiles(plan),
            pair=pair(plan),
            lines=_lines(screen, plan),
            steps=steps(screen, plan),
            rate=int(engineer_usd(plan)),
            before=map_before(plan) if plan.fleet else [],
            after=map_after(plan) if plan.fleet else [],
            gpus_sentence=fleet_rows.gpus_sentence,
            alternative=fleet_rows.alternative,
            ticks=_ticks(plan),
            details_of=[_details(g, plan, numbers, over_time) for g in groups[:_TOLD]],
            job_heads=_job_heads(plan),
            job_rows=[
                (job, fleet_rows.group_row(fleet_rows.Alike(jobs=(job,)), plan))
                for job in plan.jobs
            ],
            notes=[translate_text(note) for note in (*plan.assumptions, *plan.warnings)][:_NOTES],
            data=_safe_json(
                {
                    "table": what_if_table(plan, {group.first.name for group in groups[:_TOLD]}),
                    "period": report_text.period_words(plan),
                    "words": page_words(current_language()),
                }
            ),
            css=_part("page.css"),
            script=_part("page.js"),
        )
    )


@cache
def _environment() -> Environment:
    filled = templates_in("page", autoescape=True)
    filled.globals.update(_=_, translate_text=translate_text, word=word, gap=gap, join=join)
    return filled


@cache
def _part(name: str) -> Markup:
    """Return a file that is put into the page."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - our own files, no text of a plan


def _safe_json(value: object) -> Markup:
    """Return JSON that cannot end the script that it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - no sign of markup is left


def _ticks(plan: Plan) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return what may be taken: providers, purchases and cures of the options."""
    options = [option for job in plan.jobs for option in job.options]
    cures = {item.code for job in plan.jobs for item in job.remedies}
    used = sorted({code for option in options for code in option.actions if code in cures})
    providers = sorted({option.offer.provider for option in options})
    purchases = sorted({option.offer.purchase for option in options})
    return [
        ("provider", _("Providers"), [(name, name) for name in providers]),
        (
            "purchase",
            _("Purchase"),
            [(n, word("purchase", n.replace("_", " "))) for n in purchases],
        ),
        ("cure", _("Changes"), [(code, report_text.action(code, plan)) for code in used]),
    ]


def tiles(plan: Plan) -> list[_Tile]:
    """Return what is paid, what could be, and what that saves."""
    total = plan.recommended
    if total is None or not _is_known(plan):
        return [_Tile(label=_("You pay"), value=_("unknown"), note=_use(plan))]
    before, cost = total.cost_before, _advised(plan, total)
    note = _range_words(cost)
    if (cure := _cure_alone(plan)) and cure.kind == "try":
        note = _("expected, by a change on today's machine")
    saves = before - cost.mid
    share = report_text.percent(float(saves / before)) if before else "-"
    paid = _Tile(
        label=_("You pay"),
        value=report_text.whole_dollars(before, at_least=total.at_least),
        note=_("{period}; {use}", period=report_text.period_words(plan), use=_use(plan)),
    )
    if not saves:
        return [paid]
    return [
        paid,
        _Tile(label=_("You could pay"), value=report_text.whole_dollars(cost.mid), note=note),
        _Tile(
            label=_("That saves {period}", period=year_words(plan)),
            value=year(saves, plan),
            note=_("{share}; pays back: {time}", share=share, time=_back(plan)),
            good=saves > 0,
        ),
    ]


def _is_known(plan: Plan) -> bool:
    return any(job.baseline.cost.total is not None for job in plan.jobs)


def _cure_alone(plan: Plan) -> Now | None:
    """Return the change on today's machine of one job that stays on it; else None."""
    job, now = plan.jobs[0], plan.jobs[0].answer.now
    is_single = len(plan.jobs) == 1 and job.choice is None
    return now if is_single and now is not None and now.usd is not None else None


def _advised(plan: Plan, total: RecommendedTotal) -> CostRange:
    """Return what would be paid: with that change, else as recommended."""
    now = _cure_alone(plan)
    return total.cost if now is None or now.usd is None else now.usd


def _use(plan: Plan) -> str:
    if plan.fleet is not None:
        return fleet_rows.gpus_sentence(plan.fleet, advised=True)
    busy = plan.jobs[0].busy_fraction if len(plan.jobs) == 1 else UNSET
    if busy is UNSET:
        return _("GPU use unknown")
    return _("the GPU is busy {share} of the time", share=report_text.percent(busy))


def _back(plan: Plan) -> str:
    if now := _cure_alone(plan):
        return after(now.pays_back_periods, plan)
    if len(plan.jobs) == 1:
        option = plan.jobs[0].choice
        return paid_back(option, plan) if option else "-"
    days = plan.roi.payback_days
    return "-" if days is None else _("{n} days", n=f"{days:.0f}")


def _range_words(cost: CostRange) -> str:
    low, high = report_text.whole_dollars(cost.low), report_text.whole_dollars(cost.high)
    if low == high:
        return _("expected")
    return _("expected; {low} to {high} in nine cases out of ten", low=low, high=high)


def _bars(
    rows: Iterable[tuple[str, CostRange | None, tuple[str, ...], str]], full: Decimal
) -> list[_Bar]:
    """Return amounts as bars of one scale: label, amount, notes and kind of each.

    Args:
        rows: the amounts.
        full: what a full bar is, unless a row is more.
    """
    bars = [(label, cost or _NO_COST, notes, kind) for label, cost, notes, kind in rows]
    widest = max((cost.high for _label, cost, _notes, _kind in bars), default=full)
    scale = _FULL / max(widest, full) if max(widest, full) else _FULL
    return [
        _Bar(
            label=label,
            text=report_text.money_text(cost.mid) if cost.mid else "",
            notes=notes,
            percent=_rounded(cost.mid * scale),
            low_percent=_rounded(cost.low * scale) if cost.low != cost.high else None,
            high_percent=_rounded(cost.high * scale) if cost.low != cost.high else None,
            kind=kind,
        )
        for label, cost, notes, kind in bars
    ]


def _rounded(percent: Decimal) -> float:
    return float(round(percent, 1))


def pair(plan: Plan) -> list[_Bar]:
    """Return today and what is advised, as two bars; empty where they are the same."""
    total = plan.recommended
    if total is None or not _is_known(plan):
        return []
    before, cost = total.cost_before, _advised(plan, total)
    today = (_("today"), CostRange.exactly(before), (), "today")
    advised = (_("as advised"), cost, (), "chosen")
    return [] if cost.mid == before else _bars((today, advised), before)


def _lines(screen: FirstScreen, plan: Plan) -> list[str]:
    """Return the lines of the first screen but for what is paid and what to do."""
    lines = [line for line in (*screen.facts, *screen.notes) if line.kind != "pay"]
    return [*(f"{line.label}{_(': ')}{line.text}" for line in lines), fleet_rows.sureness(plan)]


def steps(screen: FirstScreen, plan: Plan) -> list[_Bar]:
    """Return the numbered things to do, each with its bill; a full bar is what is paid today."""
    rows = []
    for number, action in enumerate(screen.actions, start=1):
        label = f"{number} {action.label}{_(': ')}{action.text}"
        is_chosen = len(plan.jobs) == 1 and action.id == plan.jobs[0].recommended
        rows.append((label, action.cost, action.figures, "chosen" if is_chosen else ""))
    return _bars(rows, plan.recommended.cost_before if plan.recommended else _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve: what it shows, its path in a box of 100 by 100, and its kind."""

    label: str
    path: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """What is said of one job, or of several that are alike.

    Attributes:
        title: of the section.
        job: the one that is told.
        number: of it in the plan.
        bill: kind of cost, and dollars today and as advised.
        doubts: what the range of the advised option comes from: label, words, start and width in
            percent.
        curves: GPU and host use over time; empty where there is no recording.
        ends: words below the curves: begin and end.
        phases: of the recording: name, its colour's number, start and width in percent.
        shares: of each kind of phase, in words.
        changes: what most of its options have to change.
    """

    title: str
    job: JobPlan
    number: int
    bill: list[tuple[str, str, str]]
    doubts: list[tuple[str, str, float, float]]
    curves: list[Line]
    ends: tuple[str, str]
    phases: list[tuple[str, int, float, float]]
    shares: list[str]
    changes: str


def _details(
    group: fleet_rows.Alike, plan: Plan, numbers: Mapping[str, int], over_time: Mapping[str, Any]
) -> _Details:
    job = group.first
    curves, ends, phases = _drawn(over_time.get(job.name))
    widths: dict[str, float] = {}
    for name, _colour, _start, width in phases:
        widths[name] = widths.get(name, 0.0) + width
    return _Details(
        title=group.title,
        job=job,
        number=numbers[job.name],
        bill=_bill(job),
        doubts=_doubts(job),
        curves=curves,
        ends=ends,
        phases=phases,
        shares=[f"{name} {report_text.percent(width / 100)}" for name, width in widths.items()],
        changes=mode([report_text.changes(option, plan) for option in job.options] or [""]),
    )


def _job_heads(plan: Plan) -> tuple[str, ...]:
    """Return the heads of the table of jobs."""
    saves = _("saves {period}", period=year_words(plan))
    names = (_("job"), _("today"), _("cause"), _("do"), _("cost"))
    return (*names, saves, _("confidence"))


def _bill(job: JobPlan) -> list[tuple[str, str, str]]:
    """Return the bills of today and of the advised option line by line."""
    today, option = job.baseline.cost.lines, job.choice
    sides = (today, option.cost.lines if option else ())
    names = list(dict.fromkeys(line.what for lines in sides for line in lines))

    def usd(lines: Iterable[CostLine], category: str) -> str:
        amounts = [line.usd for line in lines if line.what == category]
        return report_text.dollars(sum(amounts, Decimal(0))) if amounts else "-"

    return [(word("line", name), usd(sides[0], name), usd(sides[1], name)) for name in names]


def _doubts(job: JobPlan) -> list[tuple[str, str, float, float]]:
    """Return how far speed, changes, use and price move the bill that is advised."""
    option = job.choice or job.option(job.cheapest)
    if option is None:
        return []
    cost = option.cost
    causes = (
        (_("speed on the target machine"), cost.by_speed),
        (_("changes"), cost.by_cure),
        (_("hours in use"), cost.by_use),
        (_("price since it was read"), cost.by_price),
    )
    intervals = [(name, ends) for name, ends in causes if ends is not None and ends is not UNSET]
    rows = [(name, ends.low, ends.high) for name, ends in intervals if ends.high > ends.low]
    rows.sort(key=lambda row: row[1] - row[2])
    low = min((row[1] for row in rows), default=_NOTHING)
    width = max((row[2] for row in rows), default=_NOTHING) - low
    scale = _FULL / width if width else _NOTHING
    return [
        (
            name,
            f"{report_text.whole_dollars(a)}-{report_text.whole_dollars(b)[1:]}",
            _rounded((a - low) * scale),
            _rounded((b - a) * scale),
        )
        for name, a, b in rows
    ]


def _drawn(
    line: Mapping[str, Any] | None,
) -> tuple[list[Line], tuple[str, str], list[tuple[str, int, float, float]]]:
    """Return the curves of a recording, the words at its ends, and its phases."""
    if line is None:
        return [], ("", ""), []
    several = line["gpus"] > 1
    rows = [(_("GPUs, mean") if several else _("GPU"), "busy", "mean")]
    if several:
        rows += [(_("busiest GPU"), "most", "edge"), (_("least busy GPU"), "least", "edge")]
    if line["host"]:
        rows.append((_("host"), "host", "host"))
    points = len(line["busy"])
    curves = [Line(label=label, path=_path(line[name]), kind=kind) for label, name, kind in rows]
    length_s = line["point_s"] * points
    unit_s, unit_text = next(unit for unit in _UNITS if length_s >= 2 * unit[0] or unit[0] == 1.0)
    end = _(unit_text, n=f"{length_s / unit_s:.3g}")
    return curves, ("0", end), _stretches(line["phases"], points)


def _path(shares: Sequence[float | UnsetType | None]) -> str:
    """Return the path of shares in a box of 100 by 100, its y downwards; unknown ones are gaps."""
    step, parts, pen = 100 / max(1, len(shares)), [], "M"
    for at, share in enumerate(shares):
        if share is None or share is UNSET:
            pen = "M"
            continue
        parts.append(f"{pen}{(at + 0.5) * step:.2f} {100 - 100 * share:.1f}")
        pen = "L"
    return "".join(parts)


def _stretches(phases: Sequence[str | None], points: int) -> list[tuple[str, int, float, float]]:
    """Return each phase: its name, the number of its colour, start and width in percent."""
    stretches, at = [], 0
    kinds = [kind for kind in dict.fromkeys(phases) if kind is not None]
    for kind, members in groupby(phases):
        length = len(list(members))
        if kind is not None:
            start, width = 100 * at / points, 100 * length / points
            stretches.append((word("phase", kind), kinds.index(kind) % _COLOURS, start, width))
        at += length
    return stretches
