"""The events that the probe wrote inside the job's processes, brought together as one job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pandas as pd

from planner.profile.model import PARALLELISMS
from planner.telemetry.observed import STEP_COLUMNS, Pause

Event = Mapping[str, Any]

# (autocast, dtype of the parameters) in the contract's words; autocast decides where it is on.
_AUTOCAST = {"float16": "amp-fp16", "bfloat16": "amp-bf16"}
# Pieces of one pause follow each other at once; two pauses have at least a step between them.
_SAME_PAUSE_S = 0.05
_DTYPES = {"float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the events of all processes say together.

    Attributes:
        frame: rows of the pacing process (as `Observed.steps`), None where nothing stepped.
        count: steps of the whole run.
        items: items of all processes over those of the pacing one.
        pauses: of the pacing process.
        facts: fields of `Observed` that the events tell.
        notes: what a reader should know.
    """

    frame: pd.DataFrame | None = None
    count: int = 0
    items: float = 1.0
    pauses: tuple[Pause, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Process:
    """The events of one process, by kind, in their order."""

    by_kind: dict[str, list[Event]]

    @property
    def steps(self) -> list[Event]:
        return self.by_kind["step"]

    @property
    def count(self) -> int:
        return sum(int(line["n"]) for line in self.steps)

    @property
    def rank(self) -> Event | None:
        return next(iter(self.by_kind["rank"]), None)

    @property
    def span(self) -> tuple[float, float]:
        first = self.steps[0]
        return first["t_s"] - (first.get("step_s") or 0.0), self.steps[-1]["t_s"]

    def last(self, kind: str) -> Event:
        return self.by_kind[kind][-1] if self.by_kind[kind] else {}


def together(events: Sequence[Event]) -> Steps:
    """Return what the events of a job's processes say together.

    Ranks of one distributed run count once: its steps are those of its leading rank, its items the
    sum over ranks. Processes that step independently add up; where they overlap in time, step times
    are those of the one with the most steps.
    """
    processes = _processes(events)
    notes = tuple(dict.fromkeys(str(e["what"]) for e in events if e.get("event") == "odd"))
    stepping = [one for one in processes if one.steps]
    if not stepping:
        return Steps(facts=_facts(processes), notes=notes)
    leaders = [_leading(run) for run in _runs(stepping)]
    pacing = _pacing(leaders)
    if len(pacing) < sum(len(chain) for chain in leaders):
        apart = (
            f"{len(leaders)} processes step independently of each other; step times are those of "
            "the one with the most steps, the count and the work are of all."
        )
        notes = (*notes, apart)
    own = sum(_items(one) for one in pacing)
    every = sum(_items(one) for one in stepping)
    return Steps(
        frame=_frame(pacing),
        count=sum(_count(chain) for chain in leaders),
        items=every / own if own else 1.0,
        pauses=_pauses(pacing),
        facts={"kind": "training", **_facts(pacing)},
        notes=notes,
    )


def _processes(events: Sequence[Event]) -> list[_Process]:
    found: dict[object, _Process] = {}
    for event in events:
        key = event.get("process", event.get("pid"))
        process = found.setdefault(key, _Process(by_kind=defaultdict(list)))
        process.by_kind[str(event.get("event"))].append(event)
    return list(found.values())


def _runs(stepping: Sequence[_Process]) -> list[list[_Process]]:
    """Processes of one distributed run together: same size of the world, same parent."""
    runs: dict[object, list[_Process]] = defaultdict(list)
    for i, one in enumerate(stepping):
        rank = one.rank
        parent = one.last("hello").get("ppid")
        runs[i if rank is None else (rank.get("world"), parent)].append(one)
    return list(runs.values())


def _leading(run: Sequence[_Process]) -> list[_Process]:
    """The processes of the rank with the most steps; a restarted rank is several in a row."""
    ranks: dict[object, list[_Process]] = defaultdict(list)
    for one in run:
        ranks[(one.rank or {}).get("rank")].append(one)
    return max(ranks.values(), key=_count)


def _count(chain: Sequence[_Process]) -> int:
    return sum(one.count for one in chain)


def _pacing(leaders: Sequence[list[_Process]]) -> list[_Process]:
    """All of them where they ran one after the other, else the run with the most steps."""
    every = sorted((one for chain in leaders for one in chain), key=lambda one: one.span)
    apart = all(one.span[1] <= following.span[0] for one, following in pairwise(every))
    return every if apart else max(leaders, key=_count)


def _items(process: _Process) -> float:
    return float(sum(line.get("items") or 0 for line in process.steps))


def _frame(pacing: Sequence[_Process]) -> pd.DataFrame:
    rows = [{name: line.get(name) for name in STEP_COLUMNS} for one in pacing for line in one.steps]
    frame = pd.DataFrame(rows, columns=list(STEP_COLUMNS)).astype(float)
    return frame.sort_values("t_s", kind="stable", ignore_index=True)


def _pauses(pacing: Sequence[_Process]) -> tuple[Pause, ...]:
    spans = [span for one in pacing for span in one.by_kind["span"]]
    joined: list[Pause] = []
    for span in sorted(spans, key=lambda span: float(span["t_s"])):
        pause = Pause(kind=str(span["kind"]), start_s=float(span["t_s"]), length_s=float(span["s"]))
        before = joined[-1] if joined else None
        if before is not None and _goes_on(before, pause):
            joined[-1] = replace(before, length_s=before.length_s + pause.length_s)
        else:
            joined.append(pause)
    return tuple(joined)


def _goes_on(before: Pause, pause: Pause) -> bool:
    """Whether two spans are pieces of one pause: a long evaluation, the files of one checkpoint."""
    gap_s = pause.start_s - before.start_s - before.length_s
    return before.kind == pause.kind and gap_s < _SAME_PAUSE_S


def _facts(processes: Sequence[_Process]) -> dict[str, Any]:
    """What the last word of the processes on each subject is; what nobody said is left out."""
    last: dict[str, Event] = {}
    for one in processes:
        for kind in ("hello", "model", "precision"):
            last[kind] = one.last(kind) or last.get(kind, {})
    batch = next((b for one in processes if (b := _batch(one)) is not None), None)
    parallelism = last.get("model", {}).get("parallelism")
    found = {
        "framework": last.get("hello", {}).get("framework"),
        "precision": _precision(last.get("precision", {})),
        "batch_per_gpu": batch,
        "parallelism": parallelism if parallelism in PARALLELISMS else None,
        "parameters": last.get("model", {}).get("parameters"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _precision(event: Event) -> str | None:
    if not event:
        return None
    dtype = str(event.get("dtype"))
    cast = _AUTOCAST.get(str(event.get("autocast")))
    single = "tf32" if event.get("tf32") else "fp32"
    return cast or _DTYPES.get(dtype) or (single if dtype == "float32" else None)


def _batch(process: _Process) -> int | None:
    """The batch size of the loader that fed the last step."""
    fed = process.last("step").get("loader")
    sizes = {loader.get("loader"): loader.get("batch_size") for loader in process.by_kind["loader"]}
    size = sizes.get(fed)
    return int(size) if size else None
