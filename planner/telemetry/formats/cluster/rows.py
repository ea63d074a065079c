"""The rows of schedulers, servers and clouds in the table of formats."""

from planner.telemetry.formats.form import Format

ROWS: tuple[Format, ...] = ()
