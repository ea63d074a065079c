"""The rows of profilers in the table of formats."""

from planner.telemetry.formats.form import Format

ROWS: tuple[Format, ...] = ()
