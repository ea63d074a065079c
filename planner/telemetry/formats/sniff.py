"""Recognises a source by its content: one table of formats, one module each."""

import importlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from planner.telemetry.formats.unread import UNREAD, UNREAD_LAST, Unread, booking, refusal, unread
from planner.telemetry.parsing.csv_columns import csv_header
from planner.telemetry.parsing.hints import Hints
from planner.telemetry.parsing.payload import Payload, decode
from planner.telemetry.recording.recording import Recording
from pricing.errors import InputError

PROFILE = "profile"
_PROMETHEUS = re.compile(
    r"^# TYPE [A-Za-z_:][\w:]* (gauge|counter|untyped|summary|histogram)\s*$"
    r"|^(dcgm_fi_|nvidia_smi_)\w+(\{[^\n]*\})?\s+\S",
    re.MULTILINE | re.IGNORECASE,
)
# `gpu` and a column of dmon's behind it: a heading `# GPU plan` is none.
_DMON = re.compile(
    r"^#\s*(Date\s+)?(Time\s+)?gpu\s+"
    r"(pwr|[gm]temp|sm|mem|enc|dec|jpg|ofa|[mp]clk|[pt]viol|fb|bar1|ccpm|[sd]becc|pci|[rt]xpci)\b",
    re.MULTILINE | re.IGNORECASE,
)
_NVIDIA_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", re.MULTILINE)
_NVIDIA_TABLE = re.compile(r"\bNVIDIA-SMI \d+\.\d+")
_HEADER_WITHIN = 200
_MOST_BINARY = 0.1


class StrangerError(InputError):
    """A source is nothing that gpucost reads.

    Attributes:
        what: what it is, as the end of a sentence.
    """

    def __init__(self, sentence: str, what: str) -> None:
        super().__init__(sentence)
        self.what = what


class _ReaderModule(Protocol):
    def read(self, payload: Payload, hints: Hints) -> Recording: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format that can be read.

    Attributes:
        name: what `--format` calls it.
        title: what people call it.
        module: the module of this package whose `read(payload, hints)` reads it.
        fits: whether the first characters of a source are of it.
    """

    name: str
    title: str
    module: str
    fits: Callable[[str], bool]

    def read(self, payload: Payload, hints: Hints) -> Recording:
        """Return what the source holds; the reader's module is imported on first use."""
        module = importlib.import_module(f"planner.telemetry.formats.{self.module}")
        return cast("_ReaderModule", module).read(payload, hints)


def _json_with(pattern: str) -> Callable[[str], bool]:
    keys = re.compile(pattern)
    return lambda head: head.lstrip()[:1] in ("{", "[") and bool(keys.search(head))


# A schema of ours settles it: a profile's provenance names columns of every other format.
_says_ours = _json_with(r'^\s*\[?\s*\{\s*"schema"\s*:\s*"gpucost\.')
_is_profile = _json_with(r'"(schema|hardware|job|gpus|window)"\s*:')


def _is_dmon(head: str) -> bool:
    return bool(_DMON.search(head))


def _is_csv(head: str) -> bool:
    if head.lstrip()[:1] in ("{", "[", "<"):
        return False
    # A log of tables may go on as rows further down: its reader looks.
    if _NVIDIA_TIME.search(head) or _NVIDIA_TABLE.search(head):
        return True
    return csv_header(head.splitlines()[:_HEADER_WITHIN], Hints()) is not None


FORMATS = (
    Format(
        name="gpucost-capture",
        title="the capture of a `gpucost profile` that was cut off",
        module="capture",
        fits=_json_with(r'^\s*\{\s*"capture"\s*:\s*"gpucost\.capture/'),
    ),
    Format(
        name="prometheus-json",
        title="Prometheus HTTP API JSON",
        module="prometheus_json",
        fits=_json_with(r'"resultType"\s*:|"status"\s*:\s*"(success|error)"'),
    ),
    Format(
        name="wandb-jsonl",
        title="W&B system metrics (JSON lines)",
        module="wandb_jsonl",
        fits=_json_with(r'"(system[./])?gpu\.(process\.)?\d+\.|"system\.(cpu|memory)|"_timestamp"'),
    ),
    Format(
        name="nvidia-smi-dmon",
        title="nvidia-smi dmon",
        module="dmon",
        fits=_is_dmon,
    ),
    Format(
        name="prometheus-text",
        title="Prometheus exposition text (dcgm-exporter, nvidia_gpu_exporter)",
        module="prometheus_text",
        fits=lambda head: bool(_PROMETHEUS.search(head)),
    ),
    Format(
        name="nvidia-smi-csv",
        title="nvidia-smi CSV and CSV of GPU readings",
        module="nvidia_smi_csv",
        fits=_is_csv,
    ),
)
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
    text = decode(head)
    if not text.strip():
        raise StrangerError(
            f"{name}: the file is empty. Give a telemetry file or a profile.json.", "empty"
        )
    _refuse(name, text, UNREAD)
    if _says_ours(text):
        return None
    if not _is_binary(text):
        for row in FORMATS:
            if row.fits(text):
                return row
        if _is_profile(text):
            return None
        if hints.map and text.lstrip()[:1] not in ("{", "[", "<"):
            return _named("nvidia-smi-csv")
    _refuse(name, text, UNREAD_LAST)
    raise StrangerError(_unknown(name, head, text), "not telemetry that gpucost knows")


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
    return f"{name}: not telemetry that gpucost knows; it begins {shown!r}.{booking(first)} {end}"


def _json_problem(head: bytes) -> str:
    try:
        document = json.loads(head)
    except RecursionError:
        return "brackets are nested too deeply for telemetry or a profile."
    except ValueError:
        return "JSON that is neither a profile nor telemetry, or is damaged."
    keys = ", ".join(list(document)[:8]) if isinstance(document, dict) else "a list"
    return f"JSON, but neither a profile nor telemetry (it holds: {keys or 'nothing'})."
