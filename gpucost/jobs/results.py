"""What a job leaves, brought into a folder of its run: `gpucost-runs/ID/`, never beside the code.

The machine is not trusted: its files pass `gpucost.files.received`, its profile is read before it
counts, and what is not taken is told.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpucost.files.received import Received, UnfitResultsError, unpack
from gpucost.jobs.stepping import RunningJob
from gpucost.jobs.steps import JobMachine
from planner.profile.codec import parse_profiles
from planner.profile.model import SAMPLES, STEPS
from pricing.errors import InputError, ProviderError

RESULTS = "gpucost-runs"
"""Folder of all runs, in the one that `provision` was typed in."""

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
                left_behind += (f"{item} ({machine.name})" for item in received.told)
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
    """Make that folder; git, and so `--sync`, ignores all that lies there."""
    folder = _folder_of(job, machine)
    root = Path(job.request.folder) / RESULTS
    for part in (root, root / job.run, folder):
        if part.is_symlink():
            raise UnfitResultsError(f"{part}: a link, which is not followed; remove it.")
        part.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError), (root / ".gitignore").open("x") as file:
        file.write("*\n")
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
        arrived, place = Path(draft) / path, target / path
        if not arrived.is_symlink() and not arrived.exists():
            raise UnfitResultsError("; ".join(received.told) or "it was not sent.")
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        arrived.replace(place)
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
