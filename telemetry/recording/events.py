"""The events that the probe wrote inside the job's processes, brought together as one job.

What became of the actions of a recipe, and settings that were tried in turns, are among them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec
import pandas as pd

from planner.profile.kinds import LEFT, OUTCOMES, PARALLELISMS
from planner.profile.model import Rank, Wait
from planner.profile.trials import Change, TracedSteps, TraceRow, TurnsSeen
from pricing.message import Message
from telemetry.recording import observed
from telemetry.recording.places import places

Event = Mapping[str, Any]

# (autocast, dtype of the parameters) in the contract's words; autocast decides where it is on.
_AUTOCAST = {"float16": "amp-fp16", "bfloat16": "amp-bf16"}
# Pieces of one pause follow each other at once; two pauses have at least a step between them.
_SAME_PAUSE_S = 0.05
# Rounds that stand for steps where no optimizer stepped, the better first: what counts, what it is.
_ROUNDS = {"backward": "training", "batch": "inference_offline"}
_ENDED_BY_USER = frozenset((0, -2, -15, 130, 143))  # SIGINT, SIGTERM, and as a shell says them
_OUT_OF_MEMORY = {"gpu": "gpu-out-of-memory", "host": "host-out-of-memory"}
_DTYPES = {"float16": "fp16", "bfloat16": "bf16"}


@dataclass(slots=True)
class _Process:
    """The events of one process, by kind, in their order."""

    by_kind: dict[str, list[Event]]
    counted_by: str = "optimizer"

    @property
    def steps(self) -> list[Event]:
        if self.counted_by == "optimizer":
            return self.by_kind["step"]
        return [line for line in self.by_kind["iteration"] if line.get("by") == self.counted_by]

    @property
    def step_times(self) -> observed.StepTimes:
        """Lengths of its steps; the first carries start-up and is left out."""
        return observed.add_up(observed.of_line(line) for line in self.steps[1:])

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


def together(events: Sequence[Event]) -> observed.Observed:
    """Return what the events of a job's processes say together.

    Ranks of one distributed run count once: its steps are those of its leading rank, its items the
    sum over ranks. Processes that step independently add up; where they overlap in time, step times
    are those of the one with the most steps.
    """
    processes = _processes(events)
    notes = tuple(dict.fromkeys(str(e["what"]) for e in events if e.get("event") == "odd"))
    ended: dict[str, Any] = {
        **_ended(processes),
        "changes": changes(process.by_kind for process in processes),
        "turns": turns(process.by_kind for process in processes),
        "trace": _traced(processes),
    }
    counted_by, kind, stepping = _stepping(processes)
    if not stepping:
        return observed.Observed(
            **_facts(processes),
            **ended,
            places=_busiest_places(processes),
            notes=(*notes, *_unseen(processes)),
        )
    runs = _runs(stepping)
    leaders = [_leading(run) for run in runs]
    pacing = _pacing(leaders)
    if len(pacing) < sum(len(chain) for chain in leaders):
        notes = (*notes, Message("read.steps-apart", n=len(leaders)))
    own = sum(_items(process) for process in pacing)
    items = sum(_items(process) for process in stepping)
    return observed.Observed(
        **_facts(pacing),
        **ended,
        kind=None if kind == "unknown" else kind,
        counted_by=counted_by,
        steps=_frame(pacing),
        step_count=sum(_count(chain) for chain in leaders),
        step_times=observed.add_up(process.step_times for process in pacing),
        items=items / own if own else 1.0,
        pauses=_pauses(pacing) if counted_by != "batch" else (),
        places=_places(pacing),
        ranks=_ranks(max(runs, key=_count)),
        notes=(*notes, *_said_of_steps(counted_by, pacing)),
    )


def _stepping(processes: Sequence[_Process]) -> tuple[str, str, list[_Process]]:
    """Return what counts as a step, the kind of job that shows, and the processes that step."""
    stepping = [process for process in processes if process.steps]
    if any(process.by_kind["by-hand"] for process in stepping):
        return "program", "unknown", stepping
    if stepping:
        return "optimizer", "training", stepping
    for by, kind in _ROUNDS.items():
        rounds = [replace(process, counted_by=by) for process in processes]
        stepping = [process for process in rounds if process.steps]
        if stepping:
            return by, kind, stepping
    return "optimizer", "unknown", []


def _ended(processes: Sequence[_Process]) -> dict[str, str]:
    """Return how the job ended: of memory, where a process said so or fell silent in a kill.

    `{"event": "out-of-memory", "where": "host"}` is what the sampler writes where the kernel killed
    something of the job's control group. That the job ended of it is said only where one of its
    programs did not come to its own end.
    """
    byes = [process.last("bye") for process in processes if process.by_kind["hello"]]
    stated = [str(bye["out_of_memory"]) for bye in byes if bye.get("out_of_memory")]
    cut_off = any(not bye or bye.get("error") for bye in byes)
    if cut_off:
        stated += [
            str(e.get("where")) for process in processes for e in process.by_kind["out-of-memory"]
        ]
    reasons = [_OUT_OF_MEMORY[where] for where in stated if where in _OUT_OF_MEMORY]
    if reasons:
        return {"ended": reasons[0]}
    codes = [int(e["code"]) for process in processes for e in process.by_kind["exit"]]
    failed = any(code not in _ENDED_BY_USER for code in codes)
    errors = {bye.get("error") for bye in byes} - {None, "KeyboardInterrupt", "SystemExit"}
    return {"ended": "failed"} if failed or errors else {}


def _places(chain: Sequence[_Process]) -> tuple[Wait, ...]:
    """Return where processes that ran one after the other spent their time."""
    lines = [line for process in chain for line in process.by_kind["stacks"]]
    return places(lines, stepped=any(process.by_kind["step"] for process in chain))


def _busiest_places(processes: Sequence[_Process]) -> tuple[Wait, ...]:
    """Return the places of the process that was watched longest: of a job that does not step."""
    looks = [
        sum(row[-1] for line in process.by_kind["stacks"] for row in line["seen"])
        for process in processes
    ]
    return _places([processes[looks.index(max(looks))]]) if processes else ()


def _ranks(run: Sequence[_Process]) -> tuple[Rank, ...]:
    """Return each rank of a run on its own; a restarted rank is what its lives were together."""
    if any(process.rank is None for process in run):
        return ()
    lives: dict[int, list[_Process]] = defaultdict(list)
    for process in run:
        lives[int((process.rank or {})["rank"])].append(process)
    return tuple(_rank(rank, lives[rank]) for rank in sorted(lives))


def _rank(rank: int, lives: Sequence[_Process]) -> Rank:
    lines = [line for process in lives for line in process.steps[1:]]
    timed = [line for line in lines if line.get("step_s") is not None]
    waited = [line for line in timed if line.get("data_wait_s") is not None]
    means = _mean(timed, "step_s"), _mean(waited, "data_wait_s")
    return observed.rank_of(rank, _count(lives), *means, _places(lives))


def _mean(lines: Sequence[Event], name: str) -> float | None:
    n = sum(int(line["n"]) for line in lines)
    return sum(float(line[name]) for line in lines) / n if n else None


def _said_of_steps(counted_by: str, pacing: Sequence[_Process]) -> tuple[str, ...]:
    """Return what a reader must know of what counts as a step."""
    count = sum(process.count for process in pacing)
    notes = []
    if counted_by == "backward":
        notes.append("no optimizer of PyTorch stepped: a backward pass counts as a step.")
    if counted_by == "batch":
        notes.append("nothing was trained: a batch that a DataLoader gave counts as a step.")
    if count == 1:
        notes.append(Message("read.one-step"))
    return tuple(notes)


def _unseen(processes: Sequence[_Process]) -> tuple[str, ...]:
    """Return what is said of frameworks whose steps the probe does not see."""
    stated = {process.last("hello").get("framework") for process in processes}
    names = stated - {None, "pytorch", "keras"}
    return tuple(Message("read.steps-unseen", framework=n) for n in sorted(map(str, names)))


def _processes(events: Sequence[Event]) -> list[_Process]:
    by_pid: dict[object, _Process] = {}
    for event in events:
        key = event.get("process", event.get("pid"))
        process = by_pid.setdefault(key, _Process(by_kind=defaultdict(list)))
        process.by_kind[str(event.get("event"))].append(event)
    return list(by_pid.values())


def _runs(stepping: Sequence[_Process]) -> list[list[_Process]]:
    """Group the processes of a distributed run: same size of the world, same parent."""
    runs: dict[object, list[_Process]] = defaultdict(list)
    for i, process in enumerate(stepping):
        rank = process.rank
        parent = process.last("hello").get("ppid")
        runs[i if rank is None else (rank.get("world"), parent)].append(process)
    return list(runs.values())


def _leading(run: Sequence[_Process]) -> list[_Process]:
    """Return the processes of the rank with the most steps.

    A restarted rank is several in a row.
    """
    ranks: dict[object, list[_Process]] = defaultdict(list)
    for process in run:
        ranks[(process.rank or {}).get("rank")].append(process)
    return max(ranks.values(), key=_count)


def _count(chain: Sequence[_Process]) -> int:
    return sum(process.count for process in chain)


def _pacing(leaders: Sequence[list[_Process]]) -> list[_Process]:
    """Return all of them where they ran one after the other, else the run with the most steps."""
    ranks = sorted(
        (process for chain in leaders for process in chain), key=lambda process: process.span
    )
    disjoint = all(process.span[1] <= following.span[0] for process, following in pairwise(ranks))
    return ranks if disjoint else max(leaders, key=_count)


def _items(process: _Process) -> float:
    return float(sum(line.get("items") or 0 for line in process.steps))


def _frame(pacing: Sequence[_Process]) -> pd.DataFrame:
    rows = [
        {name: line.get(name) for name in observed.STEP_COLUMNS}
        for process in pacing
        for line in process.steps
    ]
    frame = pd.DataFrame(rows, columns=list(observed.STEP_COLUMNS)).astype(float)
    return frame.sort_values("t_s", kind="stable", ignore_index=True)


def _pauses(pacing: Sequence[_Process]) -> tuple[observed.Pause, ...]:
    spans = [span for process in pacing for span in process.by_kind["span"]]
    joined: list[observed.Pause] = []
    for span in sorted(spans, key=lambda span: float(span["t_s"])):
        pause = observed.Pause(
            kind=str(span["kind"]),
            start_s=float(span["t_s"]),
            length_s=float(span["s"]),
            wait_s=span.get("wait_s"),
            count=int(span.get("n") or 1),
            over_s=span.get("over_s"),
        )
        before = joined[-1] if joined else None
        if before is not None and _goes_on(before, pause):
            joined[-1] = _joined(before, pause)
        else:
            joined.append(pause)
    return tuple(joined)


def _goes_on(before: observed.Pause, pause: observed.Pause) -> bool:
    """Return whether two spans are pieces of one pause, such as files of one checkpoint."""
    single = before.count == 1 and pause.count == 1
    gap_s = pause.start_s - before.end_s
    return single and before.kind == pause.kind and gap_s < _SAME_PAUSE_S


def _joined(before: observed.Pause, pause: observed.Pause) -> observed.Pause:
    has_waits = before.wait_s is not None and pause.wait_s is not None
    wait_s = (before.wait_s or 0.0) + (pause.wait_s or 0.0) if has_waits else None
    return replace(before, length_s=before.length_s + pause.length_s, wait_s=wait_s)


def _facts(processes: Sequence[_Process]) -> dict[str, Any]:
    """Return what the last word of the processes on each subject is.

    What nobody said is left out.
    """
    last: dict[str, Event] = {}
    for process in processes:
        for kind in ("hello", "model", "precision"):
            last[kind] = process.last(kind) or last.get(kind, {})
    batches = (_of_loader(process, "batch_size") for process in processes)
    reading = next(
        (r for process in processes if (r := _reading(process)) is not None), (None, None)
    )
    parallelism = last.get("model", {}).get("parallelism")
    facts = {
        "framework": last.get("hello", {}).get("framework"),
        "precision": _precision(last.get("precision", {})),
        "batch_per_gpu": next((batch for batch in batches if batch), None),
        "loader_workers": reading[0],
        "reading_cores": reading[1],
        "parallelism": parallelism if parallelism in PARALLELISMS else None,
        "parameters": last.get("model", {}).get("parameters") or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _precision(event: Event) -> str | None:
    if not event:
        return None
    dtype = str(event.get("dtype"))
    cast = _AUTOCAST.get(str(event.get("autocast")))
    single = "tf32" if event.get("tf32") else "fp32"
    return cast or _DTYPES.get(dtype) or (single if dtype == "float32" else None)


def _reading(process: _Process) -> tuple[int, float | None] | None:
    """Return workers of the loader that fed the last step, and how busy waits for it keep a core.

    The second is None where it was not looked at.
    """
    workers = _of_loader(process, "num_workers")
    if workers is None:
        return None
    fed = process.last("step").get("loader")
    readings = [event for event in process.by_kind["reading"] if event.get("loader") == fed]
    waited_s = float(readings[-1]["waited_s"]) if readings else 0.0
    return workers, min(1.0, readings[-1]["wanted_s"] / waited_s) if waited_s else None


def _of_loader(process: _Process, setting: str) -> int | None:
    """Return a setting of the loader that fed the last step."""
    fed = process.last("step").get("loader")
    values = {loader.get("loader"): loader.get(setting) for loader in process.by_kind["loader"]}
    value = values.get(fed)
    return None if value is None else int(value)


_UNSEEN = "the program was never seen to use what it concerns"


def changes(processes: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]]) -> tuple[Change, ...]:
    """Return the last word on each action and place, in the order in which they first came up.

    Where several processes say something of the same place, as ranks do, the first of them is
    heard. An action that was asked for and of which nobody says anything was left.

    Args:
        processes: the events of each, by kind.
    """
    changed: dict[tuple[str, str], Change] = {}
    requested: list[str] = []
    for by_kind in processes:
        own: dict[tuple[str, str], Change] = {}
        for event in by_kind.get("change", ()):
            change = _change(event)
            if change.outcome in OUTCOMES:
                own[str(change.action), change.where or ""] = change
        for key, change in own.items():
            changed.setdefault(key, change)
        for event in by_kind.get("asked", ()):
            requested += map(str, event.get("actions") or ())
    applied = {action for action, _ in changed}
    unanswered = [code for code in dict.fromkeys(requested) if code not in applied]
    return (*changed.values(), *(Change(action=c, outcome=LEFT, what=_UNSEEN) for c in unanswered))


def _change(event: Mapping[str, object]) -> Change:
    """Return what a line of the job's process says of an action; its fields may be of any type."""
    return Change(
        action=str(event.get("action")),
        outcome=str(event.get("outcome")),
        what=str(event.get("what")),
        where=str(event["where"]) if event.get("where") else None,
    )


