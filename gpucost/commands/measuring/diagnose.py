"""`gpucost diagnose`: what a job wastes and why."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from gpucost.arguments.parameters import HINT_OPTIONS, options, today
from gpucost.live.sources import SourceReading, read_sources
from gpucost.prices.cache import load_catalog
from gpucost.schemas.small_documents import DiagnosedJob, Diagnosis
from gpucost.views.output import (
    Output,
    Table,
    folder_options,
    language_option,
    output_options,
    print_if_json,
    print_prose,
    print_table,
    terminal_height,
)
from planner.actions import action
from planner.actions.settings import profiled_run, settings_by_action
from planner.choice.requirements import Requirements
from planner.diagnosis.diagnose import diagnose
from planner.pipeline import draft_plan
from planner.plan.job import Remedy
from planner.plan.making import remedy_documents, to_plan
from planner.profile.model import Profile
from planner.profile.source import name_apart
from planner.signals.finding import Finding, Reading
from planner.signals.signals import read_signals
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from templates import report_text
from templates.language.translate import _, join, translate_text, word
from templates.reports.job_screen import job_screen, note_of


@click.command(name="diagnose", epilog="Example: gpucost diagnose smi.csv")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@options(HINT_OPTIONS)
@output_options
@language_option
def command(sources: tuple[str, ...], jobs_by: str | None, output: Output, **hints: Any) -> None:
    """Say what each job wastes and why; the first finding is the verdict."""
    how = SourceReading(folders=folder_options(jobs_by, output), hints=Hints(**hints))
    read = read_sources(sources, output.say, how)
    judged = [(p, diagnose(p)) for p in name_apart(read)]
    if print_if_json(_document(judged), output):
        return
    if output.format == "table":
        print_findings(judged, _first_steps([profile for profile, _findings in judged]))
    else:
        rows = tuple(_row(p.job.name, finding) for p, findings in judged for finding in findings)
        print_table(Table(columns=_COLUMNS, rows=rows, right=frozenset(("wastes",))), output)
    output.say(
        _("`gpucost explain CODE` explains a finding; `gpucost plan` adds dollars and options.")
    )


def _document(judged: list[tuple[Profile, tuple[Finding, ...]]]) -> Diagnosis:
    return Diagnosis(
        jobs=tuple(
            DiagnosedJob(name=profile.job.name, findings=findings, remedies=_remedies(profile))
            for profile, findings in judged
        ),
    )


def _remedies(profile: Profile) -> tuple[Remedy, ...]:
    signals = read_signals(profile)
    settings = settings_by_action(signals, profiled_run(profile))
    return remedy_documents((action(code, signals) for code in settings), settings, {})


def _row(name: str, finding: Finding) -> tuple[str, ...]:
    share = finding.waste_fraction
    return (
        name,
        finding.code,
        word("severity", finding.severity),
        word("confidence", finding.confidence),
        "" if share is None else f"{share:.0%}",
        translate_text(finding.cause),
        shown_readings(finding.evidence),
        shown_readings(finding.against),
        ", ".join(finding.actions[:3]),
    )


_COLUMNS = ("job", "finding", "severity", "sure", "wastes", "cause", "evidence", "against", "do")
_AROUND = 3  # lines of a screen beside the findings: the answer, what to type next, the prompt
_JOBS_REPEATED = 8


def _first_steps(profiles: Sequence[Profile]) -> dict[str, tuple[str, frozenset[str]]]:
    """Return what a plan of today's prices does first for each job: in words, and its actions.

    What a cure gains and costs decides which is first, so there is one home for it. Nothing is
    returned of many jobs, whose plan takes long, and where no plan can be made.
    """
    if len(profiles) > _JOBS_REPEATED:
        return {}
    try:
        catalog = load_catalog(today())
        limits = Requirements(consolidate=False)  # what a job does first is its own, whoever shares
        plan = to_plan(draft_plan(tuple(profiles), catalog, limits, as_of=today()))
    except InputError:
        return {}
    steps = {}
    for job in plan.jobs:
        for step in job_screen(job, plan).actions[:1]:
            doer = job.option(step.id) or job.answer.now
            steps[job.name] = step.text, frozenset(doer.actions if doer else ())
    return steps


def print_findings(
    judged: list[tuple[Profile, tuple[Finding, ...]]],
    first_steps: Mapping[str, tuple[str, frozenset[str]]] | None = None,
) -> None:
    """Print each job's findings as sentences, the verdict first; again where it scrolled away.

    Args:
        judged: each job with its findings.
        first_steps: what its plan does first, in words, and the actions of that; None: unknown.
    """
    steps = first_steps or {}
    printed = sum(_print_job(p, findings, *steps.get(p.job.name, ())) for p, findings in judged)
    notes = dict.fromkeys(
        note for profile, _findings in judged for note in profile.provenance.notes
    )
    for text, (_job, note) in zip(notes, map(note_of, notes), strict=True):
        if note is not None and note.code == "read.unwatched":
            printed += print_prose(translate_text(text))
    if printed + _AROUND > terminal_height():
        wasteful = sorted(judged, key=lambda entry: -_wasted(entry[1]))
        for profile, findings in wasteful[:_JOBS_REPEATED]:
            print_prose(_verdict(profile, findings))
        if len(judged) > _JOBS_REPEATED:
            more = len(judged) - _JOBS_REPEATED
            print_prose(_("These waste most; the other {n} stand above.", n=more))


def _print_job(
    profile: Profile,
    findings: tuple[Finding, ...],
    step: str = "",
    actions: frozenset[str] = frozenset(),
) -> int:
    """Print the findings of a job, and what its plan does first; return on how many lines."""
    lines = print_prose(_verdict(profile, findings))
    # What was cut away is in none of the shares below.
    for note in profile.provenance.notes:
        if getattr(note, "code", "") == "read.idle-ends":
            lines += print_prose(translate_text(note), indent="  ")
    for finding in findings:
        share = finding.waste_fraction
        grades = [word("severity", finding.severity), word("confidence", finding.confidence)]
        if share is not None:
            grades.append(_("wastes {share}", share=report_text.percent(share)))
        head = _("{what}: {text}", what=finding.code, text=join(grades))
        lines += print_prose(head, indent="  ")
        first = step if finding is findings[0] else ""
        if finding is not findings[0]:
            lines += print_prose(translate_text(finding.cause), indent="    ")
        further = [code for code in finding.actions if code not in actions]
        for label, text in (
            (_("seen"), shown_readings(finding.evidence)),
            (_("against"), shown_readings(finding.against)),
            (_("first"), first),
            (_("then") if first else _("try"), join(further[:3])),
        ):
            if text:
                lines += print_prose(_("{what}: {text}", what=label, text=text), indent="    ")
    return lines


def _verdict(profile: Profile, findings: tuple[Finding, ...]) -> str:
    cause = translate_text(findings[0].cause) if findings else _("nothing found.")
    return _("{what}: {text}", what=profile.job.name, text=cause)


def _wasted(findings: tuple[Finding, ...]) -> float:
    return (findings[0].waste_fraction or 0.0) if findings else 0.0


def shown_readings(evidence: Iterable[Reading]) -> str:
    """Return readings for people: `GPU busy 22 %, CPU 96 %`."""
    return join(
        report_text.reading(reading.name, reading.value, reading.unit) for reading in evidence
    )
