"""Writes files whole or not at all, and leaves devices, pipes and links what they are."""

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

from pricing.errors import InputError
from providers.redaction import redact


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all, with secrets hidden; `-` is standard output.

    A link keeps pointing where it does; what is not a regular file (a pipe, a device) is written to
    as it is.

    Raises:
        InputError: it cannot be written.
    """
    write_pieces(path, (text,))


def write_pieces(path: str, pieces: Iterable[str]) -> None:
    """Write a file, as `write_file`, of texts that are never all in memory at once.

    A secret that lies in two pieces is not found.

    Raises:
        InputError: it cannot be written.
    """
    hidden = (redact(piece) for piece in pieces)
    if path == "-":
        for piece in hidden:
            click.echo(piece, nl=False)
        return
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


def _write_through(target: Path, pieces: Iterable[str]) -> None:
    with target.open("w", encoding="utf-8") as stream:
        stream.writelines(pieces)


def _replace(target: Path, pieces: Iterable[str]) -> None:
    """Write beside the file first, then put it in its place in one step."""
    handle, draft = tempfile.mkstemp(prefix=".gpucost-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(piece.encode("utf-8") for piece in pieces)
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
