"""Ranks the candidates, lists what a person can read, and recommends one or says "leave it".

Recommended is, of the changes that pay, the one that spends least (planner/choice/benefit.py). A
change pays where it saves something at the high end of its cost over the horizon, less the work and
the move. Where two bills overlap by more than half they are not told apart, and the smaller change
wins. Its price must be dated and its speed must not be predicted beyond what the method was fitted
on.

Which of the changes that may pay do, and which of those is least: few are weighed to tell.
Weighing takes two more bills. What a change spends is never below its expected bill and its work,
which are known before; so changes are weighed from the least of that on, until none that is left
can be less than the least found.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from planner.choice.benefit import Weighed, find_doubts, least_spent, most_net, weigh
from planner.choice.candidate import Candidate
from planner.choice.changes import codes, must_end, size, why
from planner.choice.context import JobContext
from planner.choice.option import Option, energy_of, how_it_runs
from planner.models.costs import saving
from planner.signals.signals import is_snapshot, saw_no_gpu

STAY = "o0"
_LISTED = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The ids of the options that a plan names, each with what proves it.

    Attributes:
        smallest_change: of the changes that pay for themselves, the smallest; `o0` where none does.
        cheapest: the lowest expected cost among dated prices and speeds within the fit, today's
            machine included.
        first_launchable: the first of the list that this version can launch; None where none is.
    """

    smallest_change: str = STAY
    cheapest: str = STAY
    first_launchable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The options of one job in order of the objective, the recommended id, and the named ones."""

    options: tuple[Option, ...]
    recommended: str
    named: Named

    @property
    def best(self) -> Option | None:
        """The recommended option; None for "leave it"."""
        return recommended_option(self.options, self.recommended)


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


def recommended_option(options: tuple[Option, ...], id_: str) -> Option | None:
    """Return the option of the recommended id; None for "leave it"."""
    return None if id_ == STAY else next(one for one in options if one.id == id_)


def rank_candidates(context: JobContext, candidates: tuple[Candidate, ...]) -> Ranking:
    """Return the listed options and which is recommended; `o0` means leave it."""
    ranked = sorted(candidates, key=lambda candidate: _rank(candidate, context))
    worth = Weighing(context, [] if must_end(context.findings) else _may_pay(ranked, context))
    best, smallest = _best(worth, context), worth.smallest()
    cheapest = _cheapest(ranked, context)
    first = next((d for d in ranked if context.asked.can_launch(d.offer)), None)
    wanted = (best, smallest, cheapest, first)
    listed = _shortlist(
        ranked, [candidate for candidate in wanted if candidate is not None], context
    )
    ids = {id(candidate): f"o{number}" for number, candidate in enumerate(listed, start=1)}
    return Ranking(
        options=tuple(
            _option(ids[id(one)], one, context, worth.of(one), told_most=one is (best or cheapest))
            for one in listed
        ),
        recommended=ids.get(id(best), STAY),
        named=Named(
            smallest_change=ids.get(id(smallest), STAY),
            cheapest=ids.get(id(cheapest), STAY),
            first_launchable=ids.get(id(first)),
        ),
    )


def may_move(context: JobContext) -> bool:
    """Return whether what was measured is ground to move a job at all.

    One instant is none, nor are steps timed without a look at the GPU; who does nothing is to end.
    """
    return not _is_blind(context) and not must_end(context.findings)


def _rank(candidate: Candidate, context: JobContext) -> tuple[object, ...]:
    cost, hours = candidate.comparable, candidate.hours.mid
    # The work of a period is fixed, so least cost is least cost per work.
    first = (hours, cost) if context.asked.objective == "time" else (cost, hours)
    return (*first, candidate.offer.place, candidate.offer.purchase, candidate.actions)


def _may_pay(ranked: list[Candidate], context: JobContext) -> list[Candidate]:
    """Return what may be worth doing, in order of the objective.

    Where today's machine breaks a limit that was asked for, that is whatever keeps it.
    """
    blind, here = _is_blind(context), context.gpu.name
    trusted = [
        candidate
        for candidate in ranked
        if _is_known(candidate)
        and not (blind and (candidate.offer.gpu != here or candidate.actions))
    ]
    if context.baseline.broken:
        return trusted or ranked[:1]
    if context.asked.objective == "time":
        today = context.baseline.hours.mid
        return [d for d in trusted if d.hours.high <= today and d.hours.mid < today]
    cost = context.baseline.cost
    cheaper = (d for d in trusted if cost is not None and d.comparable < cost)
    return [candidate for candidate in cheaper if most_net(candidate, context) > 0]


def _best(worth: Weighing, context: JobContext) -> Candidate | None:
    if context.asked.objective == "time":
        return worth.candidates[0] if worth.candidates else None
    most = worth.least_spent()
    return None if most is None else worth.smallest(beside=most)


def _cheapest(ranked: list[Candidate], context: JobContext) -> Candidate | None:
    """Return the candidate of least expected cost; None where today's machine costs no more."""
    known = [candidate for candidate in ranked if _is_known(candidate)]
    if not known and context.baseline.broken:
        known = ranked  # something has to be taken, as in `_paying`
    cost = min((candidate.comparable for candidate in known), default=None)
    equal = [candidate for candidate in known if candidate.comparable == cost]
    least = min(equal, key=lambda d: (d.hours.mid, d.offer.place), default=None)
    today = None if context.baseline.broken else context.baseline.cost
    if least is None or (today is not None and today <= least.comparable):
        return None
    return least


