"""Groups of jobs for one GPU each, and the linear program that chooses among them.

Jobs that are alike are one row of it, which is to be covered as often as there are such jobs.

HiGHS solves it, through scipy, which is imported only where there is something to search.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import floor
from typing import Any

import numpy as np

from planner.fleet.search.sizes import Bins, Numbers

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """What the linear program says.

    Attributes:
        prices: of each class: what one more job of it would add to the total (its dual).
        parts: how often each group is used.
        steps: of the simplex method until it was found.
    """

    prices: Numbers
    parts: Numbers
    steps: int


@dataclass(kw_only=True)
class Columns:
    """The groups known so far.

    Attributes:
        members: rows of the jobs of each class.
        groups: classes of jobs that fit on one GPU, sorted, and what that costs.
    """

    members: tuple[Group, ...]
    groups: dict[Group, float] = field(default_factory=dict)

    def add(self, group: list[int], cost: float) -> bool:
        """Add a group; return whether it is new."""
        before = len(self.groups)
        self.groups.setdefault(tuple(sorted(group)), cost)
        return len(self.groups) > before

    @property
    def entries(self) -> int:
        """How large the linear program is."""
        return sum(len(group) for group in self.groups)

    def relaxed(self, most_steps: int) -> Relaxed | None:
        """Return the cheapest solution with parts of groups; None where so many steps find none."""
        from scipy.optimize import linprog  # noqa: PLC0415 - a second to import

        solved = linprog(
            np.array(list(self.groups.values())),
            A_ub=-self._matrix(),
            b_ub=-np.array([len(rows) for rows in self.members], dtype=float),
            bounds=(0, None),
            method="highs",
            options={"maxiter": most_steps},
        )
        if solved.status != 0:
            return None
        return Relaxed(
            prices=np.maximum(0.0, -solved.ineqlin.marginals), parts=solved.x, steps=int(solved.nit)
        )

    def whole(self, relaxed: Relaxed, least: float) -> Bins:
        """Return the jobs of groups that are used whole, or at least such a part of once more."""
        groups, left = list(self.groups), [list(reversed(rows)) for rows in self.members]
        kept: Bins = []
        for at in np.argsort(-relaxed.parts, kind="stable"):
            part = float(relaxed.parts[at])
            if part < least:
                break
            needs = Counter(groups[at])
            for _ in range(floor(part) + (part - floor(part) >= least)):
                if all(len(left[one]) >= often for one, often in needs.items()):
                    kept.append([left[one].pop() for one in groups[at]])
        return kept

    def _matrix(self) -> Any:  # noqa: ANN401 - scipy has no types
        from scipy.sparse import csc_matrix  # noqa: PLC0415

        ends = np.cumsum([0, *(len(group) for group in self.groups)])
        rows = np.concatenate([np.array(group) for group in self.groups])
        shape = (len(self.members), len(self.groups))
        found = csc_matrix((np.ones(len(rows)), rows, ends), shape=shape)
        found.sum_duplicates()
        return found
