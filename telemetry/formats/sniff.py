"""Recognises a source by its content, by the tables of the families of formats."""

import json
import re

from pricing.errors import InputError
from telemetry.formats.amd.rows import ROWS as AMD
from telemetry.formats.cluster.rows import ROWS as CLUSTER
from telemetry.formats.form import Format, json_with
from telemetry.formats.metrics.rows import ROWS as METRICS
from telemetry.formats.own.rows import ROWS as OWN
from telemetry.formats.profilers.rows import ROWS as PROFILERS
from telemetry.formats.smi.rows import LAST
from telemetry.formats.smi.rows import ROWS as SMI
from telemetry.formats.trackers.rows import ROWS as TRACKERS
from telemetry.formats.unread import UNREAD, UNREAD_LAST, Unread, booking, refusal, unread
from telemetry.formats.wandb.rows import ROWS as WANDB
from telemetry.readers.hints import Hints
from telemetry.readers.payload import decode

PROFILE = "profile"
_MOST_BINARY = 0.1
_READING = re.compile(r"[-+]?[\d.]+\s*(%|[kMG]?i?B|m?W|MHz|C)?")
_FEWEST_READINGS = 3


class StrangerError(InputError):
    """A source is nothing that gpucost reads.

    Attributes:
        what: what it is, as the end of a sentence.
    """

    def __init__(self, sentence: str, what: str) -> None:
        super().__init__(sentence)
        self.what = what


# A schema of ours settles it: a profile's provenance names columns of every other format.
_says_profile = re.compile(r'\s*\[?\s*\{\s*"schema"\s*:\s*"gpucost\.profile/').match
_says_ours = json_with(r'^\s*\[?\s*\{\s*"schema"\s*:\s*"gpucost\.')
_is_profile = json_with(r'"(schema|hardware|job|gpus|window)"\s*:')


# The first row that fits is the one.
FORMATS = (*OWN, *METRICS, *WANDB, *TRACKERS, *PROFILERS, *AMD, *CLUSTER, *SMI, *LAST)
NAMES = (PROFILE, *(row.name for row in FORMATS))


def recognise(name: str, head: bytes, hints: Hints) -> Format | None:
    """Return the format of a source, None for a `profile.json`.

    Args:
        name: the file's name, for messages.
        head: its first bytes, unpacked.
        hints: `format` overrules the content; `map` makes any CSV readable.

    Raises:
        StrangerError: the source is empty, binary, known but not read, or not known.
        InputError: no format has the name that `hints` gives.
    """
    if hints.format is not None:
        return _named(hints.format)
    if (row := _fitting(head.decode("latin-1"), binary=True)) is not None:
        return row
    text = decode(head)
    if not text.strip():
        raise StrangerError(
            f"{name}: the file is empty. Give a telemetry file or a profile.json.", "empty"
        )
    if _says_profile(text):
        return None
    _refuse(name, text, UNREAD)
    if _says_ours(text):
        return None
    if not _is_binary(text):
        if (row := _fitting(text, binary=False)) is not None:
            return row
        if _is_profile(text):
            return None
        if hints.map and text.lstrip()[:1] not in ("{", "[", "<"):
            return _named("nvidia-smi-csv")
    _refuse(name, text, UNREAD_LAST)
    raise StrangerError(_unknown(name, head, text), "not telemetry that gpucost knows")


def _fitting(head: str, *, binary: bool) -> Format | None:
    return next((row for row in FORMATS if row.binary is binary and row.fits(head)), None)


def _refuse(name: str, text: str, rows: tuple[Unread, ...]) -> None:
    row = unread(text, rows)
    if row is not None:
        raise StrangerError(refusal(name, row), f"{row.what}, which {row.why}")


def _named(name: str) -> Format | None:
    if name == PROFILE:
        return None
    for row in FORMATS:
        if row.name == name:
            return row
    raise InputError(f"--format {name}: no such format. Use one of: {', '.join(NAMES)}.")


def _is_binary(text: str) -> bool:
    odd = sum(c == "�" or (c < " " and c not in "\t\r\n\f\x1b") for c in text[:4096])
    return odd > _MOST_BINARY * len(text[:4096])


def _unknown(name: str, head: bytes, text: str) -> str:
    known = "; ".join(row.title for row in FORMATS)
    end = f"gpucost reads: profile.json; {known}."
    if _is_binary(text):
        return f"{name}: binary data of no kind that gpucost knows. {end}"
    if text.lstrip()[:1] in ("{", "["):
        return f"{name}: {_json_problem(head)} {end}"
    first = next(line.strip() for line in text.splitlines() if line.strip())
    shown = first if len(first) <= 80 else first[:77] + "..."  # noqa: PLR2004 - a line of a screen
    more = booking(first) or _headless(first)
    return f"{name}: not telemetry that gpucost knows; it begins {shown!r}.{more} {end}"


def _headless(first: str) -> str:
    """Return what to do with rows of readings without a header, "" for other lines."""
    cells = [cell.strip() for cell in re.split(r"[,;\t|]", first)]
    readings = sum(_READING.fullmatch(cell) is not None for cell in cells)
    if readings < _FEWEST_READINGS or readings < len(cells) / 2:
        return ""
    return (
        " It looks like rows of readings without a header: name its columns by number, such as "
        "--map 1=timestamp --map 2=index --map 3=util.kernel_time."
    )


def _json_problem(head: bytes) -> str:
    try:
        document = json.loads(head)
    except RecursionError:
        return "brackets are nested too deeply for telemetry or a profile."
    except ValueError:
        return "JSON that is neither a profile nor telemetry, or is damaged."
    keys = ", ".join(list(document)[:8]) if isinstance(document, dict) else "a list"
    return f"JSON, but neither a profile nor telemetry (it holds: {keys or 'nothing'})."
