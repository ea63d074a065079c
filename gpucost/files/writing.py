"""Writes files whole or not at all, and leaves devices, pipes and links what they are."""

import contextlib
import os
import tempfile
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
    if path == "-":
        click.echo(text, nl=False)
        return
    if not path or not Path(path).name:
        raise InputError(f"{path!r} names no file; give one, such as plan.json.")
    text = redact(text)
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            _write_through(target, text)
        else:
            _replace(target, text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be written: {reason}.") from error


def _write_through(target: Path, text: str) -> None:
    with target.open("w", encoding="utf-8") as stream:
        stream.write(text)


def _replace(target: Path, text: str) -> None:
    """Write beside the file first, then put it in its place in one step."""
    data = text.encode("utf-8")
    handle, draft = tempfile.mkstemp(prefix=".gpucost-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
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
