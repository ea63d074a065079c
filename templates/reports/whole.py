"""The report in markdown: what decides first, then the causes, the rest folded, within a length.

GitHub shows at most 65,536 characters of a comment. A report of many jobs tells those that save
most, first all of them in brief, then the first of them in full, until the room is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates import advice, report_text
from templates.language.currency import rate_words
from templates.language.speech import say, told
from templates.markdown import cell
from templates.reports.alike import Alike, alike
from templates.reports.bottom_line import bottom_line
from templates.reports.decision import decision, year_words
from templates.reports.fleet_rows import (
    fleet_rows,
    group_row,
    held,
    names,
    paid,
    risks,
    speeds,
    sureness,
)
from templates.reports.glossary import glossed
from templates.reports.rejections import next_steps, why_not
from templates.totals import alternative, total

if TYPE_CHECKING:
    from jinja2 import Environment

    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument
    from planner.plan_document.options import BaselineDocument, OptionDocument

MOST_CHARACTERS = 64_000
"""Of a report of several jobs: below GitHub's 65,536, with room for a marker and meanings."""

_ROOM = 1_500  # of the meanings of words, which are put in last
_ROWS = (60, 30, 12, 4)
_NOTES = 30
_LONGEST_NOTE = 400
_TOLD = 10
_JOB = "job.md.j2"
"""Rows, names and notes of a table, list or sentence: our own choice of what is still read."""


def markdown_report(
    plan: PlanDocument, environment: Environment, *, most: int = MOST_CHARACTERS
) -> str:
    """Return the report of a plan as GitHub reads markdown; of several jobs within a length."""
    if len(plan.jobs) == 1:
        (job,) = plan.jobs
        title = f"# {say('GPU cost report: {name}', name=cell(job.name))}\n\n"
        body = _job(job, plan, environment, level="full", mark="##")
        teams, end = _teams(plan, environment, _ROWS[0]), _end(plan, environment)
        return _tidy(glossed(title + body + teams + end))
    return _tidy(glossed(_several(plan, environment, most)))


def _several(plan: PlanDocument, environment: Environment, most: int) -> str:
    groups = alike(plan)
    title = f"# {say('GPU cost report: {n} jobs', n=len(plan.jobs))}\n\n"
    end = _end(plan, environment)
    for rows in _ROWS:
        top = title + _summary(plan, groups, environment, rows)
        left = most - _ROOM - len(top) - len(end)
        if left > 0:
            break
    return top + "".join(_told(plan, groups, environment, left)) + end


def _summary(plan: PlanDocument, groups: list[Alike], environment: Environment, rows: int) -> str:
    text = _fill(
        environment,
        "fleet.md.j2",
        plan=plan,
        groups=groups,
        rows=rows,
        paid=paid,
        sureness=sureness,
        held=held,
        fleet_rows=fleet_rows,
        group_row=group_row,
        jobs_in=lambda some: sum(len(group.jobs) for group in some),
    )
    if plan.fleet:
        text += _fill(
            environment, "shared.md.j2", plan=plan, rows=rows, speeds=speeds, risks=risks(plan)
        )
    return text + _teams(plan, environment, rows)


def _teams(plan: PlanDocument, environment: Environment, rows: int) -> str:
    return _fill(environment, "teams.md.j2", plan=plan, rows=rows) if plan.teams else ""


def _told(
    plan: PlanDocument, groups: list[Alike], environment: Environment, room: int
) -> list[str]:
    """Return the folds of the groups that fit, the first of them in full where that fits, too."""
    told: list[str] = []
    for group in groups:
        fold = _fold(group, plan, environment, "brief")
        if len(fold) > room:
            break
        told.append(fold)
        room -= len(fold)
    for at, group in enumerate(groups[: len(told)]):
        fold = _fold(group, plan, environment, "full")
        if len(fold) - len(told[at]) > room:
            break
        room -= len(fold) - len(told[at])
        told[at] = fold
    return told


def _fold(group: Alike, plan: PlanDocument, environment: Environment, level: str) -> str:
    body = _job(group.first, plan, environment, level=level, mark="###")
    others = [job.name for job in group.jobs[1:]]
    return _fill(environment, "details.md.j2", group=group, body=body, others=others)


def _job(
    job: JobDocument, plan: PlanDocument, environment: Environment, *, level: str, mark: str
) -> str:
    return _fill(
        environment,
        _JOB,
        job=job,
        plan=plan,
        level=level,
        mark=mark,
        advice=advice,
        decision=decision,
        why_not=why_not,
        next_steps=next_steps,
        has_energy=has_energy,
    )


def _end(plan: PlanDocument, environment: Environment) -> str:
    single = len(plan.jobs) == 1
    notes = [told(note) for note in (*plan.assumptions, *plan.warnings)]
    shown = notes if single else [_cut(note) for note in notes[:_NOTES]]
    jobs = plan.jobs if single else [group.first for group in alike(plan)[:_TOLD]]
    left = len(notes) - len(shown)
    return _fill(environment, "end.md.j2", plan=plan, notes=shown, left=left, jobs=jobs)


def _cut(note: str) -> str:
    return note if len(note) <= _LONGEST_NOTE else f"{note[: _LONGEST_NOTE - 1]}…"


def _fill(environment: Environment, name: str, **values: object) -> str:
    shared = {
        "w": report_text,
        "rate": rate_words(),
        "alternative": alternative,
        "total": total,
        "bottom_line": bottom_line,
        "year_words": year_words,
        "names": names,
    }
    return environment.get_template(name).render(**shared, **values)


def _tidy(report: str) -> str:
    """Return a report without runs of empty lines, one line end at its end."""
    lines: list[str] = []
    for line in report.split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).rstrip("\n") + "\n"


def has_energy(today: BaselineDocument, columns: list[tuple[str, OptionDocument]]) -> bool:
    """Return whether the energy of any column is known."""
    known = (report_text.energy(option) for _, option in columns)
    return report_text.energy(today) is not None or any(known)
