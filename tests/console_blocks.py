"""Console blocks of a page: their commands, what the page shows below each, what they print.

A block shows commands after `$ ` and the lines that they print; a line `...` stands for lines that
are left out. Amounts, dates and ages are masked: they move with the catalog and the day.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from providers.redaction import VARIABLES

DAY = "2026-11-27"
"""The day on which the screens of all pages are taken."""

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ELIDED = "..."
_ON_A_DAY = Path(__file__).resolve().parent / "on_a_day"
_MASKS = (
    (re.compile(r"gpucost-[a-z0-9]{8}\b"), "RUN"),
    (re.compile(r"\d{4}-\d{2}-\d{2}(T[\d:.]+Z?)?"), "DATE"),
    (re.compile(r"\b(\d+ days?|stale|ageing|old|fresh)\b"), "AGE"),
    (re.compile(r"(<= |>= |[$-])?\d[\d,.]*( ?%)?"), "#"),
    (re.compile(r"#(-#)+"), "#"),
    (re.compile(r"[─━]+"), " "),
    (re.compile(r"(AGE|DATE)( (AGE|DATE))+"), "AGE"),
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a page.

    Attributes:
        line: as it is typed.
        shown: the lines below it on the page.
        start: place of the first of them in the text of the page.
        end: place behind the last of them.
    """

    line: str
    shown: tuple[str, ...]
    start: int
    end: int


def saved_files(text: str) -> Iterator[tuple[str, str]]:
    """Name and content of each file that a page tells its reader to write."""
    yield from _SAVED.findall(text)


def commands(text: str) -> Iterator[Command]:
    """The commands of all console blocks, in order."""
    for block in _BLOCK.finditer(text):
        typed = [*re.finditer(r"^\$ (.+)\n", block[1], re.MULTILINE)]
        ends = [match.start() for match in typed[1:]] + [len(block[1])]
        for match, end in zip(typed, ends, strict=True):
            shown = block[1][match.end() : end]
            yield Command(
                line=match[1],
                shown=tuple(shown.splitlines()),
                start=block.start(1) + match.end(),
                end=block.start(1) + end,
            )


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page in a folder, on the day of the pages, without the user's settings."""
    bin_ = Path(sys.executable).parent
    users = ("GPUCOST_", "AWS_", *VARIABLES)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(users)}
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={
            **kept,
            "PATH": f"{bin_}{os.pathsep}{kept['PATH']}",
            "XDG_CONFIG_HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "AWS_EC2_METADATA_DISABLED": "true",
            "PYTHONPATH": str(_ON_A_DAY),
            "PYTHONUNBUFFERED": "1",
            "GPUCOST_TEST_DAY": DAY,
            "COLUMNS": "100",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


def masked(lines: Sequence[str]) -> list[str]:
    """The words of an output, its amounts, dates and ages masked; line breaks do not count."""
    text = " ".join(lines)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.split()


def shows(shown: Sequence[str], printed: str) -> bool:
    """Return whether a page shows what was printed; what stands for left-out lines aside."""
    pattern = ""
    part: list[str] = []
    for line in (*shown, None):
        if line is None or line.strip() == _ELIDED:
            pattern += r"\s*".join(re.escape(word) for word in masked(part))
            pattern += "" if line is None else r"[\s\S]*"
            part = []
        else:
            part.append(line)
    return re.fullmatch(rf"\s*{pattern}\s*", " ".join(masked(printed.splitlines()))) is not None


def as_shown(shown: Sequence[str], printed: str) -> list[str]:
    """Return what a page should show: as many lines as before where it leaves out the rest."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    elided = [place for place, line in enumerate(shown) if line.strip() == _ELIDED]
    if not elided:
        return lines
    if elided != [len(shown) - 1] and shows(shown, printed):
        return [*shown]
    return [*lines[: elided[0]], _ELIDED]
