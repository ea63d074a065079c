"""Every document that gpucost writes has a JSON Schema, holds to it, and nothing else does."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpucost.agents.budget import AgentCap, AgentPreview
from gpucost.loop.loop_steps import LoopRecord, Round
from gpucost.profiling.run_files import StepLine
from gpucost.profiling.run_request import BatchSearch, BatchTried
from gpucost.schemas.documents import DOCUMENTS
from planner.models.document import encode
from planner.models.estimate import Interval
from planner.models.track_record import PastPrediction, outcome_line
from telemetry.measure.capture_block import Block
from telemetry.measure.capture_file import CaptureFile
from telemetry.recording.recording import GpuIdentity
from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF, EXAMPLES
from tests.gpucost.written import BY_COMMAND, faults, hold

PACKAGES = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
AGENTS = {name for name in DOCUMENTS if name.startswith("agent-")}
SCHEMA = re.compile(r"\bgpucost\.([a-z-]+)/v1")
JOBS = sorted(path for path in EXAMPLES.rglob("*.json") if "pods" not in str(path))
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
ENDS = Interval(low=1.0, mid=1.5, high=2.0)
BLOCK = Block(begin_s=1.0, end_s=2.0, n=2, points={"a": [(0.5, 1.0)]}, means={"a": [0.5, None]})

VALUES: dict[str, Any] = {
    "agent-launch": encode(AgentCap(run="k3f9xw2m", cap_usd=Decimal("12.50"))),
    "agent-provision": encode(
        AgentPreview(
            preview=("1 x aws/g6.xlarge",),
            worst_case_usd=Decimal("5.00"),
            budget_left_after_usd=Decimal(0),
            confirm="token",
            next="call again",
        )
    ),
    "batch-search": json.loads(
        BatchSearch(
            own=8,
            fastest=16,
            smallest=16,
            largest=16,
            why="32: out of GPU memory",
            tried=(BatchTried(batch=8, fits=True),),
        ).document
    ),
    "loop": encode(
        LoopRecord(
            command=("python", "train.py"),
            rounds=(
                Round(
                    folder="1",
                    before="before.json",
                    option="train/o1",
                    where="here",
                    settings=("tf32",),
                    speedup=Interval(low=1.0, mid=1.5, high=2.0),
                    costs_usd=Decimal("0.10"),
                ),
            ),
        )
    ),
    "outcome": json.loads(
        outcome_line(
            PastPrediction(
                id="a",
                recorded=AT,
                job="train",
                option="train/o1",
                actions=("tf32",),
                moved=False,
                predicted=ENDS,
                measured=ENDS,
                verdict="proved",
            )
        )
    ),
    "steps": encode(StepLine(t_s=1.5, step=10, n=10, step_s=0.25, loss=1.0)),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_a_schema(name: str) -> None:
    """It is valid under draft 2020-12, can be published as JSON, and says what it is of."""
    schema = DOCUMENTS[name].schema
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$id"] == f"urn:gpucost:{name}:v1"


def test_every_named_document_has_a_schema() -> None:
    """Each `gpucost.NAME/v1` of the code is a row of the table, and each other row is printed."""
    texts = (path.read_text("utf-8") for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    named = {found for text in texts for found in SCHEMA.findall(text)}
    assert named <= set(DOCUMENTS)
    assert set(DOCUMENTS) - named == {
        *BY_COMMAND.values(),
        *AGENTS,
        "steps",
    }


def test_a_document_without_a_schema_is_noticed() -> None:
    """What a command prints must be one of the documents; every test of a command asks that."""
    with pytest.raises(AssertionError, match="has no schema"):
        hold(("diff", "a", "b", "-f", "json"), '{"total": 1}')
    with pytest.raises(AssertionError, match="surprise"):
        hold(("explain", "idle", "-f", "json"), '{"code": "idle", "text": [], "surprise": 1}')


@pytest.mark.parametrize("name", VALUES)
def test_files_hold_to_their_schema(name: str) -> None:
    """What is written beside what commands print holds to it; with a stray field it does not."""
    assert faults(VALUES[name], name) == []
    assert faults({**VALUES[name], "surprise": 1}, name) != []


def test_every_line_of_a_capture_holds_to_its_schema(tmp_path: Path) -> None:
    """The first line, facts, series, readings, blocks, events, notes and the end."""
    capture = CaptureFile(tmp_path / "profile.capture.jsonl")
    capture.begin(1.0, {"job": "train", "interval_s": 1.0, "cpu_cores": 4})
    capture.facts({"ram_gib": 16})
    capture.row(2.0, GpuIdentity(key="0", index=0), {"util.kernel_time": 0.5})
    capture.row(2.0, None, {"cpu_util": 0.25})
    capture.lines([BLOCK.as_json(0), '{"event": "step", "t_s": 2.0}'])
    capture.note("a note.")
    capture.device_notes(["a device."])
    capture.end(3.0)
    lines = [json.loads(line) for line in capture.path.read_text("utf-8").splitlines()]
    assert len(lines) == 11
    assert [fault for line in lines for fault in faults(line, "capture")] == []
    for wrong in ({"note": 1}, {"columns": ["a"]}, [0, 1.0], [0, 1.0, "x"], {"surprise": 1}):
        assert faults(wrong, "capture") != []


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_the_documents_of_every_example(path: Path, call: Call, tmp_path: Path) -> None:
    """Profile, diagnosis, plan, recipe and quote of each bundled job; the plan also as its file."""
    assert faults(json.loads(path.read_text("utf-8")), "profile") == []
    assert call("diagnose", str(path), "-f", "json").code == 0
    plan = tmp_path / "plan.json"
    assert call("plan", str(path), "--as-of", AS_OF, "-q", "-o", str(plan)).code == 0
    written = json.loads(plan.read_text("utf-8"))
    assert faults(written, "plan") == []
    assert call("recipe", str(plan), "-o", "-").code == 0
    if written["jobs"][0]["options"]:
        named = f"{written['jobs'][0]['name']}/{written['jobs'][0]['options'][0]['id']}"
        assert call("quote", str(plan), "--option", named, "-f", "json").code == 0


_SURPRISE = {"surprise": [None]}
_Path = tuple[str | int, ...]


def _places(value: Any, path: _Path = ()) -> Iterator[_Path]:
    """The path of every place below a value."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from _places(value[key], (*path, key))


