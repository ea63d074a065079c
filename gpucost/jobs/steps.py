"""The steps from a ready machine to a running command, in order: one row each.

A row says what is sent and which script runs on the machine; the script asserts what the step is
for (files as they were sent, an environment that starts, a gpucost that has measured something),
so that its exit status is the step's. What has ended well on a machine is not done again there.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpucost.jobs.code_files import code_of, whole_folder
from gpucost.jobs.own_wheel import NAME, own_wheel
from gpucost.jobs.remote_tasks import JobMachine, StepFailedError
from gpucost.jobs.request import JobRequest
from gpucost.version import __version__
from templates.job_scripts import (
    JobScript,
    data_script,
    data_sent_script,
    environment_script,
    gpucost_script,
    job_script,
    sent_script,
)

JOB = "job"
"""The step that runs the command itself."""

_ENVIRONMENTS = ("uv.lock", "requirements.txt", "pyproject.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    """One step on each machine of a job.

    Attributes:
        name: one word, also of its log.
        title: what it does, for people.
        needed: whether the job has it.
        told: what of the job it takes, for the preview.
        send: puts there what the script needs.
        script: what runs there, and asserts that it is done.
        once: whether it is never started again, however it ended.
    """

    name: str
    title: str
    needed: Callable[[JobRequest], bool]
    told: Callable[[JobRequest], str]
    send: Callable[[JobRequest, JobMachine], None]
    script: Callable[[JobRequest, JobMachine, str], str]
    once: bool = False


def environment_of(request: JobRequest) -> str:
    """Return what the environment of a job is made from; empty: the machine's Python serves."""
    if request.container:
        return "container"
    for name in _ENVIRONMENTS if request.sync else ():
        path = Path(request.sync) / name
        if path.is_file() and (name != "pyproject.toml" or _is_project(path)):
            return name
    return ""


def _is_project(path: Path) -> bool:
    """Return whether a pyproject.toml names a project, and not only settings of tools."""
    try:
        return "project" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _nothing(_: JobRequest, __: JobMachine) -> None:
    """Send nothing."""


def _send_data(request: JobRequest, machine: JobMachine) -> None:
    if not request.fetches:
        folder = whole_folder(Path(request.data))
        names = [one.name for one in folder.files]
        machine.files.send(folder.folder, names, f"{machine.work}/data")


def _data(request: JobRequest, machine: JobMachine, _: str) -> str:
    target = f"{machine.work}/data"
    if request.fetches:
        return data_script(target, request.data)
    folder = whole_folder(Path(request.data))
    files = sum(not one.is_link for one in folder.files)
    return data_sent_script(target, files, folder.size, folder.text)


def _send_code(request: JobRequest, machine: JobMachine) -> None:
    if request.sync:
        code = code_of(Path(request.sync))
        names = [one.name for one in code.files]
        machine.files.send(code.folder, names, f"{machine.work}/code")


def _code(request: JobRequest, machine: JobMachine, _: str) -> str:
    folders = tuple(path for path in request.collect if path.endswith("/"))
    if not request.sync:
        return sent_script(f"{machine.work}/code", (), folders, "no code was sent")
    code = code_of(Path(request.sync))
    return sent_script(f"{machine.work}/code", code.sums(), folders, code.text)


def _send_gpucost(_: JobRequest, machine: JobMachine) -> None:
    path = f"{machine.work}/{NAME}"
    _put(machine, path, own_wheel())


def _send_recipe(request: JobRequest, machine: JobMachine) -> None:
    if request.recipe:
        _put(machine, f"{machine.work}/recipe.json", request.recipe.encode())


def _put(machine: JobMachine, path: str, data: bytes) -> None:
    put = f"cat >'{path}.new' && [ \"$(wc -c <'{path}.new')\" -eq {len(data)} ]"
    done = machine.shell.run(f"{put} && mv '{path}.new' '{path}'", data)
    if done.code != 0:
        raise StepFailedError(f"{machine.name}: {path} cannot be written: {done.err.strip()}")


def _job(request: JobRequest, machine: JobMachine, run: str) -> str:
    return job_script(
        JobScript(
            run=run,
            work=machine.work,
            command=request.command,
            container=request.container,
            recipe=bool(request.recipe),
        )
    )


def _data_told(request: JobRequest) -> str:
    if request.fetches:
        return f"{request.data}, fetched there into $GPUCOST_DATA_FOLDER"
    told = whole_folder(Path(request.data)).text
    return f"{request.data}, {told}, into $GPUCOST_DATA_FOLDER"


def _code_told(request: JobRequest) -> str:
    told = f"{request.sync}, {code_of(Path(request.sync)).text}" if request.sync else "none"
    return f"{told}, without what .gitignore names" if request.sync else told


def _environment_told(request: JobRequest) -> str:
    kind = environment_of(request)
    return f"docker image {request.container}" if kind == "container" else f"uv, from {kind}"


def _command_told(request: JobRequest) -> str:
    how = "under the recipe, measured" if request.recipe else "measured"
    return f"{request.command} ({how}; it goes on when the connection breaks)"


STEPS = (
    JobStep(
        name="data",
        title="stage the data",
        needed=lambda request: bool(request.data),
        told=_data_told,
        send=_send_data,
        script=_data,
    ),
    JobStep(
        name="code",
        title="bring the code",
        needed=lambda _: True,
        told=_code_told,
        send=_send_code,
        script=_code,
    ),
    JobStep(
        name="environment",
        title="make the environment",
        needed=lambda request: bool(environment_of(request)),
        told=_environment_told,
        send=_nothing,
        script=lambda request, machine, _: environment_script(
            machine.work, environment_of(request), request.container
        ),
    ),
    JobStep(
        name="gpucost",
        title="put gpucost there",
        needed=lambda _: True,
        told=lambda _: f"version {__version__}",
        send=_send_gpucost,
        script=lambda _, machine, __: gpucost_script(machine.work, NAME, __version__),
    ),
    JobStep(
        name=JOB,
        title="run the command",
        needed=lambda _: True,
        told=_command_told,
        send=_send_recipe,
        script=_job,
        once=True,
    ),
)
