"""One file as a SOURCE: recognized, loaded, and turned into profiles with those beside it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.codec import parse_profiles
from telemetry.formats.sniff import Format, recognize
from telemetry.formats.stored_runs import (
    is_run_folder,
    is_run_table,
    run_payload,
    settings_beside,
    table_payload,
)
from telemetry.profiling.fill import fill
from telemetry.readers.payload import HEAD_BYTES, MAGIC, Payload, Stream, footer_of, hash_of
from telemetry.recording.recording import Recording, RunSettings
from telemetry.serving_metrics import page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from planner.profile.model import Profile
    from telemetry.profiling.same_gpus import FileReadings
    from telemetry.readers.hints import Hints

# A log of this size or more on disk is read in blocks.
LARGE_BYTES = 32 << 20
_LARGE_PACKED_BYTES = 2 << 20
_START = re.compile(r"^process_start_time_seconds\S* (\S+)", re.MULTILINE)
_PACKED = b"\x1f\x8b"
_TRACKERS = ("wandb", "tensorboard", "mlflow", "wide-csv")  # what keeps a run's settings beside it
_IN_BLOCKS = frozenset(("nvidia-smi-csv", "prometheus-text"))  # formats that are read so


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file, recognized.

    Attributes:
        format: None for a profile.json.
        payload: what is in it; without data where it is large.
    """

    format: Format | None
    payload: Payload


def open_source(
    path: str, hints: Hints, stdin: BinaryIO | None = None, *, load: bool = True
) -> SourceFile:
    """Return one file, recognized, and loaded unless it is a large log.

    Args:
        path: `-` for standard input.
        hints: its format, where it is known.
        stdin: what `-` reads.
        load: whether telemetry is loaded, too; a profile is in any case.

    Raises:
        UnknownFormatError: it is nothing that gpucost reads.
        InputError: it cannot be read.
    """
    if path != "-" and (is_run_folder(path) or is_run_table(path)):
        payload = run_payload(path) if is_run_folder(path) else table_payload(path)
        form = recognize(payload.name, payload.data[:HEAD_BYTES], hints)
        return SourceFile(format=form, payload=payload)
    with Stream(path, stdin) as stream:
        columns = footer_of(path) if stream.head.startswith(MAGIC) else b""  # at its end
        form = recognize(stream.name, stream.head + columns, hints)
        in_blocks = form is not None and form.name in _IN_BLOCKS and path != "-" and _is_large(path)
        if form is not None and (in_blocks or not load):
            payload = Payload(name=stream.name, data=b"", sha256=None, path=path)
            return SourceFile(format=form, payload=payload)
        return SourceFile(format=form, payload=stream.load())


def _is_large(path: str) -> bool:
    file = Path(path)
    if not file.is_file():  # what is not a file on disk can be read once only
        return False
    with file.open("rb") as stream:
        packed = stream.read(len(_PACKED)) == _PACKED
    return file.stat().st_size >= (_LARGE_PACKED_BYTES if packed else LARGE_BYTES)


