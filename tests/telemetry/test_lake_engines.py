"""The questions to an engine can be asked in the languages of the warehouses that people have."""

import ibis
import pytest
import sqlglot

from telemetry.lake import histogram
from telemetry.lake.profiles import columns_of
from telemetry.readers.hints import Hints

# Spark's own language is written as that of Databricks, for which Ibis needs no session.
ENGINES = (
    "duckdb",
    "sqlite",
    "clickhouse",
    "bigquery",
    "trino",
    "snowflake",
    "databricks",
    "postgres",
)
COLUMNS = {
    "ts": "timestamp",
    "job": "string",
    "host": "string",
    "gpu_index": "int64",
    "uuid": "string",
    "name": "string",
    "gpu_util": "float64",
    "memory_used": "float64",
    "power": "float64",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("time", ["timestamp", "int64"])
def test_every_question_is_one_statement_of_the_engine(engine: str, time: str) -> None:
    """Devices, steps and values are compiled, and parse as that engine's language (sqlglot)."""
    table = ibis.table(COLUMNS | {"ts": time}, name="readings")
    columns = columns_of(table.columns, "readings", Hints())
    rows = histogram.readings(table, columns, 1.0)
    for question in (
        histogram.devices(rows, columns),
        histogram.steps(rows),
        histogram.values(rows, columns, 15.0, (["a"], {1})),
    ):
        text = ibis.to_sql(question, dialect=engine)
        (statement,) = sqlglot.parse(text, dialect=engine)
        assert statement is not None
        assert statement.find(sqlglot.exp.Group) is not None
