"""Plans a fleet and writes its file job by job, so that neither needs all of it in memory at once.

Jobs are planned in as many processes as there are cores. What is said of a job in plan.json is
worked out there, secrets are hidden in it there, and it is kept in a file without a name until the
whole file is written. Then it is copied: but for the lines that say whether the job shares a GPU.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self, TypeVar

from gpucost.files.sources import ProgressCallback
from gpucost.files.writing import write_file, write_pieces
from planner.fleet.at_once import in_turn
from planner.models.document import to_text
from planner.pipeline import Outcome, Planning, one_by_one
from planner.plan.draft import JobDraft, in_brief
from planner.plan.job import JobPlan
from planner.plan.job_lines import (
    OpenLines,
    job_lines,
    open_lines,
    replaced,
    shared_lines,
    text_around,
)
from planner.plan.making import job_document
from planner.plan.plan import Plan
from pricing.errors import InputError
from providers.redaction import one_line_each, redact, secrets_known

T = TypeVar("T")
FEWEST_JOBS = 64
"""Fewer are planned sooner in this process alone."""


def processes() -> int:
    """Return how many processes may plan at once; 1 where a process cannot copy itself safely.

    A copy has none of its other threads, and may wait forever for what they held.
    """
    alone = len(sys._current_frames()) == 1  # noqa: SLF001 - documented, and of every thread
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" and alone else 1


class _Written(NamedTuple):
    """Where the lines of a job lie in a file.

    Attributes:
        start: their first byte there.
        length: bytes.
        places: of the lines that may be replaced; None where the lines are not fit to be copied:
            secrets are not hidden in them, or no file can hold them.
    """

    start: int
    length: int
    places: OpenLines | None


class _InBrief(NamedTuple):
    """A job's plan in brief, and where its lines lie."""

    job: JobDraft
    written: _Written


class LargePlan:
    """Plans jobs in processes (`planner.pipeline.Spread`, `AtOnce`), and writes their plan.

    Args:
        as_of: day of prices and rules.
        target: the file that is to be written; None: none.
        several: processes; None: as many as there are cores.
        told: how many jobs are planned, of how many.
    """

    def __init__(
        self,
        as_of: date,
        target: str | None,
        several: int | None = None,
        told: ProgressCallback = lambda *_: None,
    ) -> None:
        self._as_of = as_of
        self._target = target
        self._told = told
        self._several = processes() if several is None else several
        self._secrets = secrets_known()
        self._lines: dict[str, tuple[IO[bytes], _Written]] = {}
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._files.close()

    def spread(self, planning: Planning) -> Iterator[Outcome]:
        """Yield the plans of each group, in brief where they are many.

        Raises:
            InputError: the text of the jobs cannot be kept beside the target.
        """
        total = sum(map(len, planning.groups))
        if self._several == 1 or total < FEWEST_JOBS:
            done = 0
            for group, outcome in zip(planning.groups, one_by_one(planning), strict=True):
                done += len(group)
                self._told(done, total)
                yield outcome
            return
        try:
            yield from self._in_processes(planning)
        except OSError as error:
            where = self._target or "temporary files"
            raise InputError(f"{where}: cannot be written: {error.strerror}.") from error

    def at_once(self, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yield what each call returns, in their order, made in as many processes as may plan."""
        if self._several == 1:
            return in_turn(calls)
        from gpucost.files.in_processes import call_in  # noqa: PLC0415 - kept off small plans

        return call_in(self._several, calls)

    def _in_processes(self, planning: Planning) -> Iterator[Outcome]:
        from gpucost.files.in_processes import InFiles, plan_in  # noqa: PLC0415 - kept off small plans

        folder = None if self._target in {None, "-"} else str(Path(self._target or "").parent)
        where = InFiles(folder=folder, files=self._files, told=self._told)
        for outcome, file in plan_in(self._several, planning, self._keep, where):
            if isinstance(outcome, InputError):
                yield outcome
                continue
            kept = [one for one in outcome if isinstance(one, _InBrief)]
            self._lines.update((one.job.name, (file, one.written)) for one in kept)
            yield tuple(one.job for one in kept)

    def _keep(self, job: JobDraft, file: IO[bytes]) -> _InBrief:
        start, places = file.tell(), None
        if self._target is not None:
            text = job_lines(job_document(job, self._as_of))
            lines, places = _hidden(text)
            file.write(lines)
        return _InBrief(in_brief(job), _Written(start, file.tell() - start, places))

    def write(self, plan: Plan) -> None:
        """Write the plan to the target, where there is one.

        Raises:
            InputError: it cannot be written.
        """
        if self._target is None:
            return
        if self._lines:
            write_pieces(self._target, self._pieces(plan))
        else:
            write_file(self._target, to_text(plan))

    def _pieces(self, plan: Plan) -> Iterator[str | bytes]:
        before, after = text_around(plan)
        secrets = secrets_known()
        fit = secrets == self._secrets and one_line_each(secrets)
        yield before
        for number, job in enumerate(plan.jobs):
            file, written = self._lines[job.name]
            file.seek(written.start)
            lines = file.read(written.length)
            if number:
                yield b",\n"
            if fit and written.places is not None:
                yield _copied(lines, written.places, job)
            else:
                yield _text(lines, job)
        yield after


def _hidden(text: str) -> tuple[bytes, OpenLines | None]:
    """Return a job's lines with secrets hidden, and the places in them; the text where none are."""
    try:
        lines = redact(text).encode()
    except UnicodeEncodeError:  # what it says is said when the file is written
        places = None
    else:
        places = open_lines(lines)
    return (text.encode("utf-8", "surrogatepass"), None) if places is None else (lines, places)


def _copied(lines: bytes, places: OpenLines, job: JobPlan) -> bytes:
    if job.placement is None:
        return lines
    confidence, placement = (redact(one).encode() for one in shared_lines(job))
    return replaced(lines, places, (confidence, placement))


def _text(lines: bytes, job: JobPlan) -> str:
    places = None if job.placement is None else open_lines(lines)
    if places is not None:
        confidence, placement = (one.encode() for one in shared_lines(job))
        lines = replaced(lines, places, (confidence, placement))
    return lines.decode("utf-8", "surrogatepass")
