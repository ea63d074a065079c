"""Files that earlier versions wrote, byte for byte: `<commit>-<example>.json.gz`.

Each is `gpucost plan EXAMPLE --as-of 2026-11-22 -o FILE` of that commit: 22d261e is the first one
whose plans carry the present schema, 73c69e2 the last before plans were read as values.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from planner.plan.plan import Plan
from planner.plan.read import read_plan

PLANS = sorted((Path(__file__).resolve().parents[2] / "fixtures/plans").glob("*.json.gz"))
LAST = "73c69e2"


def text_of(path: Path) -> str:
    """The text of a kept plan."""
    return gzip.decompress(path.read_bytes()).decode()


def kept(name: str) -> dict[str, Any]:
    """The document of a kept plan, to be changed by a test."""
    path = next(path for path in PLANS if path.name == f"{name}.json.gz")
    document: dict[str, Any] = json.loads(text_of(path))
    return document


def as_values(document: object) -> Plan:
    """The values of a document, as if it had been read from plan.json."""
    return read_plan(json.dumps(document), "plan.json")
