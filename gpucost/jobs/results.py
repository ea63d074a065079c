"""What a job leaves, brought into a folder of its run: `gpucost-runs/ID/`, never beside the code.

The machine is not trusted: its files pass `unpack`, its profile is read before it
counts, and what is not taken is told.
"""

import contextlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from gpucost.jobs.stepping import RunningJob
from gpucost.jobs.steps import JobMachine
from planner.profile.codec import parse_profiles
from planner.profile.model import SAMPLES, STEPS
from pricing.errors import InputError, ProviderError, RefusedError

MOST_ENTRIES = 100_000
"""Files, folders and links of one fetch; a limit of our own."""

_CHUNK = 1 << 20
_MOST_HEADER = 1 << 13  # of a long name, bytes; Linux knows paths of up to 4,096
_MOST_NAME, _MOST_PATH = 255, 1024
_MOST_TOLD = 20
_LATEST = 2**32
_GIT = frozenset((".git", "git~1", "head"))
"""Names that make git take a folder for a repository, whose settings may run programs."""


class UnfitResultsError(RefusedError):
    """What came may not be unpacked, or cannot be written here."""


@dataclass(kw_only=True)
class Received:
    """What was unpacked.

    Attributes:
        entries: how many of the archive were read.
        size: bytes of them.
        left_behind: what was not made, with the reason; after the first few their number.
    """

    entries: int = 0
    size: int = 0
    left_behind: list[str] = field(default_factory=list)
    _more: int = 0

    def leave(self, name: str, reason: str) -> None:
        """Note what is not made; its name as ASCII, so that it does nothing to a terminal."""
        if len(self.left_behind) < _MOST_TOLD:
            self.left_behind.append(f"{name!a:.120}: {reason}")
        else:
            self._more += 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left behind, for people."""
        more = (f"and {self._more} more",) if self._more else ()
        return (*self.left_behind, *more)


class _Header(tarfile.TarInfo):
    """A header of GNU's format whose announced length costs no memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> "_Header":
        header = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type] # as tarfile calls it
        if header.size < 0:
            raise UnfitResultsError("its archive announces a negative length.")
        if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            if header.size > _MOST_HEADER:
                raise UnfitResultsError(f"its archive has a name of {header.size:,} bytes.")
        elif header.type in (b"x", b"g", b"X", tarfile.GNUTYPE_SPARSE):
            raise UnfitResultsError("its archive is not in GNU's plain format.")
        return header


def unpack(
    stream: IO[bytes], target: Path, wants: Callable[[PurePosixPath], bool], most_bytes: int
) -> Received:
    """Write what is wanted of a stream of tar into an empty folder of ours.

    Args:
        stream: as `tar --format=gnu` writes it; it is read to its end and trusted in nothing.
        target: the folder.
        wants: whether a path was asked for.
        most_bytes: of all that is announced.

    Raises:
        UnfitResultsError: no such archive, too much of it, or it cannot be written here.
        tarfile.ReadError: it ends too early.
        OSError: the stream cannot be read.
    """
    target, received, links = target.resolve(), Received(), list[tuple[Path, str]]()
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
            while (member := archive.next()) is not None:
                received.entries += 1
                received.size += member.size
                _hold_limits(received, most_bytes)
                name = PurePosixPath(member.name)
                reason = _refusal(member, name)
                if reason or not wants(name):
                    received.leave(member.name, reason or "it was not asked for")
                elif member.issym():
                    links.append((target / name, member.linkname))
                elif not _unpack_member(archive, member, target / name):
                    received.leave(member.name, "another of that name came before it")
                archive.members.clear()  # type: ignore[attr-defined] # it would keep every one
        for path, to in links:
            if not _linked(path, to):
                received.leave(str(path.relative_to(target)), "another of that name came before it")
    except (UnfitResultsError, OSError, EOFError, tarfile.ReadError):
        raise
    except Exception as error:
        raise UnfitResultsError(f"its archive cannot be read ({type(error).__name__}).") from error
    return received


def _hold_limits(received: Received, most_bytes: int) -> None:
    if received.entries > MOST_ENTRIES:
        raise UnfitResultsError(f"over {MOST_ENTRIES:,} files; let the job pack them into one.")
    if received.size > most_bytes:
        raise UnfitResultsError(
            f"over {most_bytes / 1e9:,.1f} GB, which is all that may be taken of this disk."
        )


