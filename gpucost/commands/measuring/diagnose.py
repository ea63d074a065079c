"""`gpucost diagnose`: what a job wastes and why."""

import click

from gpucost.arguments.parameters import jobs_by_option
from gpucost.files.sources import read_sources
from gpucost.schemas.small_documents import DiagnosedJob, DiagnosisDocument
from gpucost.views.output import READING, Output, Table, output_options, print_json, print_table
from gpucost.views.plan_views.findings import print_findings, shown_readings
from planner.actions import action
from planner.actions.settings import profiled_run, today_settings
from planner.diagnosis.diagnose import diagnose
from planner.diagnosis.rules.rule import Finding
from planner.plan_document.from_job import finding_document, remedy_documents
from planner.plan_document.jobs import RemedyDocument
from planner.profile.model import Profile
from planner.profile.naming import name_apart
from planner.signals.signals import read_signals

_MORE = "`gpucost explain CODE` explains a finding; `gpucost plan` adds dollars and options."


@click.command(name="diagnose", epilog="Example: gpucost diagnose smi.csv")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@jobs_by_option
@output_options
def command(sources: tuple[str, ...], jobs_by: str | None, output: Output) -> None:
    """Say what each job wastes and why; the first finding is the verdict."""
    read = read_sources(sources, output.say, jobs_by, output.progress(READING))
    found = [(p, diagnose(p)) for p in name_apart(read)]
    if output.format == "json":
        print_json(_document(found))
        return
    if output.format == "table":
        print_findings(found)
        output.say(_MORE)
        return
    rows = tuple(_row(p.job.name, finding) for p, findings in found for finding in findings)
    columns = ("job", "finding", "severity", "sure", "wastes", "cause", "evidence", "against", "do")
    print_table(Table(columns=columns, rows=rows, right=frozenset(("wastes",))), output)
    output.say(_MORE)


def _document(found: list[tuple[Profile, tuple[Finding, ...]]]) -> DiagnosisDocument:
    return DiagnosisDocument(
        schema="gpucost.diagnosis/v1",
        jobs=tuple(
            DiagnosedJob(
                name=profile.job.name,
                findings=tuple(finding_document(finding) for finding in findings),
                remedies=_remedies(profile),
            )
            for profile, findings in found
        ),
    )


def _remedies(profile: Profile) -> tuple[RemedyDocument, ...]:
    signals = read_signals(profile)
    machine = today_settings(signals, profiled_run(profile))
    fitted = (action(code, signals) for code in machine.values)
    return remedy_documents(fitted, machine)


def _row(name: str, finding: Finding) -> tuple[str, ...]:
    share = finding.waste_fraction
    return (
        name,
        finding.code,
        finding.severity,
        finding.confidence,
        "" if share is None else f"{share:.0%}",
        finding.cause,
        shown_readings(finding.evidence),
        shown_readings(finding.against),
        ", ".join(finding.actions[:3]),
    )
