"""Fills the page of a plan: what decides, figures to play with, charts, jobs, GPUs."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from templates import advice, report_text
from templates.language.currency import rate_words
from templates.language.speech import (
    gap,
    join,
    page_words,
    say,
    spoken,
    told,
    word,
)
from templates.page.fleet_map import after, before
from templates.page.over_time import drawn
from templates.reports.alike import Alike, alike
from templates.reports.bottom_line import bottom_line
from templates.reports.decision import decision, named_options, year_words
from templates.reports.fleet_rows import fleet_rows, group_row, held, paid, sureness
from templates.totals import alternative, total

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from collections.abc import Mapping

    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument
    from planner.plan_document.options import BaselineDocument, OptionDocument

    Way = BaselineDocument | OptionDocument

_TOLD = 10  # jobs of which the causes are told: our own choice
_NOTES = 200
_RATE_CENTS = 10_000  # an hour, where the plan does not say


def render_page(
    plan: PlanDocument, table: Mapping[str, Any], over_time: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return one HTML file that works offline.

    Args:
        plan: made now, or read back.
        table: the figures that can be worked out again, as `what_if_table` gives them.
        over_time: what was recorded over time, by job.
    """
    single = len(plan.jobs) == 1
    notes = [told(note) for note in (*plan.assumptions, *plan.warnings)]
    groups = alike(plan)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            plan=plan,
            w=report_text,
            title=plan.jobs[0].name if single else say("{n} jobs", n=len(plan.jobs)),
            language=spoken(),
            rate_words=rate_words(),
            held=held,
            sureness=sureness,
            lead=_lead(plan, groups),
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
                    "words": page_words(spoken()),
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
    filled.globals.update(say=say, told=told, word=word, gap=gap, join=join)
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


def _lead(plan: PlanDocument, groups: list[Alike]) -> list[str]:
    if len(plan.jobs) == 1:
        lines = [*advice.headline(plan.jobs[0], plan), bottom_line(plan)]
    else:
        lines = [paid(plan, groups), total(plan), bottom_line(plan)]
    return [line for line in lines if line]


def _ticks(plan: PlanDocument) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return what may be taken: providers, purchases and cures of the options."""
    options = [option for job in plan.jobs for option in job.options]
    cures = {one.code for job in plan.jobs for one in job.remedies}
    used = sorted({code for option in options for code in option.actions if code in cures})
    providers = sorted({option.offer.provider for option in options})
    purchases = sorted({option.offer.purchase for option in options})
    return [
        ("provider", say("Providers"), [(name, name) for name in providers]),
        ("purchase", say("Purchase"), [(name, _purchase(name)) for name in purchases]),
        ("cure", say("Cures"), [(code, report_text.action(code, plan)) for code in used]),
    ]


def _job(job: JobDocument) -> dict[str, Any]:
    named = named_options(job)
    wanted = job.choice or job.option(job.cheapest)
    bill = [{"title": say("today"), "lines": _lines(job.baseline)}]
    for id_, (_, option) in named.items():
        title = say("{id} (at least)", id=id_) if option.cost.at_least else id_
        bill.append({"title": title, "lines": _lines(option)})
    return {
        "hours": _ends(job.baseline),
        "about": wanted.id if wanted else None,
        "ladder": [[_short(titles[0]), id_] for id_, (titles, _) in named.items()],
        "bill": bill,
        "options": [_option(option) for option in job.options],
    }


def _option(option: OptionDocument) -> dict[str, Any]:
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
        **{name: None if e is None else [str(e.low), str(e.high)] for name, e in ends.items()},
    }


def _ends(way: Way) -> list[float]:
    return [way.hours.low, way.hours.mid, way.hours.high]


def _lines(way: Way) -> list[list[str]]:
    return [[word("line", line.what), str(line.usd)] for line in way.cost.lines]