def _refusal(member: tarfile.TarInfo, path: PurePosixPath) -> str:
    """Return why an entry is not made; empty where it may be."""
    if path.is_absolute() or ".." in path.parts or not member.name.isprintable():
        return "its name leads elsewhere or holds control characters"
    if any(part.casefold().rstrip(". ") in _GIT for part in path.parts):
        return "git would take its folder for a repository"
    encoded = [len(part.encode()) for part in path.parts]
    if max(encoded, default=0) > _MOST_NAME or sum(encoded) + len(encoded) > _MOST_PATH:
        return "its name is too long"
    if member.issym():
        return "" if _stays_inside(path, member.linkname) else "a link that leads out"
    return "" if member.isreg() or member.isdir() else "not a file, a folder or a link"


def _stays_inside(path: PurePosixPath, to: str) -> bool:
    """Return whether a link leads below the folder; a `..` behind a name could follow a link."""
    parts = PurePosixPath(to).parts
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    plain = to.isprintable() and not to.startswith("/") and ".." not in parts[up:]
    return plain and bool(parts) and up < len(path.parts)


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> bool:
    """Make a folder or a new file; False where its name is taken."""
    try:
        with _written(path):
            (path if member.isdir() else path.parent).mkdir(parents=True, exist_ok=True)
            if member.isdir():
                return True
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(path, flags, 0o777 if member.mode & 0o100 else 0o666)
    except (FileExistsError, NotADirectoryError):
        return False
    content = archive.extractfile(member)
    with os.fdopen(handle, "wb") as file:
        while content is not None and (chunk := content.read(_CHUNK)):
            with _written(path):
                file.write(chunk)
        with _written(path):
            file.flush()
            changed_s = min(max(0, int(member.mtime)), _LATEST)
            os.utime(file.fileno(), (changed_s, changed_s))
    return True


