"""Which fields of plan.json a change of the code changes: two commits, the same jobs, every byte.

Every bundled example is planned alone, the two bundled fleets together, and a fleet of 200 jobs
made from the examples, always the same one; each at its defaults, and all of it again for time
with spot capacity, energy and carbon asked for. Both commits read the same profiles, written from
this checkout, and the prices that they ship. Printed is every path that was added, removed or
changed, with how often and the first case. Fields that were only added do not count: with
them left out the bytes must be equal, the order of the keys included. Exits 1 otherwise.

Usage: python benchmarks/same_bytes.py BASE [OTHER]
       OTHER is a commit, too; left out, it is the working tree.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
DAY = "2026-11-22"
JOBS = 200
ASKED = {
    "default": (),
    "time": (
        "--objective",
        "time",
        "--purchase",
        "on_demand",
        "--purchase",
        "spot",
        "--grid-g-per-kwh",
        "400",
        "--pue",
        "1.3",
        "--host-power-share",
        "0.3",
    ),
}
# The package as it lies in a folder, whatever is installed beside it.
DRIVER = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
import gpucost, gpucost.cli
print(gpucost.__file__)
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()):
        code = gpucost.cli.run(words)
    print(code)
"""
SHOWN = 60


@dataclass(frozen=True, slots=True)
class Case:
    """One plan: what it is called, what is planned, what is asked for."""

    name: str
    source: Path
    asked: tuple[str, ...]


