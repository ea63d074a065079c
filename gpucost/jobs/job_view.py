"""What a person sees of a job: its steps before the launch, and how it ended."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpucost.jobs.code_files import code_of, whole_folder
from gpucost.jobs.request import JobRequest
from gpucost.jobs.results import JobOutcome
from gpucost.jobs.steps import STEPS
from gpucost.views.job_documents import JobEndDocument, JobPreviewDocument, JobStepDocument
from gpucost.views.output import Output, print_json
from gpucost.views.run_documents import RUN_SCHEMA, run_document
from providers.interface import Deployment


def preview_job(request: JobRequest) -> JobPreviewDocument:
    """Return the steps of a job that is about to be launched, what is sent and what comes back."""
    steps = (step for step in STEPS if step.needed(request))
    return JobPreviewDocument(
        steps=tuple(
            JobStepDocument(step=step.name, does=step.title, what=step.told(request))
            for step in steps
        ),
        collect=(*request.collect, "after.json"),
        notes=tuple(_notes(request)),
    )


def _notes(request: JobRequest) -> Iterator[str]:
    if request.sync:
        yield from code_of(Path(request.sync)).notes()
    if request.data and not request.fetches:
        yield from whole_folder(Path(request.data)).notes()
    if request.data.startswith("s3://"):
        yield "the machine reads the bucket with rights of its own; no credentials are sent"
    if request.container:
        yield "in a container the GPUs are measured, and not the steps of the program"
    if not request.collect:
        yield "what the job writes goes with the machine; --collect outputs/ brings it back"


def show_outcome(run: Deployment, outcome: JobOutcome, output: Output, now: datetime) -> None:
    """Print how a job ended: as JSON with its run, else in a sentence for people."""
    results = outcome.results
    if output.format == "json":
        end = JobEndDocument(
            exit_status=outcome.code,
            collected=tuple(str(path) for path in results.files),
            profile=None if results.profile is None else str(results.profile),
        )
        print_json(replace(run_document(run, now), schema=RUN_SCHEMA, job=end))
        return
    output.say(f"{run.marks.run}: the job ended with exit status {outcome.code}")
    if results.profile is not None:
        output.say(f"next: gpucost diagnose {results.profile}")
