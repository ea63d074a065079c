"""Writes files whole or not at all, into the folders of the user or where the user says."""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from platformdirs import user_cache_path, user_state_path

from pricing.errors import InputError
from pricing.message import Message
from providers.redaction import redact

_KINDS = {".json": "json", ".md": "md", ".html": "html", ".htm": "html", ".csv": "csv"}


def kind_of_file(path: str, default: str, allowed: Sequence[str]) -> str:
    """Return what the suffix of a file says it holds; without one it is the default.

    Raises:
        InputError: the suffix says another kind than those allowed.
    """
    suffix = Path(path).suffix.lower()
    kind = _KINDS.get(suffix, "") if suffix else default
    if kind not in allowed:
        fitting = ", ".join(end for end, name in _KINDS.items() if name in allowed)
        raise InputError(Message("input.no-such-kind", path=path, suffix=suffix, fitting=fitting))
    return kind


def read_file(path: str | Path) -> str:
    """Return the text of a file.

    Raises:
        InputError: it cannot be read, or is not text.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all, with secrets hidden; `-` is standard output.

    A link keeps pointing where it does; what is not a regular file (a pipe, a device) is written to
    as it is.

    Raises:
        InputError: it cannot be written.
    """
    write_pieces(path, (text,))


def write_pieces(path: str, pieces: Iterable[str | bytes]) -> None:
    """Write a file, as `write_file`, of pieces that are never all in memory at once.

    A secret that lies in two pieces is not found.

    Args:
        path: the file.
        pieces: texts; bytes are of text in which secrets are hidden already.

    Raises:
        InputError: it cannot be written.
    """
    if path == "-":
        for piece in pieces:
            click.echo(redact(piece) if isinstance(piece, str) else piece.decode(), nl=False)
        return
    hidden = (piece if isinstance(piece, bytes) else redact(piece).encode() for piece in pieces)
    if not path or not Path(path).name:
        raise InputError(f"{path!r} names no file; give one, such as plan.json.")
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            _write_through(target, hidden)
        else:
            _replace(target, hidden)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be written: {reason}.") from error


def _write_through(target: Path, pieces: Iterable[bytes]) -> None:
    with target.open("wb") as stream:
        stream.writelines(pieces)


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    """Write beside the file first, then put it in its place in one step."""
    handle, draft = tempfile.mkstemp(prefix=".gpucost-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
        Path(draft).chmod(target.stat().st_mode & 0o777 if target.exists() else _default_mode())
        Path(draft).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def _default_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


CACHE = "GPUCOST_CACHE_DIR"


def cache_folder() -> Path:
    """Return the folder: GPUCOST_CACHE_DIR, else the user's cache."""
    return Path(os.environ.get(CACHE) or user_cache_path("gpucost"))


STATE = "GPUCOST_STATE_DIR"


def state_folder() -> Path:
    """Return the folder of the journal: GPUCOST_STATE_DIR, else the user's state folder."""
    return Path(os.environ.get(STATE) or user_state_path("gpucost"))
