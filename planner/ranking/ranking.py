"""Ranks the drafts, keeps a list that a person can read, and recommends one or says "leave it".

Recommended is the change with the largest net benefit (planner/ranking/benefit.py): what it saves
at the high end of its cost over the horizon, less the work and the move. Where two bills overlap by
more than half they are not told apart, and the smaller change wins. Its price must be dated and its
speed must not be predicted beyond what the method was fitted on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.models.saving import saving
from planner.options.candidate import Candidate
from planner.options.context import JobContext
from planner.options.energy import energy_of
from planner.options.option import Option
from planner.options.running import how_it_runs
from planner.ranking.benefit import Weighed, weigh
from planner.ranking.changes import codes, size, why
from planner.ranking.first_step import must_end
from planner.signals.signals import is_snapshot, saw_no_gpu
from pricing.catalog.offer import Offer

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


def choose(case: JobContext, drafts: tuple[Candidate, ...]) -> Ranking:
    """Return the listed options and which is recommended; `o0` means leave it."""
    ranked = sorted(drafts, key=lambda draft: _rank(draft, case))
    paying = [] if must_end(case.findings) else _paying(ranked, case)
    best = _best(paying, case)
    smallest = min(paying, key=lambda one: _smaller(one, case), default=None)
    cheapest = _cheapest(ranked, case)
    first = next((d for d in ranked if _is_launchable(d.offer, case.asked.launchable)), None)
    wanted = (best, smallest.draft if smallest else None, cheapest, first)
    listed = _shortlist(ranked, [draft for draft in wanted if draft is not None], case)
    ids = {id(draft): f"o{number}" for number, draft in enumerate(listed, start=1)}
    return Ranking(
        options=tuple(_option(ids[id(draft)], draft, case) for draft in listed),
        recommended=ids.get(id(best), STAY),
        named=Named(
            smallest_change=ids[id(smallest.draft)] if smallest else STAY,
            cheapest=ids.get(id(cheapest), STAY),
            first_launchable=ids.get(id(first)),
        ),
    )


def _rank(draft: Candidate, case: JobContext) -> tuple[object, ...]:
    keys: dict[str, tuple[object, ...]] = {
        "cost": (draft.comparable, draft.hours.mid),
        "time": (draft.hours.mid, draft.comparable),
        "cost-per-work": (draft.comparable, draft.hours.mid),  # the work of a period is fixed
    }
    return (*keys[case.asked.objective], draft.offer.place, draft.offer.purchase, draft.actions)


def _paying(ranked: list[Candidate], case: JobContext) -> list[Weighed]:
    """Return what would be worth doing, in order of the objective.

    Where today's machine breaks a limit that was asked for, that is whatever keeps it.
    """
    trusted = [draft for draft in ranked if _is_trusted(draft, case)]
    if case.baseline.broken:
        return [weigh(draft, case) for draft in trusted or ranked[:1]]
    if case.asked.objective == "time":
        today = case.baseline.hours.mid
        faster = (d for d in trusted if d.hours.high <= today and d.hours.mid < today)
        return [weigh(draft, case) for draft in faster]
    cost = case.baseline.cost
    cheaper = (d for d in trusted if cost is not None and d.comparable < cost)
    return [found for draft in cheaper if (found := weigh(draft, case)).pays]


def _best(paying: list[Weighed], case: JobContext) -> Candidate | None:
    if not paying:
        return None
    if case.asked.objective == "time":
        return paying[0].draft
    most = min(paying, key=lambda one: one.spends)
    alike = (one for one in paying if one.overlaps(most))
    return min(alike, key=lambda one: _smaller(one, case)).draft


def _smaller(one: Weighed, case: JobContext) -> tuple[object, ...]:
    return (*size(one.draft, case), one.spends)


def _cheapest(ranked: list[Candidate], case: JobContext) -> Candidate | None:
    """Return the draft with the least expected cost; None where today's machine costs no more."""
    trusted = (draft for draft in ranked if _is_known(draft))
    least = min(trusted, key=lambda d: (d.comparable, d.hours.mid, d.offer.place), default=None)
    today = None if case.baseline.broken else case.baseline.cost
    if least is None or (today is not None and today <= least.comparable):
        return None
    return least


def _is_trusted(draft: Candidate, case: JobContext) -> bool:
    """Return whether price and prediction are grounds to act on.

    One instant is none, nor are steps timed without a look at the GPU.
    """
    elsewhere = draft.offer.gpu != case.gpu.name or bool(draft.actions)
    if elsewhere and (is_snapshot(case.profile) or saw_no_gpu(case.profile)):
        return False
    return _is_known(draft)


def _is_known(draft: Candidate) -> bool:
    """Return whether the bill is known.

    Not with an undated price, a speed beyond the fit, or spot whose interruptions are unknown.
    """
    if draft.offer.purchase == "spot" and draft.interruptions is None:
        return False
    return draft.offer.dated and not draft.speed.weak


def _shortlist(
    ranked: list[Candidate], wanted: Iterable[Candidate], case: JobContext
) -> list[Candidate]:
    """Keep what is named, the fastest, today's machine with its fixes, then a variety.

    The variety is the best of each provider, then of each kind of machine, up to a screenful.
    """
    fastest = min(ranked, key=lambda d: (d.hours.mid, d.quote.exact, d.offer.place), default=None)
    stays = next((d for d in ranked if d.actions and case.baseline.has_size(d.offer)), None)
    kept = {id(draft) for draft in (*wanted, fastest, stays) if draft is not None}
    for kind in (_provider, _machine):
        seen: set[object] = set()
        for draft in ranked:
            if kind(draft) not in seen and (len(kept) < _LISTED or id(draft) in kept):
                kept.add(id(draft))
            seen.add(kind(draft))
    return [draft for draft in ranked if id(draft) in kept]


def _provider(draft: Candidate) -> object:
    return draft.offer.provider


def _machine(draft: Candidate) -> object:
    offer = draft.offer
    return (offer.provider, offer.gpu, offer.gpu_count, draft.count, offer.purchase)


def _option(id_: str, draft: Candidate, case: JobContext) -> Option:
    weighed, actions = weigh(draft, case), codes(draft, case)
    spread, machine = how_it_runs(draft, case, actions)
    return Option(
        id=id_,
        offer=draft.offer,
        count=draft.count,
        provisionable=_is_launchable(draft.offer, case.asked.launchable),
        actions=actions,
        speed=draft.speed,
        hours=draft.hours,
        quote=draft.quote,
        cost_low=weighed.low,
        cost_high=weighed.high,
        saves=saving(case.baseline.cost, draft.quote.exact),
        work_cost=case.work_cost(draft.quote.exact),
        energy=energy_of(draft, actions, case),
        benefit=weighed.benefit,
        move=weighed.move,
        why=why(draft, case),
        interruptions_known=draft.interruptions is not None,
        distribution=spread,
        machine=machine,
    )


def _is_launchable(offer: Offer, providers: frozenset[str]) -> bool:
    """Return whether a launch can buy it: terms and contracts are bought at the provider's."""
    bought = offer.purchase in ("on_demand", "spot") and not offer.contract_only
    return bought and offer.provider in providers
