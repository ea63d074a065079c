"""The plan in the terminal: on one screen, or every option of every job."""

from itertools import zip_longest

import click
from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from gpucost.schemas.small_documents import Brief, BriefAction
from gpucost.views.output import (
    Output,
    Table,
    print_prose,
    print_rich,
    print_table,
    prose_lines,
    terminal_width,
)
from planner.plan.job import JobPlan
from planner.plan.plan import Fleet, Plan
from planner.plan.read import FoundOption, every_option
from planner.signals.finding import Finding
from templates import report_text
from templates.language.translate import _, join, translate_text, word
from templates.reports.first_screen import first_screen
from templates.reports.fleet_rows import alternative
from templates.reports.job_screen import Action, FirstScreen, job_screen
from templates.strangers import printable

_LABEL_WIDTH = 10
_LEAST_BAR = 10
_BAR_WIDTH = 32
_NAME_WIDTH = 26
_COLOURS = {"waste": "red", "advice": "green", "pay": "bold"}
_CELLS = 40
_MOST_LINES = 14


def print_plan(
    plan: Plan, output: Output, read_from: str = "", *, all_options: bool = False
) -> None:
    """Print a plan, made now or read back: one screen, or all of it.

    Args:
        plan: the plan.
        output: how to print.
        read_from: what was read, in words.
        all_options: whether to print all of it.
    """
    if output.format == "csv":
        print_csv(plan, output)
        return
    screen = first_screen(plan, read_from)
    print_first_screen(screen, output, ids=all_options or output.verbose)
    if all_options or output.verbose:
        print_whole_plan(plan, output)


def brief(plan: Plan, screen: FirstScreen) -> Brief:
    """Return the first screen of a plan as a document."""
    single, total = len(plan.jobs) == 1, plan.recommended
    is_known = total is not None and not total.unknown
    cost = total.cost if total is not None and is_known else None
    lines = [line for line in (*screen.facts, *screen.notes) if line.kind in ("advice", "note")]
    return Brief(
        schema="gpucost.brief/v1",
        as_of=plan.as_of,
        currency=plan.currency,
        period=plan.period,
        headline=screen.title,
        recommended=plan.jobs[0].recommended if single else None,
        low=cost.low if cost else None,
        mid=cost.mid if cost else None,
        high=cost.high if cost else None,
        paid_usd=screen.paid_usd,
        wasted_usd=screen.wasted_usd,
        cause=screen.cause,
        busy_fraction=screen.busy_fraction,
        notes=tuple(line.text for line in lines),
        actions=tuple(
            BriefAction(label=a.label.lower(), option=a.id, what=a.text, usd=a.cost)
            for a in screen.actions
        ),
        jobs=tuple(f"{name}: {usd}, {advice}" for name, usd, advice in screen.rows),
        commands=screen.commands,
    )


def print_first_screen(screen: FirstScreen, output: Output, *, ids: bool = False) -> None:
    """Print the first lines of a plan; what is wasted is red, what saves green."""
    width = max(terminal_width() - _LABEL_WIDTH - 1, _LABEL_WIDTH)
    lines = [
        (line.label, _text(line.text, width, _COLOURS.get(line.kind, ""))) for line in screen.facts
    ]
    if screen.busy_fraction is not None:
        _append_bar(lines[0][1], screen.busy_fraction, screen.busy_text, width)
    if screen.gpus:
        lines.append((_("GPUs"), _cells(*screen.gpus)))
    lines += [
        (f"{number} {action.label}", _action(action, screen, width, ids=ids))
        for number, action in enumerate(screen.actions, start=1)
    ]
    title = _text(screen.title, terminal_width(), "bold")
    notes = [(line, _text(line.text, width)) for line in screen.notes]
    length = sum(
        text.plain.count("\n") + 1 for text in (title, *(text for _, text in (*lines, *notes)))
    )
    print_rich(_text(screen.title, terminal_width(), "bold"), output)
    print_rich(_labelled(lines), output)
    if screen.rows:
        _print_rows(screen, output)
    is_full = not ids and length + len(screen.rows) + 1 > _MOST_LINES
    print_rich(
        _labelled([(n.label, text) for n, text in notes if not (is_full and n.kind == "spare")]),
        output,
    )
    print_prose(screen.more)


