"""Where a measurement's profile goes, so that no other measurement's is overwritten.

`profile.json` where that name is free. A profile there of another job, machine or Slurm job stays,
and so does what another measurement that runs now will write: then the name says whose it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from telemetry.measure.identity import host_name, launch_of, node_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MOST_NAMES = 1000
_NAMELESS = "profile"  # what the profile of a measurement without a name calls its job
_MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputName:
    """Where the profile of a run of several processes goes, once it turns out to be one.

    Attributes:
        path: the name that was asked for, or the default.
        requested: whether it was asked for: then it may be replaced, whose ever it is.
        launch: what the processes of the same launch have in common; None where nothing shows.
    """

    path: str
    requested: bool
    launch: str | None = None


@dataclass(slots=True)
class ReservedName:
    """A name that is ours as long as we run.

    Attributes:
        path: where the profile goes.
        reason: why it is not the name that was expected; empty where it is.
        run_name: where the profile of the whole run goes, if this measures a part of one.
    """

    path: Path
    reason: str = ""
    run_name: OutputName | None = None
    _lock: int | None = None

    def release(self) -> None:
        """Give the name back."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                _lock_of(self.path).unlink()
                os.close(self._lock)
            self._lock = None


def reserve_name(
    requested: str | Path | None,
    job: str | None,
    environ: Mapping[str, str],
    command: Sequence[str] = (),
) -> ReservedName:
    """Return the name for a profile, claimed until it is released or this process ends.

    Args:
        requested: the name that was asked for; its profile may be replaced. None for the default.
        job: the job's name.
        environ: tells the Slurm job and the rank.
        command: what runs, if it is ours; a launcher in it may tell that there are more machines.
    """
    from gpucost.arguments.parameters import DEFAULT_PROFILE  # noqa: PLC0415 - not in the sampler

    first = Path(DEFAULT_PROFILE if requested is None else requested)
    launch = launch_of(environ, command)
    run_name = OutputName(
        path=str(first.absolute()), requested=requested is not None, launch=launch
    )
    reason = ""
    for path in _names(first, job, environ):
        owner = None if requested is not None else _owner(path, job, environ)
        if owner is not None:
            reason = reason or f"{path.name} is of {owner} and stays"
            continue
        is_taken, lock = _locked(path, launch)
        if is_taken:
            if not _free_for(path, launch):  # of another launch: not a rank beside this one
                reason = reason or f"{path.name} is being written by another measurement"
            continue
        sentence = f"{reason}; this one goes to {path.name}." if reason else ""
        return ReservedName(path, sentence, run_name, lock)
    return ReservedName(first, run_name=run_name)


def free_for_run(run_name: OutputName, own: Path, job: str | None, run: str) -> Path:
    """Return where the profile of a whole run goes.

    Args:
        run_name: the name for the whole run.
        own: the name that this part has claimed.
        job: the job's name.
        run: digits of the run's name.
    """
    first = Path(run_name.path)
    if run_name.requested:
        return first
    stem = first.name.removesuffix(".json")
    word = _UNSAFE.sub("-", job or "").strip("-")
    names = [first, *([first.with_name(f"{stem}.{word}.json")] if word else [])]
    for path in names:
        if _owner(path, job, {}) is None and (path == own or _free_for(path, run_name.launch)):
            return path
    return first.with_name(f"{stem}.{word}.{run}.json" if word else f"{stem}.{run}.json")


def _free_for(path: Path, launch: str | None) -> bool:
    """Return whether no other measurement holds a name, or one of the same launch does."""
    try:
        with _lock_of(path).open("rb") as lock:
            holder = lock.read().decode("ascii", "replace")
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return launch is not None and holder == launch
    except OSError:
        return True
    return True


def _names(first: Path, job: str | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the default, then names with job, with host, Slurm job and rank, with numbers."""
    labels = [_UNSAFE.sub("-", word).strip("-") for word in (job or "", host_name())]
    slurm, rank = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_PROCID", "")
    if slurm.isdecimal():
        labels.append(slurm)
        if rank.isdecimal() and environ.get("SLURM_NTASKS", "1") != "1":
            labels.append(f"rank{rank}")
    stem = first.name.removesuffix(".json")
    yield first
    if labels[0]:
        yield first.with_name(f"{stem}.{labels[0]}.json")
    longest = ".".join([stem, *filter(None, labels)])
    yield first.with_name(f"{longest}.json")
    for i in range(2, _MOST_NAMES):
        yield first.with_name(f"{longest}.{i}.json")


def _owner(path: Path, job: str | None, environ: Mapping[str, str]) -> str | None:
    """Return whose profile lies there; None where there is none, or an older one of ours."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return "someone"
        document = json.loads(path.read_bytes())
        owner_job, run = document["job"]["name"], document.get("run") or {}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "someone"
    if owner_job != (job or _NAMELESS):
        return f"job {owner_job}"
    if run.get("node") not in {None, node_of(host_name())}:
        return f"job {owner_job} on another machine"
    slurm = environ.get("SLURM_JOB_ID")
    if slurm and run.get("id") and not str(run["id"]).startswith(f"slurm {slurm}"):
        return f"job {owner_job} of {run['id']}"
    return None


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.measuring")


def _locked(path: Path, launch: str | None) -> tuple[bool, int | None]:
    """Return whether another measurement holds the name, and our hold on it, if any."""
    lock = _lock_of(path)
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        return False, None  # the folder says so itself when something is to be written
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it may have removed it meanwhile.
        if os.fstat(handle).st_ino == lock.stat().st_ino:
            os.ftruncate(handle, 0)
            os.write(handle, (launch or "").encode())
            return False, handle
    except BlockingIOError:
        os.close(handle)
        return True, None
    except OSError:
        os.close(handle)
        return False, None
    os.close(handle)
    return _locked(path, launch)


def target_problems(target: str, example: str) -> Iterator[str]:
    """Yield why a profile cannot be written to a file.

    Args:
        target: as -o names it.
        example: a name that can be, for the sentence.
    """
    folder = Path(target).parent
    if target == "-" or target.endswith("/") or Path(target).is_dir():
        yield f"-o {target}: name a file, such as {example}."
    elif not folder.is_dir():
        yield f"-o {target}: there is no folder {folder}; make it first."
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield f"-o {target}: nothing can be written to {folder}."