def _is_refused_with_a_surprise(plan: Any, path: _Path) -> bool:
    """Whether the schema refuses a plan with an object in that place."""
    holder = plan
    for key in path[:-1]:
        holder = holder[key]
    before, holder[path[-1]] = holder[path[-1]], _SURPRISE
    refused = faults(plan, "plan") != []
    holder[path[-1]] = before
    return refused


def test_a_hostile_change_of_a_plan_is_refused(call: Call) -> None:
    """An object in the place of any value, and a value that is missing: the schema says so."""
    asked = ("plan", str(EXAMPLES / "fleet"), "--as-of", AS_OF, "-f", "json")
    plan = call(*asked).json
    plan["jobs"] = plan["jobs"][:1]
    job = plan["jobs"][0]
    job["options"], job["rejected"] = job["options"][:1], job["rejected"][:1]
    assert faults(plan, "plan") == []
    paths = list(_places(plan))
    assert len(paths) > 1_000
    assert [path for path in paths if not _is_refused_with_a_surprise(plan, path)] == []
    assert faults(plan, "plan") == []
    for name in list(plan):
        if name not in {"teams", "use"}:  # a plan of an earlier version lacks them
            assert faults({key: value for key, value in plan.items() if key != name}, "plan") != []


def test_a_schema_is_printed(call: Call) -> None:
    """By name it is printed as it is published; without one, the table names each document."""
    kept = (ROOT / "docs/reference/schemas/plan.schema.json").read_text("utf-8")
    assert call("schema", "plan").json == json.loads(kept)
    listed = call("schema", "-f", "json").json
    assert [one["name"] for one in listed] == list(DOCUMENTS)
    wrong = call("schema", "plans")
    assert (wrong.code, wrong.out) == (2, "")
    assert "plan-change" in wrong.err


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "profile"])
def test_each_field_has_its_meaning(name: str) -> None:
    """No class and no field of a document is without words; each amount says its unit."""
    schema = DOCUMENTS[name].schema
    classes = {"": schema, **schema.get("$defs", {})}
    assert [key for key, one in classes.items() if not one.get("description") and key] == []
    fields = [
        (f"{key}.{field}", told.get("description", ""))
        for key, one in classes.items()
        for field, told in one.get("properties", {}).items()
        if field != "schema"
    ]
    assert [field for field, told in fields if not told or told.startswith("[")] == []
    amount = re.compile(r"(_usd|_s|_gib|_fraction)$")
    assert [field for field, told in fields if amount.search(field) and "[" not in told] == []