def _text(text: str, width: int, style: str = "") -> Text:
    return Text("\n".join(prose_lines(text, width)), style=style)


def _labelled(lines: list[tuple[str, Text]]) -> Grid:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, min_width=_LABEL_WIDTH, style="bold")
    grid.add_column()
    for label, text in lines:
        grid.add_row(label, text)
    return grid


def _append_bar(text: Text, share: float, busy: str, width: int) -> None:
    """Append how busy the GPU is, as a bar; on a line of its own where the last one is long."""
    last, behind = cell_len(text.plain.split("\n")[-1]), cell_len(busy) + 1
    space = "   " if last + 3 + _LEAST_BAR + behind <= width else "\n"
    room = min(_BAR_WIDTH, width - behind - (last + len(space) if space.strip("\n") else 0))
    full = round(share * room)
    text.append(f"{space}{chr(0x2588) * full}{chr(0x2591) * (room - full)} ", style="dim")
    text.append(busy)


def _cells(enough: int, used: int, where: str) -> Text:
    """Return held GPUs as cells, those that are enough filled; each stands for several of many."""
    per_cell = -(-used // _CELLS)
    full = -(-enough // per_cell)
    text = Text("\u25a0" * full, style="green")
    text.append("\u25a1" * (-(-used // per_cell) - full), style="dim")
    return text.append(_(" {held} -> {enough}", held=used, enough=enough) + where, style="default")


def _action(action: Action, screen: FirstScreen, width: int, *, ids: bool) -> Text:
    """Return what is to be done, and its figures: behind it, else below it in columns."""
    label = f"{action.text} [{action.id}]" if ids and action.id else action.text
    rows = [row.figures for row in screen.actions]
    columns = [max(map(cell_len, column)) for column in zip_longest(*rows, fillvalue="")]
    aligned = sum(columns) + 2 * len(columns) - 2 <= width
    figures = "  ".join(
        map(str.ljust, action.figures, columns) if aligned else action.figures
    ).rstrip()
    fits = cell_len(f"{label}  {figures}") <= width
    text = _text(label, width)
    if figures:
        text.append(f"{'  ' if fits else chr(10)}{figures}", style="green")
    return text


def _print_rows(screen: FirstScreen, output: Output) -> None:
    """Print the jobs of a fleet that save most; what does not fit goes on below."""
    name, dollars = (max(cell_len(printable(row[at])) for row in screen.rows) for at in (0, 1))
    name = min(name, _NAME_WIDTH)
    grid = Grid.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(no_wrap=True, min_width=name, max_width=name)
    grid.add_column(no_wrap=True, min_width=dollars)
    grid.add_column(ratio=1)
    for cells in screen.rows:
        grid.add_row(*map(printable, cells))
    print_rich(grid, output)


_SPARE = (8, 7, 4, 2, 3)  # columns that a narrow terminal leaves out, the first one first
_CSV = (
    "job option recommended provider instance_type region gpus gpu count purchase actions "
    "hours_low hours_mid hours_high usd_low usd_mid usd_high saves_usd saves_fraction "
    "price_as_of stale net_benefit_usd launchable"
)
_OF_OFFER = ("provider", "instance_type", "region", "gpu_count", "gpu")


def print_csv(plan: Plan, output: Output) -> None:
    """Print every option of every job as a row for programs."""
    rows = tuple(_record(choice) for job in plan.jobs for choice in every_option(job))
    print_table(Table(columns=tuple(_CSV.split()), rows=rows), output)


def print_whole_plan(plan: Plan, output: Output) -> None:
    """Print every option of every job; with -v also causes, confidence and notes."""
    if plan.fleet:
        _print_fleet(plan.fleet, plan, output)
    for job in plan.jobs:
        _print_whole_job(job, plan, output)
    for note in (*plan.assumptions, *plan.warnings) if output.verbose else ():
        output.say(_("note: {note}", note=translate_text(note)))


def _print_whole_job(job: JobPlan, plan: Plan, output: Output) -> None:
    if len(plan.jobs) > 1:
        screen = job_screen(job, plan)
        print_prose(screen.title)
        for line in screen.facts if plan.placement_of(job) else screen.lines:
            print_prose(f"{line.label}: {line.text}", indent="  ")
    if output.verbose:
        print_prose(_("Confidence {sure}.", sure=report_text.confidence(job)))
        for finding in job.findings:
            print_prose(_finding_line(finding), indent="  ")
    columns = _columns(plan)
    ids = [report_text.STAY, *(option.id for option in job.options)]
    table = Table(
        columns=columns,
        rows=tuple(_option_rows(job)),
        right=frozenset((columns[4], columns[6])),
        spare=tuple(columns[at] for at in _SPARE),
        uncut=frozenset((*columns[4:], "GPU")),
        chosen=ids.index(job.recommended) if job.recommended in ids else None,
    )
    print_table(table, output)


def _columns(plan: Plan) -> tuple[str, ...]:
    return (
        _("option"),
        _("where"),
        "GPU",
        _("how"),
        _("hours"),
        _("USD {period}", period=report_text.period_words(plan)),
        _("saves"),
        _("per unit of work"),
        _("price read"),
    )


def _option_rows(job: JobPlan) -> list[tuple[str, ...]]:
    """Return today's row and that of each option."""
    today = job.baseline
    how = _("unchanged") + (_(" (assumed)") if today.assumed else "")
    ways: list[tuple[str, report_text.Way, str, str, str]] = [
        (report_text.STAY, today, how, report_text.today_cost(today.cost), "")
    ]
    for option in job.options:
        cost, saved = report_text.cost_range(option.cost), report_text.share_saved(option)
        ways.append((option.id, option, report_text.changes(option), cost, saved or _("unknown")))
    return [
        (
            f"{id_}*" if id_ == job.recommended else id_,
            report_text.where_it_runs(way),
            report_text.gpus_named(way),
            how,
            report_text.hours(way.hours),
            cost,
            saved,
            report_text.per_work(way),
            report_text.read_on(way.offer),
        )
        for id_, way, how, cost, saved in ways
    ]


def _record(choice: FoundOption) -> tuple[str, ...]:
    """Return plain values for programs."""
    offer, option, cost = choice.offer, choice.option, choice.cost
    values = (
        choice.job.name,
        choice.id,
        "yes" if choice.is_recommended else "no",
        *(getattr(offer, name, None) for name in _OF_OFFER),
        choice.count,
        offer.purchase if offer else None,
        " ".join(choice.actions),
        choice.hours.low,
        choice.hours.mid,
        choice.hours.high,
        *(getattr(cost, end, None) for end in ("low", "mid", "high")),
        option.saves.usd if option else None,
        option.saves.fraction if option else None,
        offer.as_of if offer else None,
        "yes" if offer and offer.stale else "no",
        option.benefit.net_usd if option and option.benefit else None,
        "yes" if option and option.provisionable else "no",
    )
    return tuple("" if value is None else str(value) for value in values)


def _finding_line(finding: Finding) -> str:
    waste = finding.waste_usd
    cost = "" if waste is None else _(", costs {usd}", usd=report_text.whole_dollars(waste))
    return _(
        "{code} ({sure}{cost}): {what}",
        code=finding.code,
        sure=word("confidence", finding.confidence),
        cost=cost,
        what=report_text.evidence(finding) or translate_text(finding.cause),
    )


def _print_fleet(fleet: Fleet, plan: Plan, output: Output) -> None:
    rows = tuple(
        (str(p.id), report_text.machine_name(p.offer), p.mode or _("alone"), join(p.jobs))
        for p in plan.placements
    )
    columns = ("GPU", _("machine"), _("mode"), _("jobs"))
    print_table(Table(columns=columns, rows=rows), output)
    for placement in plan.placements:
        for risk in placement.risks or ():
            text = _("GPU {id}: {risk}", id=placement.id, risk=translate_text(risk))
            print_prose(text, indent="  ")
    if fleet.roll_back:
        print_prose(translate_text(fleet.roll_back))
    for job_left in () if fleet.taken else fleet.unmoved:
        output.say(
            _(
                "note: {job} stays on its GPU: {reason}, {detail}",
                job=job_left.job,
                reason=word("reason", job_left.reason),
                detail=translate_text(job_left.detail),
            )
        )
    for packing in fleet.alternatives:
        summary = alternative(packing, plan)
        total = plan.recommended
        is_taken = packing is fleet.taken and total and total.cost.mid == packing.cost_after
        print_prose(
            _("recommended: {what}", what=summary) if is_taken else _("or {what}", what=summary)
        )
    click.echo(_("Job by job, on its own:") + "\n")
