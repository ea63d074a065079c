"""Where a program spends its time: what was seen at its lines becomes places, with their work.

A row of a `stacks` line is `[phase, place, owner, within, looks]`. The place is the innermost line
of the user's own code. `owner` is the module, or the function of C with the class that defines it,
that the line had called: `PIL.Image`, `torch._C.TensorBase.item`; empty where the line itself ran.
Where a module further in differs, it follows: `torch.nn.modules.module>torch._inductor.codecache`.
`within` is the nearest library that calls the user's function, or what the function itself makes
tensors with. What a place is for follows from these names of modules alone.

Lines `by: outside` come from py-spy, which needs no lock of the interpreter. The probe looks from
inside: it sees the types of objects, but Python code only where that lets go of the lock.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from planner.profile.model import Wait
from pricing.tables import Json

OUTSIDE, LOCK = "outside", "lock"  # who looked: py-spy; the sampler, for waits for the lock
WAITING_FOR_LOCK, NOT_WAITING = "=lock", "=free"
LATE = "late:"  # before the owner of a look that waited for the lock: Python ran before this line

_FILE = Path(__file__).with_name("work.toml")
WORK = {
    module: work
    for work, modules in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
    for module in modules
}
# Methods of tensors that need a result of the GPU: they wait for it.
_WAITS_FOR_DEVICE = frozenset(
    ("item", "cpu", "tolist", "numpy", "synchronize", "nonzero", "__bool__", "block_until_ready")
)
# What decides also where another module was called first.
_DECIDES = frozenset(("compile", "save", "communication", "import"))
_MAY_BE_INPUT = frozenset((None, "network", "sleep", "thread"))
_LOADER = "torch.utils.data."  # what it calls makes input, whatever that computes
_WITHIN = frozenset(("input", "model", "device", "save", "import"))


def work_of(owner: str, within: str) -> str:
    """Return what goes on at a place, as `kinds.WORK` names it.

    Args:
        owner: what the line called; empty where it ran itself.
        within: what called its function, or what that makes tensors with.
    """
    outer, _, inner = owner.partition(">")
    deep = _listed(inner)
    work = deep if deep in _DECIDES else _listed(outer) or deep
    if work == "model" and outer.rpartition(".")[2] in _WAITS_FOR_DEVICE:
        return "device"
    around = _listed(within)
    if around == "input" and (
        work in _MAY_BE_INPUT
        or (work == "model" and (within.startswith(_LOADER) or not outer.startswith("torch.nn")))
    ):
        return "input"
    if work is None and around in _WITHIN:
        return str(around)
    return work or "host"


def _listed(module: str) -> str | None:
    while module:
        work = WORK.get(module)
        if work is not None:
            return work
        module = module.rpartition(".")[0]
    return None


# Phases that count: the rest is start-up and what follows the last step.
ACTIVE = ("steady", "stall", "evaluation", "unstepped")
_FEWEST = 10  # looks; at ten a second these are one second
_LEAST = 0.01
_MOST = 16
_Z = 1.645  # of a 90 % interval
_LINE = re.compile(r"^(.*):(\d+)\)$")


def interval(share: float, looks: int) -> tuple[float, float]:
    """Return the 90 % interval of a share (Wilson, JASA 1927).

    Args:
        share: 0 to 1.
        looks: that it was counted in, at least 1.
    """
    z2 = _Z * _Z / looks
    middle = (share + z2 / 2.0) / (1.0 + z2)
    half = sqrt(share * (1.0 - share) * z2 + z2 * z2 / 4.0) / (1.0 + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


Row = tuple[str, str, str, str, int]


def most_frequent(counts: Mapping[tuple[str, ...], int], size: int) -> list[Json]:
    """Return rows of counts, the greatest first; the places of rows beyond `size` have no name.

    Args:
        counts: looks by phase, place, and what else tells rows apart.
        size: rows with a place.
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    folded: Counter[tuple[str, ...]] = Counter()
    for (phase, _, *names), n in ranked[size:]:
        folded[phase, "", *names] += n
    return [[*row, n] for row, n in (*ranked[:size], *sorted(folded.items()))]


