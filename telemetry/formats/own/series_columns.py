"""Which Parquet files are the samples beside a profile: by their columns, before any is read."""

from dataclasses import fields
from pathlib import Path

from planner.profile.metrics import SLOTS
from planner.profile.model import Host
from telemetry.parsing.parquet import MAGIC, footer_of
from telemetry.recording.recording import EXTRA, GPU, TIME

HOST, _OF_MACHINE = "host.", "machine."
_HOST_FIELDS = tuple(field.name for field in fields(Host))
OURS = {
    TIME,
    GPU,
    *SLOTS,
    *EXTRA,
    *(f"{HOST}{name}" for name in _HOST_FIELDS),
    *(f"{HOST}{_OF_MACHINE}{name}" for name in _HOST_FIELDS),
}
# A column stands in the footer behind its length.
_NAMED = (b"\x03t_s", b"\x03gpu")


def fits(head: str) -> bool:
    """Return whether bytes of a Parquet file name the columns of samples."""
    return head.startswith(MAGIC.decode()) and all(name.decode() in head for name in _NAMED)


def is_series_table(path: str | Path) -> bool:
    """Return whether a file is Parquet with columns of samples and no other.

    One with a column more, such as a job, is a table of a fleet.
    """
    footer = footer_of(path)
    if not all(name in footer for name in _NAMED):
        return False
    import duckdb  # noqa: PLC0415 - only where there is such a file

    try:
        with duckdb.connect() as engine:
            named = engine.read_parquet(str(path)).columns
    except duckdb.Error:
        return False
    return set(named) <= OURS
