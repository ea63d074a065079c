"""What an agent names, checked before it reaches a command: paths below one folder, plain words."""

import os
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from planner.plan_document.document import SCHEMA
from pricing.errors import InputError
from pricing.money import usd

MOST_FILES = 1_000
MOST_BYTES = 256 << 20
_MOST_NAME = 1_000
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:+()-]{0,119}")
_DOLLARS = re.compile(r"[0-9]{1,7}(\.[0-9]{1,2})?")
_SHOWN = 60


def word(name: str, value: str) -> str:
    """Return a name of a provider, a size, a code, a run: it begins no option and ends no line.

    Raises:
        InputError: it has other characters, or more than 120.
    """
    if not _WORD.fullmatch(value):
        raise InputError(
            f"{name} {shown(value)}: letters, digits, blanks and ._/:+()- only, at most 120 "
            "characters, the first a letter or a digit."
        )
    return value


def dollars(name: str, value: str) -> Decimal:
    """Return dollars that are more than 0, with at most two digits of cents.

    Raises:
        InputError: it is not such a number.
    """
    if not _DOLLARS.fullmatch(value) or usd(value) <= 0:
        raise InputError(f"{name} {shown(value)}: dollars above 0, such as 12.50.")
    return usd(value)


def sources(root: Path, names: Iterable[str]) -> list[str]:
    """Return the paths of files and folders to read, none of which leads out of the root.

    Raises:
        InputError: all that is wrong with them, at once.
    """
    problems: list[str] = []
    found = []
    for name in names:
        try:
            found.append(str(_below(root, name)))
        except InputError as error:
            problems += error.problems
    problems += [] if problems else _too_much(root, found)
    if not found and not problems:
        problems.append("sources: name at least one file or folder.")
    if problems:
        raise InputError(problems)
    return found


def new_plan(root: Path, name: str) -> str:
    """Return the path of a plan to write: new, or in place of an earlier plan.

    Raises:
        InputError: it would be outside of the root, or in place of something else.
    """
    path = _below(root, name, exists=False)
    if path.suffix != ".json":
        raise InputError(f"save_as {shown(name)}: a plan's name ends in .json.")
    if path.exists():
        with path.open("rb") as file:
            if SCHEMA.encode() not in file.read(4096):
                raise InputError(f"save_as {shown(name)}: what is there is not a plan; it stays.")
    elif not path.parent.is_dir():
        raise InputError(f"save_as {shown(name)}: its folder does not exist.")
    return str(path)


def _below(root: Path, name: str, *, exists: bool = True) -> Path:
    """Return where a name leads, links followed."""
    if not name or len(name) > _MOST_NAME or not name.isprintable():
        raise InputError(f"{shown(name)}: not the name of a file.")
    try:
        path = (root / name).resolve(strict=exists)
    except (OSError, RuntimeError):
        raise InputError(f"{shown(name)}: there is no such file below {root}.") from None
    if not path.is_relative_to(root):
        raise InputError(f"{shown(name)}: it leads out of {root}, which is all that may be read.")
    if exists and not (path.is_file() or path.is_dir()):
        raise InputError(f"{shown(name)}: neither a file nor a folder.")
    return path


def _too_much(root: Path, paths: Iterable[str]) -> list[str]:
    """Return what is too large to be read for an agent, or leads out of the root by a link."""
    files = size = 0
    for path in paths:
        walked = [path] if os.path.isfile(path) else _files(path)  # noqa: PTH113 - text, as walked
        for one in walked:
            files += 1
            if files > MOST_FILES:
                return [f"sources: more than {MOST_FILES} files; name fewer."]
            if not Path(one).resolve().is_relative_to(root):
                return [f"{shown(one)}: it leads out of {root}, which is all that may be read."]
            size += Path(one).stat().st_size if Path(one).exists() else 0
    if size > MOST_BYTES:
        return [f"sources: more than {MOST_BYTES >> 20} MiB; `gpucost plan` itself reads them."]
    return []


def _files(folder: str) -> Iterable[str]:
    """Yield what lies in a folder and below it, links to folders included."""
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]  # noqa: PTH114, PTH118 - as walked
        yield from (os.path.join(place, name) for name in (*files, *links))  # noqa: PTH118 - the same


def shown(value: str) -> str:
    """Return a value as an error shows it: one line, not long."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(value)} characters)"