def _traced(processes: Iterable[_Process]) -> TracedSteps | None:
    """Return the steps that the first process traced that traced any."""
    trace = next((process.last("trace") for process in processes if process.by_kind["trace"]), None)
    if trace is None:
        return None
    return TracedSteps(
        steps=int(trace["steps"]),
        seconds=float(trace["s"]),
        device=str(trace["device"]),
        idle_s=float(trace["idle_s"]),
        rows=tuple(
            TraceRow(kind=str(kind), name=str(name), count=int(n), seconds=float(s))
            for kind, name, n, s in trace["rows"]
        ),
    )


def turns(processes: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]]) -> TurnsSeen | None:
    """Return the experiment of the process that made the most blocks; None where there is none.

    Ranks of a job switch at the same steps, so each of them tells the same.

    Args:
        processes: the events of each, by kind.
    """
    tried = [process for process in processes if process.get("turns")]
    if not tried:
        return None
    best = max(tried, key=lambda process: len(process.get("block", ())))
    over = best.get("turns-over") or ({},)
    ordered = sorted(best.get("block", ()), key=lambda block: int(block["block"]))
    blocks = [(block["on"], block["n"], block["s"]) for block in ordered]
    event = {**best["turns"][0], **over[0], "blocks": blocks}
    return msgspec.convert(event, TurnsSeen, strict=False)
