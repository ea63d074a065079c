"""The ids of runs, read without a lock and without making or mending anything."""

import sqlite3
from contextlib import closing
from pathlib import Path

from providers.journal.journal_file import FILE


def run_ids(folder: Path) -> tuple[str, ...]:
    """Return the runs of the journal: those that have not ended first, then the newest first.

    Raises:
        sqlite3.Error: there is no journal, or it cannot be read.
    """
    address = f"{(folder / FILE).resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=0.1)) as journal:
        rows = journal.execute("SELECT run FROM runs ORDER BY state = 'ended', started_at DESC")
        return tuple(str(run) for (run,) in rows)
