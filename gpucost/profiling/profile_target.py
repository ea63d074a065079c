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

from gpucost.arguments.parameters import DEFAULT_PROFILE
from planner.telemetry.measure.machine.run_identity import host_name, node_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MOST_NAMES = 1000
_NAMELESS = "profile"  # what the profile of a measurement without a name calls its job
_MOST_BYTES = 8 << 20


@dataclass(slots=True)
class Claim:
    """A name that is ours as long as we run.

    Attributes:
        path: where the profile goes.
        reason: why it is not the name that was expected; empty where it is.
    """

    path: Path
    reason: str = ""
    _lock: int | None = None

    def release(self) -> None:
        """Give the name back."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                _lock_of(self.path).unlink()
                os.close(self._lock)
            self._lock = None


def claimed(asked: str | Path | None, job: str | None, environ: Mapping[str, str]) -> Claim:
    """Return the name for a profile, claimed until it is released or this process ends.

    Args:
        asked: the name that was asked for; its profile may be replaced. None for the default.
        job: the job's name.
        environ: tells the Slurm job and the rank.
    """
    first = Path(DEFAULT_PROFILE if asked is None else asked)
    reason = ""
    for path in _names(first, job, environ):
        owner = None if asked is not None else _owner(path, job, environ)
        if owner is not None:
            reason = reason or f"{path.name} is of {owner} and stays"
            continue
        taken, lock = _locked(path)
        if taken:
            reason = reason or f"{path.name} is being written by another measurement"
            continue
        return Claim(path, f"{reason}; this one goes to {path.name}." if reason else "", lock)
    return Claim(first)


def _names(first: Path, job: str | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the default, then names with job, with host, Slurm job and rank, with numbers."""
    words = [_UNSAFE.sub("-", word).strip("-") for word in (job or "", host_name())]
    slurm, rank = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_PROCID", "")
    if slurm.isdecimal():
        words.append(slurm)
        if rank.isdecimal() and environ.get("SLURM_NTASKS", "1") != "1":
            words.append(f"rank{rank}")
    stem = first.name.removesuffix(".json")
    yield first
    if words[0]:
        yield first.with_name(f"{stem}.{words[0]}.json")
    longest = ".".join([stem, *filter(None, words)])
    yield first.with_name(f"{longest}.json")
    for i in range(2, _MOST_NAMES):
        yield first.with_name(f"{longest}.{i}.json")


def _owner(path: Path, job: str | None, environ: Mapping[str, str]) -> str | None:
    """Return whose profile lies there; None where there is none, or an older one of ours."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return "someone"
        found = json.loads(path.read_bytes())
        theirs, run = found["job"]["name"], found.get("run") or {}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "someone"
    if theirs != (job or _NAMELESS):
        return f"job {theirs}"
    if run.get("node") not in {None, node_of(host_name())}:
        return f"job {theirs} on another machine"
    slurm = environ.get("SLURM_JOB_ID")
    if slurm and run.get("id") and not str(run["id"]).startswith(f"slurm {slurm}"):
        return f"job {theirs} of {run['id']}"
    return None


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.measuring")


def _locked(path: Path) -> tuple[bool, int | None]:
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
            return False, handle
    except BlockingIOError:
        os.close(handle)
        return True, None
    except OSError:
        os.close(handle)
        return False, None
    os.close(handle)
    return _locked(path)
