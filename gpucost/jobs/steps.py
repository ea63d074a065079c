"""The steps of a job, each started once on its machine, where it runs whoever is connected."""

import base64
import contextlib
import hashlib
import io
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path

from gpucost.jobs.request import JobRequest
from gpucost.version import __version__
from pricing.errors import InputError, ProviderError
from pricing.listing import counted
from pricing.message import Message
from providers.ssh.connection import ROOT
from providers.ssh.shell import RemoteShell, Transfer
from templates import job_scripts

_MUCH = 10**9
_LARGEST = 3
_MEGABYTE = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentFile:
    """A file or link that is sent.

    Attributes:
        name: path below the folder.
        size: in bytes; 0 for a link.
        is_link: whether it is a symbolic link, which is sent as one.
    """

    name: str
    size: int
    is_link: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentFolder:
    """What of a folder is sent.

    Attributes:
        folder: here.
        files: in the order of their names.
    """

    folder: Path
    files: tuple[_SentFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def text(self) -> str:
        """How much it is, for people."""
        return f"{counted(len(self.files), 'file')}, {self.size / _MEGABYTE:,.1f} MB"

    def notes(self) -> list[str]:
        """Return what its user should know before it is sent."""
        notes = []
        secret = [file.name for file in self.files if Path(file.name).name.startswith(".env")]
        if secret:
            notes.append(
                f"{', '.join(secret)} may hold secrets and is sent; name it in .gitignore to keep "
                "it here"
            )
        if self.size > _MUCH:
            largest = sorted(self.files, key=lambda file: -file.size)[:_LARGEST]
            sizes = ", ".join(f"{o.name} ({o.size / _MEGABYTE:,.0f} MB)" for o in largest)
            notes.append(f"{self.folder}: over 1 GB is sent. The largest: {sizes}")
        outside = [
            file.name for file in self.files if file.is_link and _leaves(self.folder, file.name)
        ]
        if outside:
            notes.append(f"links that lead out of {self.folder} lead nowhere there: {outside[0]}")
        return notes

    def sums(self) -> list[str]:
        """Return lines as sha256sum writes and checks them; links are not among them."""
        return [
            _sum_line(self.folder / file.name, file.name) for file in self.files if not file.is_link
        ]


def code_of(folder: Path) -> _SentFolder:
    """Return what of a folder of code is sent.

    Raises:
        InputError: git cannot say what .gitignore leaves out.
    """
    git = shutil.which("git")
    if git is None:
        ignoring = next(folder.rglob(".gitignore"), None)
        if ignoring is not None:
            raise InputError(Message("input.no-git", path=str(ignoring)))
        return whole_folder(folder)
    with tempfile.TemporaryDirectory() as empty:
        _git(git, "init", "--quiet", "--bare", empty)
        where = (f"--git-dir={empty}", f"--work-tree={folder}", "-C", str(folder))
        rules = ("--others", "--exclude-per-directory=.gitignore", "--exclude=.git", "-z")
        names = _git(git, *where, "ls-files", *rules).split("\0")
    tracked = _tracked(git, folder)
    paths = {name for name in (*names, *tracked) if name and ".git" not in name.split("/")}
    for inner in (name for name in names if name.endswith("/")):  # a repository of its own
        paths |= {f"{inner}{file.name}" for file in code_of(folder / inner).files}
    return _sent_folder(folder, sorted(paths))


def whole_folder(folder: Path) -> _SentFolder:
    """Return every file of a folder."""
    names = [
        os.path.relpath(os.path.join(at, name), folder)  # noqa: PTH118 - one path for each of many
        for at, folders, files in os.walk(folder)
        for name in (*files, *(link for link in folders if os.path.islink(os.path.join(at, link))))  # noqa: PTH118, PTH114 - the same
    ]
    return _sent_folder(folder, sorted(name for name in names if ".git" not in name.split("/")))


def _tracked(git: str, folder: Path) -> list[str]:
    """Return what a repository tracks although .gitignore names it."""
    command = (git, "-C", str(folder), "ls-files", "--cached", "-z")
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - words of ours
    return os.fsdecode(done.stdout).split("\0") if done.returncode == 0 else []


def _git(git: str, *arguments: str) -> str:
    done = subprocess.run((git, *arguments), check=False, capture_output=True)  # noqa: S603 - words of ours
    if done.returncode != 0:
        errors = " ".join(os.fsdecode(done.stderr).split())
        raise InputError(f"git cannot say what is to be sent: {errors}")
    return os.fsdecode(done.stdout)


def _sent_folder(folder: Path, names: list[str]) -> _SentFolder:
    files = []
    for name in names:
        try:
            status = (folder / name).lstat()
        except FileNotFoundError:
            continue  # git still has it; its user has removed it
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link or stat.S_ISREG(status.st_mode):
            files.append(
                _SentFile(name=name, size=0 if is_link else status.st_size, is_link=is_link)
            )
    return _SentFolder(folder=folder, files=tuple(files))


def _leaves(folder: Path, name: str) -> bool:
    return not (folder / name).resolve().is_relative_to(folder.resolve())


def _sum_line(path: Path, name: str) -> str:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if "\\" in name or "\n" in name:  # as sha256sum escapes them
        return f"\\{digest}  {name.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}"
    return f"{digest}  {name}"


NAME = f"gpucost-{__version__}-py3-none-any.whl"
_PACKAGES = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
_EXAMPLES = "gpucost.examples"  # in a checkout they lie outside of their package
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
_WHEEL = "Wheel-Version: 1.0\nGenerator: gpucost\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def own_wheel() -> bytes:
    """Return the wheel; the same bytes for the same installation."""
    files = dict(_files())
    record = f"gpucost-{__version__}.dist-info/RECORD"
    lines = [f"{name},{_sum(data)},{len(data)}" for name, data in files.items()]
    files[record] = "".join(f"{line}\n" for line in (*lines, f"{record},,")).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name, _SAME_TIME), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _files() -> Iterator[tuple[str, bytes]]:
    for package in (*_PACKAGES, _EXAMPLES):
        folder = Path(import_module(package).__path__[0])
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package.replace('.', '/')}/{name}", path.read_bytes()
    distribution = metadata.distribution("gpucost")
    info = f"gpucost-{__version__}.dist-info"
    yield (
        f"{info}/METADATA",
        (distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or "").encode(),
    )
    yield f"{info}/entry_points.txt", (distribution.read_text("entry_points.txt") or "").encode()
    yield f"{info}/WHEEL", _WHEEL.encode()


