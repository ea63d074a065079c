"""Which of the changes that may pay do, and which of those is least: few are weighed to tell.

Weighing takes two more bills. What a change spends is never below its expected bill and its work,
which are known before; so changes are weighed from the least of that on, until none that is left
can be less than the least found.
"""

from collections.abc import Sequence
from decimal import Decimal

from planner.options.candidate import Candidate
from planner.options.context import JobContext
from planner.ranking.benefit import Weighed, least_spent, weigh
from planner.ranking.changes import size

Size = tuple[bool, bool, int]
Place = tuple[Size, Decimal, int]
"""Where a change stands: its size, its dollars, its number in order of the objective."""

_ANY: Size = (False, False, 0)


class Weighing:
    """What changes are worth, weighed when it is asked for.

    Args:
        context: of the job.
        candidates: that may pay, in order of the objective.

    Attributes:
        candidates: these.
        known: what was weighed, by the candidate's identity.
    """

    def __init__(self, context: JobContext, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self.known: dict[int, Weighed] = {}
        self._context = context
        # Where a limit is broken or time counts, all of them are changes to make.
        self._must_pay = context.asked.objective != "time" and not context.baseline.broken
        self._least = [least_spent(candidate, context) for candidate in candidates]
        self._sizes = [size(candidate, context) for candidate in candidates]

    def of(self, candidate: Candidate) -> Weighed:
        """Return what a candidate is worth."""
        known = self.known.get(id(candidate))
        if known is None:
            known = self.known[id(candidate)] = weigh(candidate, self._context)
        return known

    def least_spent(self) -> Weighed | None:
        """Return the change that spends least; None where none pays."""
        found = self._first([_ANY] * len(self.candidates), None)
        return None if found is None else self.of(found)

    def smallest(self, beside: Weighed | None = None) -> Candidate | None:
        """Return the smallest change that pays, of equal ones that which spends least.

        Args:
            beside: where given, only changes whose bills it cannot be told apart from count.
        """
        return self._first(self._sizes, beside)

    def _first(self, sizes: Sequence[Size], beside: Weighed | None) -> Candidate | None:
        """Return the first by size, dollars and order of those that pay."""
        least: Place | None = None
        for floor in sorted(zip(sizes, self._least, range(len(sizes)), strict=True)):
            if least is not None and floor[:2] > least[:2]:
                break
            one = self.of(self.candidates[floor[2]])
            fits = (one.pays or not self._must_pay) and (beside is None or one.overlaps(beside))
            here = (floor[0], one.spends, floor[2])
            if fits and (least is None or here < least):
                least = here
        return None if least is None else self.candidates[least[2]]