@dataclass(slots=True, kw_only=True)
class TelemetryFile:
    """A file of telemetry that is read, with others, to profiles.

    Attributes:
        path: where it lies.
        hints: what it does not say itself; of a file in a folder they name its format.
        source: the file, recognized; None until it is opened.
        root: the SOURCE that is a folder; None for a file that was given itself.
        bundle: files of the same value are of one job; None: their readings tell.
    """

    path: Path
    hints: Hints
    source: SourceFile | None = None
    root: Path | None = None
    bundle: str | None = None
    _recording: Recording | None = None

    def open(self) -> SourceFile:
        """Return the file, recognized.

        Raises:
            InputError: it cannot be read.
        """
        if self.source is None:
            self.source = open_source(str(self.path), self.hints)
        return self.source

    def load(self) -> Recording:
        """Return its readings; what they were read from is released.

        Raises:
            InputError: it cannot be read.
        """
        if self._recording is None:
            file = self.open()
            if file.format is None:
                raise TypeError(self.path)
            recording = file.format.read(file.payload, self.hints)
            if file.format.name.startswith("wandb"):
                from telemetry.formats.wandb import with_metadata  # noqa: PLC0415 - pandas

                recording = with_metadata(recording, self.path)
            if file.format.name.startswith(_TRACKERS) and recording.settings == RunSettings():
                recording = replace(recording, settings=settings_beside(self.path))
            self._recording = recording
            self.source = replace(file, payload=replace(file.payload, data=b""))
        return self._recording

    def readings(self) -> FileReadings:
        """Return what tells its GPUs from those of other files.

        Raises:
            InputError: it cannot be read.
        """
        from telemetry.profiling.machines import LoggedRows  # noqa: PLC0415 - pandas
        from telemetry.profiling.same_gpus import FileReadings  # noqa: PLC0415 - the same

        recording = self.load()
        observed = recording.observed
        # A log that tells how a run ended, and nothing else, is of the GPUs beside it.
        has_run = observed is not None and (
            observed.steps is not None or len(recording.samples) > 0
        )
        return FileReadings(
            rows=LoggedRows(recording),
            path=self.path,
            folder=str(self.path.parent) if self.root else "",
            bundle=self.bundle,
            absolute=recording.absolute,
            local=recording.local_time and self.hints.tz is None,
            is_run=is_run_folder(self.path) or has_run,
        )

    def server_counts(self) -> tuple[Hashable, list[float]]:
        """Return what tells a server of models from others, None of no page of it; its counters."""
        file = self.open()
        if file.format is None or file.format.name != "prometheus-text":
            return None, []
        text = file.payload.text
        series = page_of(text).counts.items()
        counts = {(key, own): value for key, values in series for own, value in values.items()}
        start = _START.search(text)
        server = (frozenset(counts), start and start[1]) if counts else None
        return server, [counts[key] for key in sorted(counts)]

    def append(self, parts: Iterable[TelemetryFile]) -> None:
        """Put the later scrapes of its server after it."""
        file, pages = self.open(), [part.open().payload.data for part in (self, *parts)]
        self.source = replace(file, payload=replace(file.payload, data=b"\n".join(pages)))

    def in_zone(self, zone: str, ahead_s: float) -> None:
        """Take its times as of a zone, which another file told."""
        from telemetry.profiling.merge import later  # noqa: PLC0415 - pandas

        self._recording = replace(later(self.load(), -ahead_s), local_time=False)
        self.hints = replace(self.hints, tz=zone)

    def with_header_of(self, parts: Sequence[TelemetryFile]) -> bool:
        """Put the header of other parts of its log before its rows; False where none fits alone."""
        from telemetry.formats.csv_log import header_for  # noqa: PLC0415 - pandas

        file = self.open()
        headers = {header_for(file.payload, part.open().payload) for part in parts} - {None}
        if len(headers) != 1 or not file.payload.data:
            return False
        data = f"{headers.pop()}\n{file.payload.text}".encode()
        self.source = replace(file, payload=replace(file.payload, data=data))
        return True


def _in_order(files: Sequence[TelemetryFile]) -> list[TelemetryFile]:
    """Return files by name, those of one name with their content's hash, and by it."""
    names = Counter(file.open().payload.name for file in files)
    for file in files:
        payload = file.open().payload
        if payload.sha256 is None and names[payload.name] > 1:
            hashed = replace(payload, sha256=hash_of(payload.path))
            file.source = replace(file.open(), payload=hashed)
    return sorted(files, key=lambda f: (f.open().payload.name, f.open().payload.sha256 or ""))


def finished_profiles(file: SourceFile, hints: Hints) -> tuple[Profile, ...]:
    """Return the profiles of a profile.json.

    Raises:
        InputError: they cannot be read.
    """
    return tuple(
        fill(profile, hints)
        for profile in parse_profiles(file.payload.data, file.payload.path)
        if hints.job in (None, profile.job.name)
    )


def profiles_of(
    files: Sequence[TelemetryFile],
    hints: Hints,
    names: list[frozenset[str] | None],
    say: Callable[[str], None],
) -> tuple[Profile, ...]:
    """Return the profiles of telemetry of one job, or of the jobs that its labels name.

    Each capture of `gpucost profile` is a job of its own.

    Args:
        files: of the same GPUs.
        hints: what they do not say.
        names: takes those of each file's columns, as `Recording.names`.
        say: told which GPUs no job held.

    Raises:
        InputError: what is in them cannot be read, or no job has the name that is asked for.
    """
    # pandas comes in here and not before: a plan of ready profiles starts without it.
    from telemetry.profiling import jobs  # noqa: PLC0415 - lazy on purpose

    once = {(f.open().payload.name, f.open().payload.sha256): f for f in _in_order(files)}
    recordings = [file.load() for file in once.values()]
    names += [recording.names for recording in recordings]
    return jobs.all_profiles(recordings, hints, say)