def _rows(lines: Iterable[Mapping[str, Any]], by: str | None) -> list[Row]:
    """Return rows of lines; of older probes, which told the work, that is the owner."""
    rows: list[Row] = []
    for line in lines:
        if line.get("by") == by:
            for phase, location, *names, n in line.get("seen") or ():
                owner, within = names if len(names) > 1 else (f"={names[0]}", "")
                rows.append((phase, location, owner, within, n))
    return rows


def places(lines: Sequence[Mapping[str, Any]], *, stepped: bool) -> tuple[Wait, ...]:
    """Return the places of the lines `stacks` of a process, the most frequent first.

    The line of a place is the one in which it was seen most often; rare places have none. Lines
    of one function are one place. Empty below ten looks. What py-spy saw counts, where it
    saw enough; what a line of it called in C is then known from the looks inside at that line.

    Args:
        lines: of probe and py-spy.
        stepped: whether the process stepped; what was seen before its first step is start-up then.
    """
    inside, counted = _rows(lines, None), _rows(lines, OUTSIDE)
    if sum(n for phase, *_, n in counted if phase in ACTIVE) < _FEWEST:
        counted, inside = inside, []
    meanings = _meanings(inside)
    feeding = {_LINE.sub(r"\1", row[1]): row[3] for row in inside if _listed(row[3]) == "input"}
    counts: Counter[tuple[str, str, str]] = Counter()
    within: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for phase, location, owner, around, n in counted:
        function = _LINE.sub(r"\1", location)
        doing = _doing(location, owner, feeding.get(function, around), meanings)
        if phase not in ACTIVE or (phase == "unstepped" and (stepped or doing == "import")):
            continue
        number = location[len(function) + 1 : -1]
        counts[function, doing, phase] += n
        within[function, doing, phase][number] += n
    total = sum(counts.values())
    if total < _FEWEST:
        return ()
    frequent = []
    for key, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        function, doing, phase = key
        number = max(sorted(within[key].items()), key=lambda item: item[1])[0]
        line = f"{function}:{number})" if number else function or None
        frequent.append(_wait((n, total), doing, None if phase == "unstepped" else phase, line))
    frequent = [item for item in frequent[:_MOST] if (item.time_fraction or 0.0) >= _LEAST]
    return (*frequent, *_lock(_rows(lines, LOCK), stepped=stepped))


def _lock(rows: Iterable[Row], *, stepped: bool) -> Iterator[Wait]:
    """Yield the share of the time in which the main thread waits for the interpreter's lock.

    It stands beside the places: a line that waits is a place all the same.
    """
    looks = [(owner, n) for phase, _, owner, _, n in rows if phase in ACTIVE]
    total = sum(n for _, n in looks)
    waiting = sum(n for owner, n in looks if owner == WAITING_FOR_LOCK)
    if total >= _FEWEST and waiting >= _LEAST * total:
        yield _wait((waiting, total), "lock", "steady" if stepped else None)


def _wait(looks: tuple[int, int], doing: str, phase: str | None, line: str | None = None) -> Wait:
    """Return what so many of all looks saw, at a line where it is one."""
    share = looks[0] / looks[1]
    time_fraction, low, high = (round(x, 4) for x in (share, *interval(share, looks[1])))
    return Wait(
        place=line, doing=doing, phase=phase, time_fraction=time_fraction, low=low, high=high
    )


def _meanings(inside: Iterable[Row]) -> dict[str, tuple[str, str]]:
    """Return by line what it was mostly seen to call, and within what, from inside."""
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for _, location, owner, around, n in inside:
        counts[location][owner.removeprefix(LATE), around] += n
    return {location: calls.most_common(1)[0][0] for location, calls in counts.items()}


def _doing(location: str, owner: str, around: str, meanings: Mapping[str, tuple[str, str]]) -> str:
    if not owner:
        owner, around = meanings.get(location, (owner, around))
        if not owner and meanings and _listed(around) == "model":
            around = ""  # what a line of a model launches is seen from inside: this is plain Python
    if owner.startswith(LATE):
        owner, around = "", around if _listed(around) == "input" else ""
    return owner[1:] if owner.startswith("=") else work_of(owner, around)
