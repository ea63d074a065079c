"""What people hand over that is not read: recognised, named, and answered with what to give."""

import re
from dataclasses import dataclass

_LATER = "is recognised but not read by this version"
_QUERY = (
    "Give `nvidia-smi --query-gpu=timestamp,index,uuid,name,utilization.gpu,utilization.memory,"
    "memory.used,memory.total,power.draw --format=csv -l 1` output instead"
)
_EVENTS = (
    "Give the run's system metrics instead: `run.history(stream='events')` of the W&B API, "
    "written as JSON lines"
)
_BILL = "A bill says what was paid, not how busy GPUs were. " + _QUERY
_RANGE = (
    "Give the answer of `/api/v1/query_range` for DCGM_FI_DEV_GPU_UTIL, DCGM_FI_DEV_FB_USED and "
    "DCGM_FI_DEV_POWER_USAGE instead"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """One kind of content that is refused.

    Attributes:
        what: what it is, in the sender's words.
        pattern: found in the first characters of such content, and of no readable format.
        why: why it is refused.
        instead: what to give.
    """

    what: str
    pattern: re.Pattern[str]
    why: str
    instead: str


def _row(what: str, pattern: str, why: str = _LATER, instead: str = _QUERY) -> Unread:
    return Unread(what=what, pattern=re.compile(pattern, re.MULTILINE), why=why, instead=instead)


# Tried in this order, before the readable formats.
UNREAD = (
    _row(
        "a gpucost plan",
        r'"schema"\s*:\s*"gpucost\.plan/',
        "is a result, no measurement",
        "Give what it was made from",
    ),
    _row(
        "what a command of gpucost wrote",
        r'\A\s*\{\s*"schema"\s*:\s*"gpucost\.(?!profile/)[a-z]+/',
        "is a result, no measurement",
        "Give the profile.json or the telemetry that it was made from",
    ),
    _row(
        "a Grafana dashboard",
        r'(?s)\A\s*\{(?=.*"(panels|__requires|templating)"\s*:)(?=.*"(targets|datasource|pluginVersion)"\s*:)',
        "says what is drawn and holds no measurement",
        _RANGE,
    ),
    _row(
        "a list of dcgm-exporter counters",
        r"^# DCGM FIELD, Prometheus metric type, help",
        "names counters and holds no measurement",
        _RANGE,
    ),
    _row(
        "the help text of `nvidia-smi --help-query-gpu`",
        r"^List of valid properties to query for the switch",
        "describes fields and holds no measurement",
    ),
    _row(
        "W&B run metadata (wandb-metadata.json)",
        r'"gpu_nvidia"\s*:|"startedAt"\s*:\s*"',
        "says which GPU, not how busy it was",
        _EVENTS,
    ),
    _row(
        "a W&B run summary (wandb-summary.json)",
        r'\A\s*\{[^\n]*"_wandb"\s*:\s*\{',
        "holds last values only",
        _EVENTS,
    ),
    _row(
        "an AWS cost and usage report",
        r"^\W?(identity/LineItemId|identity_line_item_id|bill_)",
        instead=_BILL,
    ),
    _row("a FOCUS bill", r"^[^\n]*\bBilledCost\b[^\n]*\bChargePeriod", instead=_BILL),
    _row("an Azure cost export", r"^[^\n]*\bCostInBillingCurrency\b", instead=_BILL),
    _row(
        "a DigitalOcean bill",
        r'\A\s*\{\s*"(invoice_items|billing_history|invoices|data_points)"'
        r"|^product,group_description,",
        instead=_BILL,
    ),
    _row(
        "an API description or example (YAML)",
        r"\A(?:[ \t]*(?:#[^\n]*|---[^\n]*)?\r?\n)*"
        r"[\w.-]+:(?: [^\n]*)?\r?\n(?:[ \t]*[\w.-]+:|[ \t]*- |  )",
        "describes answers and holds no measurement of yours",
        _RANGE,
    ),
)
# Tried after the readable formats: a log of tables may end in rows that can be read.
UNREAD_LAST = (
    _row("a Parquet file", r"\APAR1"),
    _row("an SQLite database (nsys export?)", r"\ASQLite format 3"),
    _row("a web page", r"(?i)\A\s*<(!doctype )?html", "holds no measurement"),
)


def unread(head: str, rows: tuple[Unread, ...]) -> Unread | None:
    """Return the row that knows this content, None where none does."""
    return next((row for row in rows if row.pattern.search(head)), None)


def refusal(name: str, row: Unread) -> str:
    """Return the sentence that refuses a source of this kind."""
    return f"{name}: this is {row.what}, which {row.why}. {row.instead}."


def booking(header: str) -> str:
    """Return why a list of reservations is not a measurement, "" where the header is not one."""
    words = {word.strip().lower() for word in re.split(r"[,;\t|]", header)}
    if words & {"hours", "reserved", "booked", "duration", "user"}:
        return (
            " Reservations say who held GPUs and for how long, not how busy the GPUs were: "
            "log nvidia-smi while the job runs (`gpucost import --help` shows how)."
        )
    return ""
