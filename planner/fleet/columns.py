"""Groups of jobs for one GPU each, and the linear program that chooses among them.

HiGHS solves it, through scipy, which is imported only where there is something to search.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.fleet.sizes import Bins, Numbers, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """What the linear program says.

    Attributes:
        prices: of each job: what one more like it would add to the total (its dual).
        parts: how much of each group is used.
    """

    prices: Numbers
    parts: Numbers


@dataclass(kw_only=True)
class Columns:
    """The groups known so far.

    Attributes:
        sizes: the jobs.
        groups: rows that fit on one GPU, sorted, each with the hours that it holds it.
    """

    sizes: Sizes
    groups: dict[tuple[int, ...], float] = field(default_factory=dict)

    def add(self, bins: Bins) -> bool:
        """Add groups; return whether one of them is new."""
        before = len(self.groups)
        for rows in bins:
            self.groups.setdefault(tuple(sorted(rows)), float(self.sizes.hours[rows].max()))
        return len(self.groups) > before

    @property
    def entries(self) -> int:
        """How large the linear program is."""
        return sum(len(group) for group in self.groups)

    def costs(self, *, in_gpus: bool) -> Numbers:
        """Return what each group costs: one GPU, or the hours that it holds one."""
        return np.ones(len(self.groups)) if in_gpus else np.array(list(self.groups.values()))

    def relaxed(self, *, in_gpus: bool) -> Relaxed | None:
        """Return the solution with parts of groups; None where the solver finds none."""
        from scipy.optimize import linprog  # noqa: PLC0415 - a second to import

        solved = linprog(
            self.costs(in_gpus=in_gpus),
            A_ub=-self._matrix(),
            b_ub=-np.ones(len(self.sizes)),
            bounds=(0, None),
            method="highs",
        )
        if solved.status != 0:
            return None
        return Relaxed(prices=np.maximum(0.0, -solved.ineqlin.marginals), parts=solved.x)

    def _matrix(self) -> Any:  # noqa: ANN401 - scipy has no types
        from scipy.sparse import csc_matrix  # noqa: PLC0415

        ends = np.cumsum([0, *(len(group) for group in self.groups)])
        rows = np.concatenate([np.array(group) for group in self.groups])
        shape = (len(self.sizes), len(self.groups))
        return csc_matrix((np.ones(len(rows)), rows, ends), shape=shape)
