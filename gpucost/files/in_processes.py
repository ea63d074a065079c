"""Plans many jobs in several processes, and packs them in several.

A process is a copy of this one (`fork`), so it has jobs and prices at hand. It takes every n-th
group of jobs, or call, and ends with its part done or when this process is gone. The part of one
that ended before, whatever became of it, is done here.

Plans are written into files without a name; what a call returns is small and comes through a pipe.
"""

import gc
import multiprocessing
import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

from planner.pipeline import Planning
from planner.plan.draft import JobDraft
from pricing.errors import InputError

if TYPE_CHECKING:
    import ctypes

T = TypeVar("T")
Kept = tuple[object, ...] | InputError
Keep = Callable[[JobDraft, IO[bytes]], object]
"""Cuts a job's plan down to what is kept of it; the rest it writes to the process's own file."""

_A_LOOK_S = 0.2


class InFiles(NamedTuple):
    """Where what is kept lies, and who is told how far the processes are.

    Attributes:
        folder: of the files; None: where temporary files lie.
        files: closes them, which are gone then.
        told: how many jobs are planned, of how many.
    """

    folder: str | None
    files: ExitStack
    told: Callable[[int, int], None]


def plan_in(
    several: int, planning: Planning, keep: Keep, where: InFiles
) -> Iterator[tuple[Kept, IO[bytes]]]:
    """Yield what is kept of each group, in their order, and the file with the rest.

    Args:
        several: processes.
        planning: the groups.
        keep: called once for each job, in the process that plans it.
        where: the files, and who is told how far it is.
    """
    rests = [_file(where) for _ in range(several + 1)]
    results = [_file(where) for _ in range(several)]
    done, total = RawArray("Q", several), sum(map(len, planning.groups))
    own = rests.pop()
    fork = multiprocessing.get_context("fork")
    children: list[multiprocessing.process.BaseProcess] = []
    try:
        for number in range(several):
            part = planning.groups[number::several]
            ends = (results[number], rests[number])
            count = partial(_count, done, number)
            words = (planning, part, keep, ends, (os.getpid(), count))
            children.append(fork.Process(target=_part, args=words))
            children[-1].start()
        for child, file in zip(children, results, strict=True):
            while child.is_alive():
                child.join(_A_LOOK_S)
                where.told(sum(done), total)
            if child.exitcode != 0:
                file.truncate(0)
    finally:
        for child in children:
            if child.is_alive():
                child.terminate()
    for file in results:
        file.seek(0)
    for number, group in enumerate(planning.groups):
        try:
            kept = pickle.load(results[number % several])  # noqa: S301 - written by our own copies
            yield kept, rests[number % several]
        except EOFError:
            yield _kept(planning, group, keep, own), own


def _file(where: InFiles) -> IO[bytes]:
    return where.files.enter_context(tempfile.TemporaryFile(dir=where.folder))


def _count(done: "ctypes.Array[ctypes.c_ulonglong]", number: int, jobs: int) -> None:
    done[number] += jobs


def _kept(planning: Planning, group: tuple[int, ...], keep: Keep, rest: IO[bytes]) -> Kept:
    try:
        return tuple(keep(job, rest) for job in planning.plan(group))
    except InputError as error:
        return error


def _part(
    planning: Planning,
    part: Sequence[tuple[int, ...]],
    keep: Keep,
    ends: tuple[IO[bytes], IO[bytes]],
    told: tuple[int, Callable[[int], None]],
) -> None:
    """Plan the groups of one process; who began it is told nothing but by files."""
    (result, rest), (parent, count) = ends, told
    with _copy():
        for group in part:
            _heard_by(parent)
            pickle.dump(_kept(planning, group, keep, rest), result, pickle.HIGHEST_PROTOCOL)
            count(len(group))
        result.flush()
        rest.flush()


@contextmanager
def _copy() -> Iterator[None]:
    """Do the work of a process that is a copy, and end it: with 0 where all of it is done.

    Ctrl-C is for the process that began this one, which ends this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    gc.disable()  # looking for garbage would make every page of this process a page of its own
    code = 1
    try:
        yield
        code = 0
    except BaseException:  # noqa: BLE001, S110 - it is met again, and told, where this is done again
        pass
    finally:
        os._exit(code)


def _heard_by(parent: int) -> None:
    """Raise where the process that began this one is gone."""
    if os.getppid() != parent:
        raise ProcessLookupError(parent)


def call_in(several: int, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
    """Yield what each call returns, in their order.

    Args:
        several: processes, this one among them.
        calls: what they return comes through a pipe: it holds nothing that must stay one value.
    """
    fork = multiprocessing.get_context("fork")
    children: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []
    found: dict[int, T] = {}
    child: multiprocessing.process.BaseProcess
    try:
        for number in range(1, min(several, len(calls))):
            here, there = fork.Pipe(duplex=False)
            part = calls[number::several]
            child = fork.Process(target=_calls, args=(part, (here, there), os.getpid()))
            child.start()
            there.close()
            children.append((child, here))
        found.update((n, calls[n]()) for n in range(0, len(calls), several))
        for number, (_, here) in enumerate(children, 1):
            with suppress(EOFError, OSError, pickle.UnpicklingError):
                found.update(zip(range(number, len(calls), several), here.recv(), strict=True))
    finally:
        for child, here in children:
            here.close()
            child.terminate()
            child.join()
    for number, call in enumerate(calls):
        yield found[number] if number in found else call()


def _calls(
    part: Sequence[Callable[[], object]], ends: tuple[Connection, Connection], parent: int
) -> None:
    """Make the calls of one process, for as long as the one that asked is there."""
    here, there = ends
    with _copy():
        here.close()  # held open here, nobody's reading it would never be seen
        made = []
        for call in part:
            _heard_by(parent)
            made.append(call())
        there.send(made)
