"""The columns of tables with one reading a row, by the names that tools give them."""

from typing import cast

TIMES = ("_time", "timestampus", "timestamp_us", "timestamp_ms", "timestamp", "datetime", "time")
NAMES = ("_field", "field", "metricname", "metric_name", "metric", "attribute_path", "key", "name")
VALUES = ("_value", "value", "values", "metricvalue", "metric_value", "float_value")


def columns_of(header: str) -> tuple[str, str, str] | None:
    """Return the columns of time, name and value of a header; None where one is missing."""
    cells = {cell.strip().strip('"').lower() for cell in header.split(delimiter_of(header))}
    found = [next((one for one in row if one in cells), None) for row in (TIMES, NAMES, VALUES)]
    return cast("tuple[str, str, str]", tuple(found)) if all(found) else None


def delimiter_of(line: str) -> str:
    """Return what stands between the cells of a line."""
    return max(",;\t|", key=line.count)


def is_filled(line: str) -> bool:
    """Return whether a line is one of a table; InfluxDB's annotations begin with `#`."""
    return bool(line.strip(" ,\t\r")) and not line.startswith("#")
