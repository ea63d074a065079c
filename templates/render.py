"""Fills the templates: one function per kind of text, the values of plan.json in, text out.

A report in markdown says what decides first, then the causes, the rest folded, within a length:
GitHub shows at most 65,536 characters of a comment. A report of many jobs tells those that save
most, first all of them in brief, then the first of them in full, until the room is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from pricing.errors import NotBuiltYetError
from pricing.money import show
from templates import report_text, templates_in
from templates.language import translate
from templates.language.translate import _, word
from templates.markdown import cell, command, unbroken, with_commands
from templates.page.whole_page import render_page
from templates.reports import fleet_rows
from templates.reports.decision import columns, decision, ends_machine, staying, year_words
from templates.reports.first_screen import first_screen
from templates.reports.job_screen import job_screen
from templates.strangers import for_markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from planner.documents.plan_change import PlanChange
    from planner.plan.job import JobPlan, Rejected
    from planner.plan.option import Baseline, Option
    from planner.plan.plan import Plan
    from planner.proof.verify import Verification


@dataclass(frozen=True, slots=True)
class _Word:
    pattern: re.Pattern[str]
    word: str
    means: str


def _word(pattern: str, word: str, means: str) -> _Word:
    return _Word(re.compile(pattern), word, means)


@cache
def _of(language: str) -> tuple[_Word, ...]:
    return tuple(_word(**entry) for entry in translate.glossary(language))


_CODE = re.compile(r"(`[^`]*`)")


def glossed(report: str) -> str:
    """Return a report with each word explained at its first use.

    In a sentence the meaning follows the word in brackets. In a table, where it would widen the
    cell, it stands below the table. Headings, folds' titles and commands explain nothing.
    """
    unexplained, lines = list(_of(translate.current_language())), list[str]()
    waiting: list[_Word] = []
    for line in report.split("\n"):
        in_table = line.startswith("|")
        if waiting and not in_table:
            meanings = (_("*{word}*: {means}.", word=t.word, means=t.means) for t in waiting)
            lines += ["", translate.gap().join(meanings)]
            waiting = []
        if line.startswith(("#", "<")):
            lines.append(line)
            continue
        for term in tuple(unexplained):
            if in_table and term.pattern.search(_CODE.sub("", line)):
                waiting.append(term)
                unexplained.remove(term)
            elif not in_table:
                line, done = _explained(line, term)  # noqa: PLW2901 - a line gains meanings
                if done:
                    unexplained.remove(term)
        lines.append(line)
    return "\n".join(lines)


def _explained(line: str, word: _Word) -> tuple[str, bool]:
    """Return a line with the meaning behind the first use outside of commands."""
    parts = _CODE.split(line)
    for at, part in enumerate(parts):
        match = None if part.startswith("`") else word.pattern.search(part)
        if match is not None:
            parts[at] = part[: match.end()] + _(" ({rule})", rule=word.means) + part[match.end() :]
            return "".join(parts), True
    return line, False


_KINDS_A_REASON = 2
_FIGURE = re.compile(r"[\d.,]+")


def why_not(job: JobPlan) -> list[tuple[Rejected, int]]:
    """Return the rejections worth reading, each with how many others were for the same reason.

    Of rejections that differ only in their figures one is told, one of today's provider if any.
    """
    today = job.baseline.offer.provider if job.baseline.offer else ""
    kinds: dict[tuple[str, str], list[Rejected]] = {}
    for reject in sorted(
        job.rejected, key=lambda r: (not r.offer.startswith(f"{today}/"), r.offer)
    ):
        if reject.reason in report_text.CODES["asked"]:
            kind = (reject.reason, _FIGURE.sub("", reject.detail))
            kinds.setdefault(kind, []).append(reject)
    shown: list[tuple[Rejected, int]] = []
    for reason in report_text.CODES["asked"]:
        same_reason = [same for (kind, _), same in kinds.items() if kind == reason]
        same_reason.sort(key=lambda same: -len(same))
        shown += [(same[0], len(same) - 1) for same in same_reason[:_KINDS_A_REASON]]
    return shown


def next_steps(job: JobPlan, plan: Plan) -> list[str]:
    """Return commands that can be run now."""
    option = job.choice
    steps = []
    if option is not None:
        path, named = translate.plan_file(), f"{job.name}/{option.id}"
        quote = command("gpucost", "quote", *((path,) if path else ()), "--option", named)
        saved = "`gpucost plan ... -o plan.json`"
        if path is None:
            quote = _("{quote} (save the plan first: {plan})", quote=quote, plan=saved)
        steps.append(quote)
    first = job.verdict
    if first is not None:
        steps.append(command("gpucost", "explain", first.code))
    today = job.baseline.offer
    if plan.fleet is None and option is None and today is not None and not ends_machine(job):
        steps.append(command("gpucost", "prices", "--gpu", today.gpu, "--sort", "gpu-price"))
    return steps


MOST_CHARACTERS = 64_000
"""Of a report of several jobs: below GitHub's 65,536, with room for a marker and meanings."""