@dataclass(kw_only=True)
class Differences:
    """What differs between documents, path by path.

    Attributes:
        counts: how often, by kind and path; indices and job names are left out of paths.
        firsts: where each was seen first, with both values.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    firsts: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, kind: str, path: str, where: str) -> None:
        """Count one difference."""
        self.counts[kind, path] += 1
        self.firsts.setdefault((kind, path), where)


def profiles(folder: Path) -> dict[str, Path]:
    """Write what is planned into a folder; return the source of each case."""
    alone = [*sorted(EXAMPLES.glob("*.json")), *sorted((EXAMPLES / "hard").glob("*.json"))]
    fleets = (EXAMPLES / "fleet", EXAMPLES / "hard" / "pods-one-machine")
    found: dict[str, Path] = {}
    for path in alone:
        found[path.stem] = _write(folder / path.name, json.loads(path.read_text(encoding="utf-8")))
    for group in fleets:
        (folder / group.name).mkdir()
        for path in sorted(group.glob("*.json")):
            _write(folder / group.name / path.name, json.loads(path.read_text(encoding="utf-8")))
        found[group.name] = folder / group.name
    known = [*alone, *(path for group in fleets for path in sorted(group.glob("*.json")))]
    (folder / "fleet-of-200").mkdir()
    for number, profile in enumerate(fleet([json.loads(p.read_bytes()) for p in known])):
        _write(folder / "fleet-of-200" / f"{number:03}.json", profile)
    found["fleet-of-200"] = folder / "fleet-of-200"
    return found


def fleet(models: Sequence[Mapping[str, Any]], jobs: int = JOBS) -> Iterator[dict[str, Any]]:
    """Yield so many profiles: the models in turns, each time with other hours, load and memory."""
    for number in range(jobs):
        profile = json.loads(json.dumps(models[number % len(models)]))
        turn = number // len(models)
        profile["job"]["name"] = f"{profile['job'].get('name', 'job')}-{number:03}"
        if machine := profile.get("hardware", {}).get("machine"):
            profile["hardware"]["machine"] = f"{machine}-{turn}"
        profile["usage"] = {
            **(profile.get("usage") or {}),
            "hours_per_month": 40 + number * 37 % 680 + number % 97 / 100,
        }
        (profile.get("work") or {}).pop("total", None)  # one period for all: a month
        part = 1.0 - number * 7_919 % 60_013 / 100_000.0  # of no two jobs the same
        for gpu in profile.get("gpus") or ():
            for slot, statistics in gpu["metrics"].items():
                if slot.startswith(("util.", "mem.")):
                    gpu["metrics"][slot] = {k: round(v * part, 6) for k, v in statistics.items()}
        yield profile


def _write(path: Path, profile: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(profile, indent=1), encoding="utf-8")
    return path


def checkout(commit: str, folder: Path) -> Path:
    """Return a folder with the files of a commit."""
    git = ("git", "-C", str(ROOT), "archive", commit)
    packed = subprocess.run(git, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def plans(tree: Path, cases: Sequence[Case], folder: Path) -> list[Any]:
    """Return the plan that the code in a folder makes of each case, with its exit code.

    All of them in one process, without this user's prices and settings. Exits where one makes none.
    """
    folder.mkdir()
    (folder / "settings.toml").touch()
    environ = {
        **os.environ,
        "GPUCOST_CACHE_DIR": str(folder),
        "GPUCOST_CONFIG": str(folder / "settings.toml"),
        "GPUCOST_STATE_DIR": str(folder),
    }
    targets = [folder / f"{number}.json" for number in range(len(cases))]
    words = [
        ["plan", str(case.source), "--as-of", DAY, *case.asked, "-q", "-o", str(target)]
        for case, target in zip(cases, targets, strict=True)
    ]
    done = subprocess.run(
        (sys.executable, "-c", DRIVER, str(tree)),
        cwd=folder,
        env=environ,
        input=json.dumps(words),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    home, *codes = done.stdout.splitlines()
    if not Path(home).is_relative_to(tree) or not all(target.is_file() for target in targets):
        raise SystemExit(f"{tree}: a case has no plan, or {home} was run: {codes}")
    made = zip(codes, targets, strict=True)
    return [{"exit": code, **json.loads(target.read_bytes())} for code, target in made]


def without_added(new: Any, old: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a document without the keys that the old one does not have."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {k: without_added(v, old[k]) for k, v in new.items() if k in old}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [without_added(a, b) for a, b in zip(new, old, strict=True)]
    return new


def compare(new: Any, old: Any, path: str, where: str, found: Differences) -> None:  # noqa: ANN401 - JSON
    """Note every path that differs."""
    if isinstance(new, dict) and isinstance(old, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            named = "*" if path.endswith("relative_speed") else key  # a job's name
            inner = f"{path}.{named}" if path else named
            if key not in new:
                found.note("removed", inner, where)
            elif key not in old:
                found.note("added", inner, f"{where}: {_short(new[key])}")
            else:
                compare(new[key], old[key], inner, where, found)
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for number, (a, b) in enumerate(zip(new, old, strict=True)):
            compare(a, b, f"{path}[]", f"{where}[{number}]", found)
    elif new != old:
        found.note("changed", path, f"{where}: {_short(old)} -> {_short(new)}")


def _short(value: Any) -> str:  # noqa: ANN401 - JSON
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def main(arguments: Sequence[str]) -> int:
    """Plan everything twice and print what differs."""
    if len(arguments) not in {1, 2}:
        print(__doc__)
        return 2
    found, same = Differences(), 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        base = checkout(arguments[0], place / "base")
        other = checkout(arguments[1], place / "other") if arguments[1:] else ROOT
        (place / "jobs").mkdir()
        cases = [
            Case(f"{name} ({kind})", source, asked)
            for name, source in profiles(place / "jobs").items()
            for kind, asked in ASKED.items()
        ]
        before = plans(base, cases, place / "before")
        after = plans(other, cases, place / "after")
    for case, old, new in zip(cases, before, after, strict=True):
        compare(new, old, "", case.name, found)
        same += json.dumps(without_added(new, old)) == json.dumps(old)
    for (kind, path), count in sorted(found.counts.items()):
        print(f"{kind:8} {path}  ({count}x, {found.firsts[kind, path]})")
    print(f"{len(cases)} plans, {same} of them the same bytes but for added fields")
    return 0 if same == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
