"""What trials came to, kept in a file, so that a long run can be made in pieces."""

import json
from dataclasses import asdict
from pathlib import Path

from tests.chaos.truth import Count
from tests.chaos.workers import Task


def keep(path: Path, task: Task, count: Count, took_s: float) -> None:
    """Add what a task came to, as a line of JSON."""
    line = {"task": task, "took_s": round(took_s, 1), "count": asdict(count)}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def kept(path: Path) -> dict[Task, tuple[Count, float]]:
    """What earlier runs kept, by task, with the seconds that each took; the last line counts."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {
        (one["task"][0], one["task"][1]): (Count(**one["count"]), one["took_s"]) for one in lines
    }