_ROOM = 1_500  # of the meanings of words, which are put in last
_ROWS = (60, 30, 12, 4)
_NOTES = 30
_LONGEST_NOTE = 400
_TOLD = 10
_JOB = "job.md.j2"
"""Rows, names and notes of a table, list or sentence: our own choice of what is still read."""


def markdown_report(plan: Plan, *, limit: int = MOST_CHARACTERS) -> str:
    """Return the report of a plan as GitHub reads markdown; of several jobs within a length."""
    if len(plan.jobs) == 1:
        (job,) = plan.jobs
        title = f"# {_('GPU cost report: {name}', name=cell(job.name))}\n\n"
        body = _job(job, plan, level="full", mark="##")
        teams, end = _teams(plan, _ROWS[0]), _end(plan)
        return _tidy(glossed(title + body + teams + end))
    return _tidy(glossed(_several(plan, limit)))


def _several(plan: Plan, limit: int) -> str:
    groups = fleet_rows.group_alike(plan)
    title = f"# {_('GPU cost report: {n} jobs', n=len(plan.jobs))}\n\n"
    end = _end(plan)
    for rows in _ROWS:
        top = title + _summary(plan, groups, rows)
        room = limit - _ROOM - len(top) - len(end)
        if room > 0:
            break
    return top + "".join(_folds(plan, groups, room)) + end


def _summary(plan: Plan, groups: list[fleet_rows.Alike], rows: int) -> str:
    text = _fill(
        "fleet.md.j2",
        plan=plan,
        groups=groups,
        rows=rows,
        sureness=fleet_rows.sureness,
        group_row=fleet_rows.group_row,
        jobs_in=lambda some: sum(len(group.jobs) for group in some),
    )
    if plan.fleet:
        text += _fill(
            "shared.md.j2",
            plan=plan,
            rows=rows,
            speeds=fleet_rows.speeds,
            risks=fleet_rows.risks(plan),
        )
    return text + _teams(plan, rows)


def _teams(plan: Plan, rows: int) -> str:
    return _fill("teams.md.j2", plan=plan, rows=rows) if plan.teams else ""


def _folds(plan: Plan, groups: list[fleet_rows.Alike], room: int) -> list[str]:
    """Return the folds of the groups that fit, the first of them in full where that fits, too."""
    folds: list[str] = []
    for group in groups:
        fold = _fold(group, plan, "brief")
        if len(fold) > room:
            break
        folds.append(fold)
        room -= len(fold)
    for at, group in enumerate(groups[: len(folds)]):
        fold = _fold(group, plan, "full")
        if len(fold) - len(folds[at]) > room:
            break
        room -= len(fold) - len(folds[at])
        folds[at] = fold
    return folds


def _fold(group: fleet_rows.Alike, plan: Plan, level: str) -> str:
    body = _job(group.first, plan, level=level, mark="###")
    more = [job.name for job in group.jobs[1:]]
    return _fill("details.md.j2", group=group, body=body, others=more)


def _job(job: JobPlan, plan: Plan, *, level: str, mark: str) -> str:
    return _fill(
        _JOB,
        job=job,
        plan=plan,
        level=level,
        mark=mark,
        job_screen=job_screen,
        columns=columns,
        decision=decision,
        why_not=why_not,
        next_steps=next_steps,
        staying=staying,
        has_energy=has_energy,
    )


def _end(plan: Plan) -> str:
    clusters = _fill("cluster.md.j2", plan=plan) if plan.clusters else ""
    single = len(plan.jobs) == 1
    notes = [translate.translate_text(note) for note in (*plan.assumptions, *plan.warnings)]
    shown = notes if single else [fleet_rows.short(note, _LONGEST_NOTE) for note in notes[:_NOTES]]
    jobs = plan.jobs if single else [group.first for group in fleet_rows.group_alike(plan)[:_TOLD]]
    hidden = len(notes) - len(shown)
    return clusters + _fill("end.md.j2", plan=plan, notes=shown, left=hidden, jobs=jobs)


