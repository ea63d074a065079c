"""The rows of AMD in the table of formats."""

from planner.telemetry.formats.form import Format

ROWS: tuple[Format, ...] = ()
