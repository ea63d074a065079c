"""The tables of formats and of their columns: what they name exists, and every unit converts."""

import importlib

import pytest

from telemetry.formats.sniff import Format, formats
from telemetry.readers import column_names

TEXTS = {"timestamp", "index", "uuid", "host", "bus", "name", "mig", "date", "partition"}
FLAGS = {column_names.BITMASK, column_names.FLAG}


@pytest.mark.parametrize("row", formats(), ids=lambda row: row.name)
def test_a_format_has_its_reader(row: Format) -> None:
    """The function that formats.toml names is there."""
    module, _, function = row.reader.partition(":")
    assert callable(getattr(importlib.import_module(f"telemetry.formats.{module}"), function))


@pytest.mark.parametrize("section", sorted(column_names.sections()))
def test_every_column_fills_a_reading_in_a_unit_that_converts(section: str) -> None:
    """A reading or a unit that columns.toml misspells is found here."""
    for name, holds in column_names.names_of(section).items():
        is_text = holds.target in TEXTS | FLAGS and not holds.unit
        assert is_text or holds.scale is not None, f"{name}: {holds.unit} of {holds.target}"
