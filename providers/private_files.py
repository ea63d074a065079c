"""Files and folders that hold what is the user's alone: 0600 and 0700, and through nobody's links.

A folder that others can write to is refused, because what lies in it could be swapped; one that
holds nothing else is closed to them.
"""

import os
import stat
from pathlib import Path

from pricing.errors import RefusedError

_OURS = ("journal.sqlite", "locks", "keys", "jobs", "ssh-hosts", "watch.json", "owner", ".")
"""What names of ours in the state folder begin with."""

_OTHERS = 0o077
_OTHERS_WRITE = 0o022


class NotOursError(RefusedError):
    """A file or folder belongs to somebody else, is a link, or can be changed by others."""


def private_folder(path: Path) -> None:
    """Make a folder, with its parents, for its owner alone, or check the one that is there.

    One with nothing but ours in it is closed to others.

    Raises:
        NotOursError: others made it, or can change what is in it.
        OSError: it cannot be made or looked at.
    """
    if not os.path.lexists(path):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    link = path.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (os.geteuid(), 0):
        raise NotOursError(f"{path}: a link that user {link.st_uid} made; it is not followed.")
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{path} is not a folder")
    if status.st_uid != os.geteuid():
        raise NotOursError(
            f"{path}: belongs to user {status.st_uid}, and this is user {os.geteuid()}. "
            "GPUCOST_STATE_DIR names another folder."
        )
    if not status.st_mode & _OTHERS:
        return
    if not status.st_mode & stat.S_ISVTX and all(
        file.name.startswith(_OURS) for file in path.iterdir()
    ):
        path.chmod(0o700)
    elif status.st_mode & _OTHERS_WRITE:
        raise NotOursError(
            f"{path}: others can write there, so what is in it could be swapped. "
            "GPUCOST_STATE_DIR names another folder, or: chmod go-w."
        )


def sync_folder(path: Path) -> None:
    """Let the names in a folder outlive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_private(path: Path, flags: int) -> int:
    """Open a file for its owner alone, made if need be, and return its descriptor.

    Args:
        path: the file; a link is not followed.
        flags: of `os.open`, such as `os.O_RDWR`.

    Raises:
        NotOursError: it is a link, no regular file, or somebody else's.
        OSError: it cannot be opened.
    """
    if path.is_symlink():
        raise NotOursError(f"{path}: a link, which is not followed; remove it.")
    handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _check_ours(path, os.fstat(handle))
        os.fchmod(handle, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check_ours(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotOursError(f"{path}: not a regular file; remove it.")
    if status.st_uid != os.geteuid():
        raise NotOursError(f"{path}: belongs to user {status.st_uid}; it is not used.")


def write_private(path: Path, text: str) -> None:
    """Write a file for its owner alone, whole or not at all.

    Raises:
        NotOursError: there is a link or somebody else's file in its place.
        OSError: it cannot be written.
    """
    if os.path.lexists(path):
        os.close(open_private(path, os.O_RDWR))
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    handle = open_private(draft, os.O_WRONLY | os.O_TRUNC)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read_private(path: Path) -> str:
    """Return the text of a file that only its owner can read and change.

    Raises:
        NotOursError: others can, or it is a link.
        OSError: it cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            raise NotOursError(f"{path}: others can read or change it; chmod 600, owned by you.")
        return stream.read()
