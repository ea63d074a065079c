"""The file of the journal: opened for its owner alone, and what keeps us from using it told apart.

A journal that is held by another process, or was written by a newer version, or lies on a full
disk, is a healthy one and is never moved. Only a file that SQLite calls damaged is set aside.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from pricing.errors import RefusedError
from pricing.message import Message
from providers.private_files import open_private, private_folder

FILE = "journal.sqlite"
VERSION = 3
LOCKS = "locks"
BUSY_MS = 30_000
BUSY_AGAIN_MS = 1_000
"""For how long a write waits for another process: the first time, and once that was in vain."""

_SCHEMA = """
CREATE TABLE runs (
    run TEXT PRIMARY KEY, state TEXT NOT NULL, started_at TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE events (run TEXT NOT NULL, at TEXT NOT NULL, what TEXT NOT NULL);
CREATE INDEX events_of_runs ON events (run);
"""
"""A document is a `Deployment` with its resources; what it holds beside is in it, too."""

_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
_HELD = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class JournalError(RefusedError):
    """The journal cannot be read or written; nothing is made without it."""


class DamagedJournalError(JournalError):
    """The file is not a journal, or a broken one."""


class NewerJournalError(JournalError):
    """A newer version wrote it."""


class HeldJournalError(JournalError):
    """Another process holds it; there is nothing wrong with it."""


@contextmanager
def explained_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite and the file system raise into what it means for the journal.

    Raises:
        JournalError: which one, by the code of SQLite; a sentence says what to do.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _meaning(path, doing, error) from error


def _meaning(path: Path, doing: str, error: Exception) -> JournalError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _HELD:
        return HeldJournalError(Message("journal.held", path=str(path), seconds=BUSY_MS // 1000))
    if code in _DAMAGED:
        return DamagedJournalError(Message("journal.damaged", path=str(path), error=str(error)))
    details = {"path": str(path), "doing": doing, "error": str(error)}
    return JournalError(Message("journal.unusable", **details))


def open_base(folder: Path) -> sqlite3.Connection:
    """Open the journal of a folder, which is made if need be.

    Raises:
        DamagedJournalError, NewerJournalError, HeldJournalError, JournalError: as those say.
        NotOursError: the folder or a file in it is somebody else's.
    """
    path = folder / FILE
    with explained_errors(path, "opened"):
        private_folder(folder)
        for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
            if name == FILE or os.path.lexists(folder / name):
                os.close(open_private(folder / name, os.O_RDWR))
        base = _connected(path)
        try:
            _prepare(base, path)
        except BaseException:
            base.close()
            raise
        return base


def memory_base() -> sqlite3.Connection:
    """Return a journal in memory, for a process that has to end machines without the file."""
    base = sqlite3.connect(":memory:", isolation_level=None)
    _make_tables(base)
    return base


def _connected(path: Path) -> sqlite3.Connection:
    """Return a connection that has read the file.

    On a full disk one that keeps its index in memory.
    """
    base = _connect(path, "NORMAL")
    try:
        _version(base)
    except sqlite3.OperationalError as error:
        base.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
            raise
        base = _connect(path, "EXCLUSIVE")
        _version(base)
    except BaseException:
        base.close()
        raise
    return base


def _connect(path: Path, locking: str) -> sqlite3.Connection:
    base = sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000)
    base.execute(f"PRAGMA locking_mode = {locking}")
    return base


def _version(base: sqlite3.Connection) -> int:
    """Return the format of the file, read from it and not from a cache.

    Takes no lock for writing.
    """
    base.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(base.execute("PRAGMA user_version").fetchone()[0])


def _prepare(base: sqlite3.Connection, path: Path) -> None:
    version = _version(base)
    if version == 0:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("BEGIN IMMEDIATE")
        try:
            if _version(base) == 0:  # another process may have been quicker
                _make_tables(base)
            base.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                base.execute("ROLLBACK")
            raise
    if _version(base) != VERSION:
        versions = {"format": _version(base), "known": VERSION}
        raise NewerJournalError(Message("journal.newer", path=str(path), **versions))
    base.execute("PRAGMA synchronous = FULL")


def _make_tables(base: sqlite3.Connection) -> None:
    for statement in filter(str.strip, _SCHEMA.split(";")):
        base.execute(statement)
    base.execute(f"PRAGMA user_version = {VERSION}")


def open_lock(folder: Path, run: str) -> int | None:
    """Open the file that a process locks while it works on a run; None where there is no room.

    Raises:
        JournalError: it cannot be opened.
        NotOursError: it is somebody else's.
    """
    locks = folder / LOCKS
    try:
        private_folder(locks)
        return open_private(locks / run, os.O_RDWR)
    except OSError as error:
        if error.errno in _NO_ROOM:
            return None  # what cannot be made cannot be held by another process either
        with explained_errors(folder / FILE, "opened"):
            raise


def set_aside(folder: Path, at: datetime) -> Path | None:
    """Move a damaged journal out of the way and return where; None where there is none."""
    path = folder / FILE
    if not path.exists():
        return None
    new_path = path.with_name(f"{FILE}.unreadable-{at:%Y%m%dT%H%M%S}")
    for suffix in ("-wal", "-shm"):
        companion = Path(f"{path}{suffix}")
        if companion.exists():
            companion.replace(f"{new_path}{suffix}")
    return path.replace(new_path)
