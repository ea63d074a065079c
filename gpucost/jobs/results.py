"""What a job leaves, brought back: the files that were asked for, and the machine's profile."""

from dataclasses import dataclass
from pathlib import Path

from gpucost.jobs.remote_tasks import JobMachine
from gpucost.jobs.stepping import RunningJob
from pricing.errors import ProviderError

_PROFILE = "after.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What came back.

    Attributes:
        files: where what was asked for lies now.
        profile: of the first machine; None where nothing was measured.
        problems: what did not come, in sentences.
    """

    files: tuple[Path, ...]
    profile: Path | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job ended.

    Attributes:
        code: exit status of its command.
        results: what came back.
    """

    code: int
    results: Results


def bring_back(job: RunningJob) -> Results:
    """Bring back what each machine has of it; one that fails keeps nothing else.

    Raises:
        PartialError: a machine cannot be reached any more.
    """
    files: list[Path] = []
    problems: list[str] = []
    profile = None
    for machine in job.machines:
        target = _folder_of(job, machine)
        for path in job.request.collect:
            try:
                _fetch(job, machine, f"{machine.work}/code", path.rstrip("/"), target)
                files.append(target / path)
            except (ProviderError, OSError) as error:
                problems.append(f"{path} of {machine.name} did not come back: {error}")
        found = _bring_profile(job, machine)
        profile = found if machine.rank == 0 else profile
    return Results(files=tuple(files), profile=profile, problems=tuple(problems))


def _fetch(job: RunningJob, machine: JobMachine, source: str, name: str, target: Path) -> None:
    job.persevere(lambda: machine.files.fetch(source, name, target))


def _folder_of(job: RunningJob, machine: JobMachine) -> Path:
    """Return the folder of a machine's results: beside the code; after the first, one for each."""
    request = job.request
    if machine.rank == 0:
        return Path(request.sync or request.folder)
    return Path(request.folder) / job.run / f"node-{machine.rank}"


def _bring_profile(job: RunningJob, machine: JobMachine) -> Path | None:
    source = f"{machine.work}/profile"
    listed = job.persevere(lambda: machine.shell.run(f"ls -1 '{source}'"))
    names = [name for name in listed.out.decode("utf-8", "replace").splitlines() if name]
    if _PROFILE not in names:
        return None
    target = Path(job.request.folder)
    if machine.rank:
        target = target / job.run / f"node-{machine.rank}"
    elif (target / _PROFILE).exists():
        target = target / job.run
    for name in names:
        _fetch(job, machine, source, name, target)
    return target / _PROFILE
