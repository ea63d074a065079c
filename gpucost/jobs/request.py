"""What is to run on the machines of a launch, and the folder that keeps it on this computer."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpucost.machines.state import job_request_file
from pricing.errors import InputError, RefusedError
from pricing.message import Message
from providers.private_files import open_private, private_folder, read_private, write_private

_FETCHED = ("s3://", "https://", "http://")


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as it was asked for.

    Attributes:
        command: for a shell.
        folder: where results come to.
        sync: folder of the code; empty: none is sent.
        data: folder here, or address that the machine fetches; empty: none.
        collect: paths below the code that come back.
        recipe: text of a recipe.json; empty: none.
        container: image that the command runs in; empty: on the machine itself.
    """

    command: str
    folder: str
    sync: str = ""
    data: str = ""
    collect: tuple[str, ...] = ()
    recipe: str = ""
    container: str = ""

    @property
    def fetches(self) -> bool:
        """Whether the machine itself fetches the data."""
        return self.data.startswith(_FETCHED)


def request_job(typed: dict[str, Any]) -> JobRequest | None:
    """Return the job of a command line; None where none is asked for.

    Args:
        typed: options of `gpucost provision` by name.

    Raises:
        InputError: all that is wrong with it.
    """
    command: str | None = typed["run"]
    if command is None:
        names = ("sync", "data", "collect", "container", "recipe")
        flags = ", ".join(f"--{name}" for name in names if typed[name])
        if flags:
            raise InputError(Message("job.only-with-run", flags=flags))
        return None
    problems = [*_problems(typed, command)]
    recipe = ""
    if typed["recipe"]:
        try:
            recipe = _recipe_text(Path(typed["recipe"]))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    data = typed["data"] or ""
    return JobRequest(
        command=command,
        folder=str(Path.cwd()),
        sync=str(Path(typed["sync"]).resolve()) if typed["sync"] else "",
        data=data if not data or data.startswith(_FETCHED) else str(Path(data).resolve()),
        collect=tuple(_plain_path(path) for path in typed["collect"]),
        recipe=recipe,
        container=typed["container"] or "",
    )


def _problems(typed: dict[str, Any], command: str) -> list[str]:
    problems: list[str] = []
    if not command.strip():
        problems.append(Message("job.empty"))
    if not typed["wait"]:
        problems.append(Message("job.no-wait"))
    if typed["placement"] is not None:
        problems.append(Message("job.placement"))
    for name in ("sync", "data"):
        folder = typed[name]
        fetched = name == "data" and str(folder).startswith(_FETCHED)
        if folder and not fetched and not Path(folder).is_dir():
            also = ", nor an address that begins with s3:// or https://" if name == "data" else ""
            problems.append(Message("job.no-folder", name=name, folder=str(folder), also=also))
    for path in typed["collect"]:
        parts = Path(path).parts
        if not parts or Path(path).is_absolute() or ".." in parts:
            problems.append(Message("job.collect", path=path))
    return problems


def _plain_path(path: str) -> str:
    """Return a path without "./"; a folder keeps its slash, so that it is made before the job."""
    return f"{Path(path).as_posix()}{'/' if path.endswith('/') else ''}"


def _recipe_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        recipe = json.loads(text)
    except OSError as error:
        raise InputError(f"--recipe {path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"--recipe {path}: not JSON: {error}.") from error
    if not isinstance(recipe, dict) or recipe.get("schema") != "gpucost.recipe/v1":
        raise InputError(Message("job.no-recipe", path=str(path)))
    return text


_REQUEST = "request.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolder:
    """The folder of a job, for its owner alone: a command may hold a secret.

    Attributes:
        path: of the folder.
    """

    path: Path

    def keep(self, request: JobRequest) -> None:
        """Write the request down.

        Raises:
            RefusedError: it cannot be written.
        """
        try:
            for folder in (self.path.parent.parent, self.path.parent, self.path):
                private_folder(folder)
            write_private(self.path / _REQUEST, msgspec.json.encode(request).decode())
        except OSError as error:
            raise RefusedError(f"{self.path}: cannot be written: {error.strerror}.") from error

    def request(self) -> JobRequest | None:
        """Return the request; None where no job was asked for.

        Raises:
            InputError: the file is damaged.
        """
        try:
            return msgspec.json.decode(read_private(self.path / _REQUEST), type=JobRequest)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise InputError(f"{self.path / _REQUEST}: cannot be read: {error}.") from error

    def log_file(self, step: str, rank: int) -> Path:
        """Return where the log of a step is kept."""
        return self.path / (f"{step}.log" if rank == 0 else f"{step}-{rank}.log")

    def write_log(self, step: str, rank: int, at: int, data: bytes) -> None:
        """Keep a part of a log, from byte `at` on; what cannot be kept is left out."""
        try:
            handle = open_private(self.log_file(step, rank), os.O_WRONLY)
            try:
                os.ftruncate(handle, at)
                os.pwrite(handle, data, at)
            finally:
                os.close(handle)
        except OSError:
            return

    def drop(self) -> None:
        """Remove the request of a launch that came to nothing."""
        (self.path / _REQUEST).unlink(missing_ok=True)


def job_folder(run: str) -> JobFolder:
    """Return the folder of a run's job."""
    return JobFolder(path=job_request_file(run).parent)
