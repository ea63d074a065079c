"""Every text of every document that gpucost writes, through each medium: nothing of it acts."""

import ast
import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from typing import Any

import msgspec
import pytest

from gpucost.schemas.documents import DOCUMENTS, WrittenDocument
from gpucost.views.output import Output, Table, print_table
from planner.documents.focus_export import rows, to_csv
from planner.documents.plan_change import PlanChange
from planner.documents.selection import select
from planner.models.document import encode
from planner.plan.read import read_plan
from planner.proof.verify import Verification
from templates.render import render_change, render_proof
from templates.strangers import for_markdown
from tests.conftest import ROOT
from tests.source_tree import PACKAGES, modules
from tests.templates.documents import CASES, planned
from tests.templates.test_strangers import EVIL, alive_in_markdown

PAYLOADS = (EVIL, "=cmd|' /C calc'!A0", "@everyone", "#1", "\x1b]0;owned\x07", "\x00", "\u2028=1+1")
# Who writes CSV, and what keeps a cell from being a formula there.
CSV_WRITERS = {
    "gpucost/views/output.py": "for_csv",
    "planner/documents/focus_export.py": "for_csv",
    "pricing/refresh/store.py": "HEADER",  # the cache, which only gpucost reads
}
# Documents whose own fields say how they are read; a profile's texts reach people in a plan.
_CODES = {"purchase": "on_demand", "period": "month", "by_hand_at": "https://e.example"}
WITHOUT_CLASS = {"profile", "capture", "agent-provision"}


def _evil(schema: dict[str, Any], classes: dict[str, Any], name: str = "", depth: int = 0) -> Any:
    """Return a value of a schema in which each text that may be any is the payload."""
    if "$ref" in schema:
        return _evil(classes[schema["$ref"].split("/")[-1]], classes, name, depth + 1)
    if "anyOf" in schema:
        return _evil(
            next(s for s in schema["anyOf"] if s.get("type") != "null"), classes, name, depth
        )
    for word in ("const", "enum"):
        if word in schema:
            return schema[word] if word == "const" else schema[word][0]
    kind = schema.get("type")
    kind = next(k for k in kind if k != "null") if isinstance(kind, list) else kind
    if kind == "string":
        return _text(schema, name)
    if kind == "array":
        inner = schema.get("prefixItems") or [schema["items"]]
        return [_evil(item, classes, name, depth) for item in inner] if depth < 9 else []
    if kind == "object":
        fields = schema.get("properties")
        if fields is None:
            inner = schema.get("additionalProperties")
            return {EVIL: _evil(inner, classes, name, depth)} if isinstance(inner, dict) else {}
        return {key: _evil(inner, classes, key, depth) for key, inner in fields.items()}
    return True if kind == "boolean" else schema.get("minimum", 1)


def _text(schema: dict[str, Any], name: str) -> str:
    if name in _CODES:  # read as one of a few words
        return _CODES[name]
    dates = {"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z"}
    if schema.get("format") in dates:
        return dates[schema["format"]]
    return "1.00" if "pattern" in schema else EVIL


def _document(document: WrittenDocument) -> Any:
    """Return a document as the value that is rendered, with the payload in all of its texts."""
    module, _, name = document.source.partition(":")
    schema = document.schema
    fields = schema["items"] if document.form == "list" and "items" in schema else schema
    return msgspec.convert(
        _evil(fields, schema.get("$defs", {})),
        getattr(import_module(module), name),
        strict=False,
        dec_hook=lambda _, text: Decimal(text),
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *_texts(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


@pytest.mark.parametrize("name", sorted(DOCUMENTS.keys() - WITHOUT_CLASS - {"plan"}))
def test_no_text_of_a_document_passes_the_gate_of_markdown(name: str) -> None:
    """Whatever a document is made of, each of its texts is plain behind the gate."""
    document = _document(DOCUMENTS[name])
    texts = list(_texts(encode(document)))
    assert any("e.example" in text for text in texts) or name == "steps"
    behind = list(_texts(encode(for_markdown(document))))
    assert [problem for text in behind for problem in alive_in_markdown(text)] == []


def test_a_proof_and_a_change_of_strangers_are_plain() -> None:
    """The comments on a pull request that are not of a plan: of two runs, and of two plans."""
    proof = _document(DOCUMENTS["verification"])
    change = _document(DOCUMENTS["plan-change"])
    assert isinstance(proof, Verification)
    assert isinstance(change, PlanChange)
    for text in (render_proof(proof), render_change(change), render_change(change, lang="zh")):
        assert "e.example" in text
        assert list(alive_in_markdown(text)) == []


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_cell_of_a_table_acts(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Markdown, CSV and a terminal's table, in a title and in each column."""
    table = Table(columns=("a", "b"), rows=((payload, "1"), ("2", payload)), title=payload)
    print_table(table, Output(format="md"))
    assert list(alive_in_markdown(capsys.readouterr().out)) == []
    print_table(table, Output(format="csv"))
    _check_csv(capsys.readouterr().out)
    print_table(table, Output(format="table"))
    assert all(c.isprintable() or c == "\n" for c in capsys.readouterr().out)


def _check_csv(text: str) -> None:
    read = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in read}) == 1
    for cell in (cell for row in read for cell in row):
        assert cell.isprintable(), cell
        assert cell.lstrip()[:1] not in ("=", "@"), cell


def test_no_cell_of_a_forecast_is_a_formula() -> None:
    """FOCUS rows are opened in spreadsheets: a job's name is not worked out there."""
    plan = planned(*CASES["visual-search"])
    (job,) = plan.jobs
    text = json.dumps(encode(plan)).replace(json.dumps(job.name), json.dumps(PAYLOADS[1]))
    evil = read_plan(text.encode(), "plan.json")
    chosen, _ = select(evil)
    written = to_csv(rows(evil, chosen))
    assert "calc" in written
    _check_csv(written)


def test_who_writes_csv_is_listed() -> None:
    """A module that begins to write CSV must be named above, with what guards its cells."""
    writers = {
        module.name
        for module in modules(*PACKAGES)
        for node in module.nodes(ast.Call)
        if ast.unparse(node.func) in ("csv.writer", "csv.DictWriter", "DictWriter", "writer")
    }
    assert writers == set(CSV_WRITERS)
    for name, gate in CSV_WRITERS.items():
        assert gate in (ROOT / name).read_text(encoding="utf-8")