def _is_blind(context: JobContext) -> bool:
    """Return whether too little was seen to predict a speed elsewhere.

    One instant is none, nor are steps timed without a look at the GPU.
    """
    return is_snapshot(context.profile) or saw_no_gpu(context.profile)


def _is_known(candidate: Candidate) -> bool:
    """Return whether the bill is known.

    Not with an undated price, a speed beyond the fit, or spot whose interruptions are unknown.
    """
    if candidate.offer.purchase == "spot" and candidate.interruptions is None:
        return False
    return candidate.offer.dated and not candidate.speed.weak


def _shortlist(
    ranked: list[Candidate], wanted: Iterable[Candidate], context: JobContext
) -> list[Candidate]:
    """Keep what is named, the fastest, today's machine with its fixes, then a variety.

    The variety is the best of each provider, then of each kind of machine, up to a screenful.
    """
    hours = min((candidate.hours.mid for candidate in ranked), default=None)
    equal = [candidate for candidate in ranked if candidate.hours.mid == hours]
    fastest = min(equal, key=lambda d: (d.expected, d.offer.place), default=None)
    stays = next((d for d in ranked if d.actions and context.baseline.has_size(d.offer)), None)
    kept = {id(candidate) for candidate in (*wanted, fastest, stays) if candidate is not None}
    for kind in (_provider, _machine):
        seen: set[object] = set()
        for candidate in ranked:
            its = kind(candidate)
            if its not in seen:
                seen.add(its)
                if len(kept) < _LISTED:
                    kept.add(id(candidate))
    return [candidate for candidate in ranked if id(candidate) in kept]


def _provider(candidate: Candidate) -> object:
    return candidate.offer.provider


def _machine(candidate: Candidate) -> object:
    offer = candidate.offer
    return (offer.provider, offer.gpu, offer.gpu_count, candidate.count, offer.purchase)


def _option(
    id_: str, candidate: Candidate, context: JobContext, weighed: Weighed, *, told_most: bool
) -> Option:
    actions = codes(candidate, context)
    spread, machine = how_it_runs(candidate, context, actions)
    return Option(
        id=id_,
        offer=candidate.offer,
        count=candidate.count,
        provisionable=context.asked.can_launch(candidate.offer),
        actions=actions,
        speed=candidate.speed,
        hours=candidate.hours,
        quote=candidate.quote,
        cost_low=weighed.low,
        cost_high=weighed.high,
        by_hours=candidate.by_hours,
        by_price=candidate.by_price,
        saves=saving(context.baseline.cost, candidate.quote.exact),
        work_cost=context.work_cost(candidate.quote.exact),
        energy=energy_of(candidate, actions, context),
        benefit=weighed.benefit,
        move=weighed.move,
        why=why(candidate, context),
        interruptions_known=candidate.interruptions is not None,
        distribution=spread,
        machine=machine,
        scaling=candidate.scaling,
        doubts=find_doubts(candidate, context) if told_most else None,
    )
