"""The scripts that run a job on a machine, one for each step; POSIX sh, and no secret of ours."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from templates import templates_in

_LAUNCHERS = re.compile(
    r"(?:\S*/)?(?:torchrun|accelerate|deepspeed|mpirun|mpiexec|srun|ray|horovodrun|"
    r"python[0-9.]* -m torch\.distributed\.\w+)(?:\s|$)"
)
_PLAIN = re.compile(r"[\w@%+=:,./~ \"'\-]*")  # a command line in which only words and quotes stand
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScript:
    """What the script that runs a job needs to know.

    Attributes:
        run: id of the run.
        work: folder of the job on the machine.
        command: as its user wrote it, for a shell.
        container: image that it runs in; empty: on the machine itself.
        recipe: whether a recipe lies beside it.
    """

    run: str
    work: str
    command: str
    container: str
    recipe: bool


def task_script() -> str:
    """Return the program that starts steps and tells how far they are."""
    return _render("task.sh.j2")


def prepare_script() -> str:
    """Return what makes the folders of a job, takes `task_script` and says what a machine has."""
    return _render("prepare.sh.j2")


def sent_script(folder: str, sums: Iterable[str], folders: Iterable[str], message: str) -> str:
    """Return what checks that files arrived.

    Args:
        folder: where they lie.
        sums: lines of sha256sum, with paths from there.
        folders: to be made there for what the job writes.
        message: where all is well.
    """
    return _render("sent.sh.j2", folder=folder, sums=sums, folders=folders, told=message)


def data_sent_script(folder: str, files: int, size: int, message: str) -> str:
    """Return what checks that so many files, of so many bytes, lie in a folder."""
    return _render("data_sent.sh.j2", folder=folder, files=files, size=size, told=message)


def data_script(folder: str, source: str) -> str:
    """Return what fetches `s3://...` or `https://...` into a folder."""
    name = urlsplit(source).path.rpartition("/")[2] or "data"
    return _render("data.sh.j2", folder=folder, source=source, name=name)


def environment_script(work: str, kind: str, container: str = "") -> str:
    """Return what makes the environment of a job.

    Args:
        work: folder of the job.
        kind: "uv.lock", "pyproject.toml", "requirements.txt" or "container".
        container: its image.
    """
    return _render("environment.sh.j2", work=work, kind=kind, container=container)


def gpucost_script(work: str, wheel: str, sha256: str, version: str) -> str:
    """Return what installs a wheel, with what its lock names, beside the job and tries gpucost.

    Args:
        work: folder of the job.
        wheel: path of gpucost's wheel on the machine.
        sha256: of its bytes, in hexadecimal digits.
        version: that gpucost must say.
    """
    return _render("gpucost.sh.j2", work=work, wheel=wheel, sum=sha256, version=version)


def job_script(job: JobScript) -> str:
    """Return what runs the job."""
    launches = _LAUNCHERS.match(job.command.strip()) is not None
    return _render("job.sh.j2", words=_quoted(job.command), launches_itself=launches, **asdict(job))


def _quoted(command: str) -> str:
    """Return the command as quoted words; through a shell only where it needs one."""
    if _PLAIN.fullmatch(command):
        try:
            argv = shlex.split(command)
        except ValueError:
            argv = []
        if argv and not _ASSIGNMENT.match(argv[0]) and not any("~" in word for word in argv):
            return shlex.join(argv)
    return shlex.join(("sh", "-c", command))


def _render(name: str, /, **values: object) -> str:
    environment = templates_in("jobs", are_shell=True)
    environment.filters |= {"shell": shlex.quote, "comment": _in_double_quotes}
    return environment.get_template(name).render(values)


def _in_double_quotes(text: str) -> str:
    """Return a text for people between double quotes, where a shell evaluates nothing of it."""
    return re.sub(r"[^\w@%+=:,./ -]", "_", text)