def _linked(path: Path, to: str) -> bool:
    """Make a link, but not through another one; False where its name is taken."""
    if any(folder.is_symlink() for folder in reversed(path.parents)):  # it follows none
        return False
    try:
        with _written(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(PurePosixPath(to))
    except (FileExistsError, NotADirectoryError):
        return False
    return True


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Tell what this disk refuses from what the stream does: the one is not tried again."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise
    except OSError as error:
        raise UnfitResultsError(f"{path}: cannot be written: {error.strerror}.") from error


RESULTS = "gpucost-runs"
"""Folder of all runs, in the one that `provision` was typed in."""

_UNREAD = {".gitignore": "*\n", "conftest.py": 'collect_ignore_glob = ["*"]\n'}
"""What keeps tools of the user from reading, or running, what machines sent."""

PROFILE = "after.json"
PROFILE_FILES = (f"after{SAMPLES}", f"after{STEPS}", PROFILE)
"""All that comes back unasked; the profile is the last."""

_MOST_PROFILE = 1 << 24  # bytes; ours, as the two that follow
_MOST_SERIES = 1 << 32
_OF_DISK = 0.9  # of what is free here, for one fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What came back.

    Attributes:
        files: where what was asked for lies now.
        profile: of the first machine; None where nothing was measured.
        problems: what did not come, in sentences.
        left_behind: what was sent and not taken, with the reason.
    """

    files: tuple[Path, ...]
    profile: Path | None
    problems: tuple[str, ...]
    left_behind: tuple[str, ...] = ()


def bring_back(job: RunningJob) -> Results:
    """Bring back what each machine has of it; one that fails keeps nothing else.

    Raises:
        PartialError: a machine cannot be reached any more.
    """
    files: list[Path] = []
    profile, problems, left_behind = None, list[str](), list[str]()
    for machine in job.machines:
        for path in job.request.collect:
            try:
                received = _fetch(job, machine, PurePosixPath(path))
            except (ProviderError, UnfitResultsError, OSError) as error:
                problems.append(f"{path} of {machine.name} did not come back: {error}")
            else:
                files.append(_folder_of(job, machine) / path)
                left_behind += (f"{item} ({machine.name})" for item in received.notes)
        fault = _bring_profile(job, machine)
        left_behind += [f"{PROFILE}: {fault} ({machine.name})"] if fault else []
        if machine.rank == 0 and (file := _folder_of(job, machine) / PROFILE).is_file():
            profile = file
    return Results(
        files=tuple(files),
        profile=profile,
        problems=tuple(problems),
        left_behind=tuple(left_behind),
    )


def _folder_of(job: RunningJob, machine: JobMachine) -> Path:
    """Return the folder of a machine's results; the machines after the first have one each."""
    folder = Path(job.request.folder) / RESULTS / job.run
    return folder / f"node-{machine.rank}" if machine.rank else folder


def claim_profile(folder: Path, run: str) -> None:
    """Move the profile of a run that was launched from a folder into that folder, if it came."""
    for name in PROFILE_FILES:
        with contextlib.suppress(FileNotFoundError):
            (folder / RESULTS / run / name).replace(folder / name)


def _made_folder(job: RunningJob, machine: JobMachine) -> Path:
    """Make that folder; git (so `--sync`, too) and pytest ignore all that lies there."""
    folder = _folder_of(job, machine)
    root = Path(job.request.folder) / RESULTS
    for part in (root, root / job.run, folder):
        if part.is_symlink():
            raise UnfitResultsError(f"{part}: a link, which is not followed; remove it.")
        part.mkdir(exist_ok=True)
    for name, text in _UNREAD.items():
        with contextlib.suppress(FileExistsError), (root / name).open("x") as file:
            file.write(text)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What a machine is asked for.

    Attributes:
        source: folder on it.
        name: path from there.
        takes: whether a path of the answer is among it.
        most_bytes: of all of it; None: most of what is free here.
    """

    source: str
    name: str
    takes: Callable[[PurePosixPath], bool]
    most_bytes: int | None = None

    def bring(self, job: RunningJob, machine: JobMachine, draft: Path) -> Received:
        """Bring it into an empty folder, and anew where the connection breaks."""
        return job.persevere(lambda: self._unpacked(machine, draft))

    def _unpacked(self, machine: JobMachine, draft: Path) -> Received:
        for path in draft.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        most_bytes = self.most_bytes or int(shutil.disk_usage(draft).free * _OF_DISK)
        received = [Received()]
        machine.files.fetch(
            self.source,
            self.name,
            lambda stream: received.append(unpack(stream, draft, self.takes, most_bytes)),
        )
        return received[-1]


def _fetch(job: RunningJob, machine: JobMachine, path: PurePosixPath) -> Received:
    """Bring a path below the code of a machine into its folder, whole or not at all.

    Raises:
        UnfitResultsError, ProviderError, OSError: it did not come.
    """
    target = _made_folder(job, machine)
    selection = _Wanted(
        source=f"{machine.work}/code",
        name=str(path),
        takes=lambda name: name == path or path in name.parents,
    )
    with tempfile.TemporaryDirectory(prefix=".coming-", dir=target) as draft:
        received = selection.bring(job, machine, Path(draft))
        arrived, path_here = Path(draft) / path, target / path
        if not arrived.is_symlink() and not arrived.exists():
            raise UnfitResultsError("; ".join(received.notes) or "it was not sent.")
        path_here.parent.mkdir(parents=True, exist_ok=True)
        if path_here.is_dir() and not path_here.is_symlink():
            shutil.rmtree(path_here)
        arrived.replace(path_here)
    return received


def _bring_profile(job: RunningJob, machine: JobMachine) -> str:
    """Bring the profile of a machine with its series; return what is wrong with it, or nothing.

    Raises:
        PartialError: the machine cannot be reached any more.
    """
    files = [PurePosixPath("profile", name) for name in PROFILE_FILES]
    selection = _Wanted(
        source=machine.work,
        name="profile",
        takes=lambda name: name in files,
        most_bytes=_MOST_SERIES,
    )
    try:
        target = _made_folder(job, machine)
        with tempfile.TemporaryDirectory(prefix=".coming-", dir=target) as draft:
            selection.bring(job, machine, Path(draft))
            sent = [Path(draft) / name for name in files]
            arrived = [path for path in sent if path.is_file() and not path.is_symlink()]
            if sent[-1] not in arrived:
                return ""
            if fault := _profile_fault(arrived[-1]):
                return fault
            for path in arrived:
                path.replace(target / path.name)
    except (ProviderError, UnfitResultsError, OSError) as error:
        return str(error)
    return ""


def _profile_fault(file: Path) -> str:
    """Return why a file of a machine cannot be the profile of a job; empty where it can."""
    if file.stat().st_size > _MOST_PROFILE:
        return f"it has over {_MOST_PROFILE:,} bytes"
    try:
        profiles = parse_profiles(file.read_bytes(), PROFILE)
    except InputError as error:
        return error.problems[0]
    series = profiles[0].series
    names = {name for name in (series.samples, series.steps) if name} if series else set()
    if len(profiles) > 1 or not names <= {*PROFILE_FILES}:
        return "it holds several jobs, or names series elsewhere"
    return ""