def _sum(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


_TASK = f'"{ROOT}/var/lib/gpucost/tasks/task"'


class StepFailedError(ProviderError):
    """A step of a job went wrong on its machine; trying again would not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """How far a step is on its machine.

    Attributes:
        word: absent; running; ended; lost: it ran, and the machine knows nothing of its end.
        code: exit status, where it ended.
    """

    word: str
    code: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether it ended well."""
        return self.code == 0


@dataclass(slots=True, kw_only=True)
class JobMachine:
    """A machine that a job runs on.

    Attributes:
        rank: 0 for the first.
        name: ours.
        shell: commands there.
        progress: whether a person looks on.
        facts: what it said of itself; empty before `prepare`.
    """

    rank: int
    name: str
    shell: RemoteShell
    progress: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the folders of the job there, and learn what there is.

        Raises:
            StepFailedError: they cannot be made.
            LostConnectionError: it may be tried again.
        """
        if self.facts:
            return
        done = self.shell.run(job_scripts.prepare_script(), job_scripts.task_script().encode())
        if done.code != 0:
            raise StepFailedError(f"{self.name}: its folders cannot be made: {done.err.strip()}")
        lines = done.out.decode("utf-8", "replace").splitlines()
        self.facts = dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def work(self) -> str:
        """Folder of the job there."""
        return self.facts["work"]

    @property
    def files(self) -> Transfer:
        """How files go there."""
        has_rsync = bool(self.facts.get("rsync"))
        return Transfer(shell=self.shell, rsync=has_rsync, progress=self.progress)

    def send(self, sent: _SentFolder, name: str) -> None:
        """Send files into a folder of the job."""
        names = [file.name for file in sent.files]
        self.files.send(sent.folder, names, f"{self.work}/{name}")

    def start(self, step: str, script: str, *, once: bool = False) -> None:
        """Start a step, unless it runs or has ended well; with `once`, unless it ever started.

        Raises:
            StepFailedError: it does not start.
            LostConnectionError: it may have started; asking again starts it once.
        """
        content = script.encode()
        command = f"{_TASK} start {shlex.quote(step)} {len(content)}{' once' if once else ''}"
        done = self.shell.run(command, content)
        if done.code != 0:
            raise StepFailedError(f"{self.name}: {step} does not start: {done.err.strip()}")

    def read(self, step: str, offset: int = 0, wait_s: int = 0) -> tuple[TaskState, bytes]:
        """Return how far a step is, and its log from a byte on, as far as one answer holds it.

        Args:
            step: its name.
            offset: bytes of the log that are known.
            wait_s: for how long the machine may wait for something new to tell.

        Raises:
            ProviderError: the machine has no steps of a job.
            LostConnectionError: it may be asked again.
        """
        done = self.shell.run(f"{_TASK} read {shlex.quote(step)} {offset} {wait_s}")
        if done.code != 0:
            raise ProviderError(f"{self.name}: no job is known there ({done.err.strip()}).")
        line, _, log = done.out.partition(b"\n")
        word, _, code = line.decode().partition(" ")
        return TaskState(word=word, code=int(code) if code.strip().isdecimal() else None), log

    def stop(self) -> None:
        """End all that runs of the job; a machine that cannot be reached is left."""
        with contextlib.suppress(ProviderError):
            self.shell.run(f"{_TASK} stop")


JOB = "job"
"""The step that runs the command itself."""

_ENVIRONMENTS = ("uv.lock", "requirements.txt", "pyproject.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    """One step on each machine of a job.

    Attributes:
        name: one word, also of its log.
        title: what it does, for people.
        summary: what of the job it takes, for the preview.
        script: what runs there, and asserts that it is done.
        needed: whether the job has it; every job, where it is not said.
        send: puts there what the script needs; nothing, where it is not said.
        once: whether it is never started again, however it ended.
    """

    name: str
    title: str
    summary: Callable[[JobRequest], str]
    script: Callable[[JobRequest, JobMachine, str], str]
    needed: Callable[[JobRequest], bool] = lambda _: True
    send: Callable[[JobRequest, JobMachine], None] = lambda _, __: None
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


def _send_data(request: JobRequest, machine: JobMachine) -> None:
    if not request.fetches:
        machine.send(whole_folder(Path(request.data)), "data")


def _data(request: JobRequest, machine: JobMachine, _: str) -> str:
    target = f"{machine.work}/data"
    if request.fetches:
        return job_scripts.data_script(target, request.data)
    folder = whole_folder(Path(request.data))
    files = sum(not file.is_link for file in folder.files)
    return job_scripts.data_sent_script(target, files, folder.size, folder.text)


def _send_code(request: JobRequest, machine: JobMachine) -> None:
    if request.sync:
        machine.send(code_of(Path(request.sync)), "code")


def _code(request: JobRequest, machine: JobMachine, _: str) -> str:
    folders = tuple(path for path in request.collect if path.endswith("/"))
    if not request.sync:
        return job_scripts.sent_script(f"{machine.work}/code", (), folders, "no code was sent")
    code = code_of(Path(request.sync))
    return job_scripts.sent_script(f"{machine.work}/code", code.sums(), folders, code.text)


def _send_gpucost(_: JobRequest, machine: JobMachine) -> None:
    _upload(machine, f"{machine.work}/{NAME}", own_wheel())


def _gpucost(_: JobRequest, machine: JobMachine, __: str) -> str:
    digest = hashlib.sha256(own_wheel()).hexdigest()
    return job_scripts.gpucost_script(machine.work, f"{machine.work}/{NAME}", digest, __version__)


def _send_recipe(request: JobRequest, machine: JobMachine) -> None:
    if request.recipe:
        _upload(machine, f"{machine.work}/recipe.json", request.recipe.encode())


def _upload(machine: JobMachine, path: str, data: bytes) -> None:
    command = f"cat >'{path}.new' && [ \"$(wc -c <'{path}.new')\" -eq {len(data)} ]"
    done = machine.shell.run(f"{command} && mv '{path}.new' '{path}'", data)
    if done.code != 0:
        raise StepFailedError(f"{machine.name}: {path} cannot be written: {done.err.strip()}")


def _job(request: JobRequest, machine: JobMachine, run: str) -> str:
    return job_scripts.job_script(
        job_scripts.JobScript(
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
    size_text = whole_folder(Path(request.data)).text
    return f"{request.data}, {size_text}, into $GPUCOST_DATA_FOLDER"


def _code_told(request: JobRequest) -> str:
    summary = f"{request.sync}, {code_of(Path(request.sync)).text}" if request.sync else "none"
    return f"{summary}, without what .gitignore names" if request.sync else summary


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
        summary=_data_told,
        send=_send_data,
        script=_data,
    ),
    JobStep(name="code", title="bring the code", summary=_code_told, send=_send_code, script=_code),
    JobStep(
        name="environment",
        title="make the environment",
        needed=lambda request: bool(environment_of(request)),
        summary=_environment_told,
        script=lambda request, machine, _: job_scripts.environment_script(
            machine.work, environment_of(request), request.container
        ),
    ),
    JobStep(
        name="gpucost",
        title="put gpucost there",
        summary=lambda _: f"version {__version__}",
        send=_send_gpucost,
        script=_gpucost,
    ),
    JobStep(
        name=JOB,
        title="run the command",
        summary=_command_told,
        send=_send_recipe,
        script=_job,
        once=True,
    ),
)