@cache
def environment() -> Environment:
    """Return what fills the templates of reports; `cell` keeps data from breaking tables."""
    filled = templates_in("reports")
    filled.globals.update(
        _=_, translate_text=translate.translate_text, word=word, gap=translate.gap
    )
    filled.filters |= {"cell": cell, "unbroken": unbroken, "with_commands": with_commands}
    filled.filters["name"] = lambda text: cell(fleet_rows.short(str(text)))
    return filled


def _fill(name: str, **values: object) -> str:
    shared = {
        "w": report_text,
        "rate": translate.rate_words(),
        "first_screen": first_screen,
        "year_words": year_words,
        "names": fleet_rows.names,
    }
    return environment().get_template(name).render(**shared, **values)


def _tidy(report: str) -> str:
    """Return a report without runs of empty lines, one line end at its end."""
    lines: list[str] = []
    for line in report.split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).rstrip("\n") + "\n"


def has_energy(today: Baseline, columns: list[tuple[str, Option]]) -> bool:
    """Return whether the energy of any column is known."""
    energies = (report_text.energy(option) for _, option in columns)
    return report_text.energy(today) is not None or any(energies)


STYLES = ("md", "html", "github-comment")


def render_report(
    plan: Plan,
    *,
    style: str = "md",
    lang: str = "en",
    change: PlanChange | None = None,
    over_time: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Return the report of a plan.

    Args:
        plan: made now, or read back.
        style: `md`, `html` or `github-comment`.
        lang: `en` or `zh`.
        change: what changed since an earlier plan; a comment begins with it.
        over_time: what was recorded over time, by job, as the fields of a `TimeLine`; a page
            draws it.

    Raises:
        NotBuiltYetError: another style or language of the contract.
    """
    check_style(style, lang)
    if style != "html":
        plan, change = for_markdown(plan), for_markdown(change)
    with translate.use_language(lang, plan):
        if style == "github-comment":
            return comment(plan, change)
        if style == "html":
            return render_page(plan, over_time or {})
        return markdown_report(plan)


def render_change(change: PlanChange, *, lang: str = "en") -> str:
    """Return what changed between two plans as a comment on GitHub, in `en` or `zh`."""
    with translate.use_language(lang):
        return change_comment(for_markdown(change))


def check_style(style: str, lang: str) -> None:
    """Check that this version has a style and a language.

    Raises:
        NotBuiltYetError: it has not.
    """
    for name, value, choices in (("style", style, STYLES), ("lang", lang, translate.LANGUAGES)):
        if value not in choices:
            raise NotBuiltYetError(
                f"--{name} {value} is not built yet; this version has {', '.join(choices)}."
            )


def render_proof(document: Verification) -> str:
    """Return the report of a verification, as markdown to attach to a pull request."""
    return environment().get_template("proof.md.j2").render(v=for_markdown(document), show=show)


MARKER = "<!-- gpucost report: this comment is updated in place -->"
_COMMENT_ROWS = 25  # of a table in a comment: our own choice
_ZERO = Decimal(0)


def comment(plan: Plan, change: PlanChange | None) -> str:
    """Return the report of a plan as a comment, what changed first where a base was given."""
    top = f"{MARKER}\n" + ("" if change is None else change_text(change))
    return top + markdown_report(plan, limit=MOST_CHARACTERS - len(top))


def change_comment(change: PlanChange) -> str:
    """Return what changed between two plans as a comment of its own."""
    return f"{MARKER}\n{change_text(change).rstrip()}\n"


def change_text(change: PlanChange) -> str:
    """Return what changed between two plans in markdown: causes, findings, jobs."""
    return _fill(
        "change.md.j2",
        period=report_text.period_words(change),
        change=change,
        causes=report_text.causes(change.totals),
        waste=_waste(change),
        jobs=change.moved[:_COMMENT_ROWS],
        left=max(0, len(change.moved) - _COMMENT_ROWS),
        signed=report_text.signed,
        more=report_text.moved_text(change),
    )


def _waste(change: PlanChange) -> list[tuple[str, list[object], int]]:
    """Return new and gone findings, those that put most at stake first, and how many more."""
    tables: list[tuple[str, list[object], int]] = []
    for change_kind in ("new", "gone"):
        rows = [row for row in change.waste if row.what == change_kind]
        rows.sort(key=lambda row: -(row.after or row.before or _ZERO))
        if rows:
            shown: list[object] = [*rows[:_COMMENT_ROWS]]
            tables.append((change_kind, shown, max(0, len(rows) - _COMMENT_ROWS)))
    return tables
