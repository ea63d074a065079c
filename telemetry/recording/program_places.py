"""Where the probe saw a program spend its time, as shares of the time of its steps."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Phases that count: the rest is start-up and what follows the last step.
ACTIVE = ("steady", "stall", "evaluation", "unstepped")
_FEWEST = 10  # samples; at five a second these are two seconds
_LEAST = 0.01
_MOST = 16
_LINE = re.compile(r"^(.*):(\d+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A place in which the stepping thread was seen.

    Attributes:
        place: `function (file.py:line)`, the line in which it was seen most often; empty for the
            sum of rare places.
        doing: what it did there, as `kinds.WORK` names it.
        phase: what went on, as `kinds.PHASES` names it; None where nothing stepped.
        time_fraction: share of the time of the steps, evaluation and stalls included.
    """

    place: str
    doing: str
    phase: str | None
    time_fraction: float


def places(lines: Iterable[Mapping[str, Any]], *, stepped: bool) -> tuple[Seen, ...]:
    """Return the places of the lines `stacks` of a process, the most frequent first.

    Lines of one function are one place. Empty below two seconds of samples.

    Args:
        lines: of the probe.
        stepped: whether the process stepped; what was seen before its first step is start-up then.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    within: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for line in lines:
        for phase, place, doing, n in line.get("seen") or ():
            if phase not in ACTIVE or (phase == "unstepped" and (stepped or doing == "import")):
                continue
            match = _LINE.match(place)
            function, number = (match[1], match[2]) if match else (place, "")
            counts[function, doing, phase] += n
            within[function, doing, phase][number] += n
    total = sum(counts.values())
    if total < _FEWEST:
        return ()
    found = []
    for key, n in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        function, doing, phase = key
        number = max(sorted(within[key].items()), key=lambda each: each[1])[0]
        named = f"{function}:{number})" if number else function
        kept = None if phase == "unstepped" else phase
        found.append(Seen(place=named, doing=doing, phase=kept, time_fraction=round(n / total, 4)))
    return tuple(one for one in found[:_MOST] if one.time_fraction >= _LEAST)
