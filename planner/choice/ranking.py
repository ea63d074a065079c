"""Ranks the candidates, lists what a person can read, and recommends one or says "leave it".

Recommended is, of the changes that surely pay (planner/choice/worth.py), the one that is expected
to spend least: bill, work and move over the horizon, at prices as they were read. Expected is the
mean over all draws, so a wide range does not win by its middle alone. A small change wins by its
small work. Its price must be dated, its speed within what the method was fitted on, and
the work must not take over --max-slowdown times as long unless the user accepts that.

Few are billed and weighed to tell. A bill is never below what its machines cost for the hours of
work, and what a change spends is never below its bill and its work; so candidates are taken in the
order of what they cost at least, until none that is left can come before (`lazily_sorted`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import heapify, heappop, heappush
from itertools import chain, islice, takewhile, tee
from operator import attrgetter
from typing import get_args

from planner.choice.candidate import Candidate
from planner.choice.changes import effort_usd, must_end, size, why
from planner.choice.context import CPU_MOVE_H, JobContext
from planner.choice.feasibility import unproven
from planner.choice.option import Option, energy_of, how_it_runs
from planner.choice.workload import measured_requests_per_s
from planner.choice.worth import Worth, spends_at_least, weigh
from planner.models.costs import saving
from planner.models.draws import DRAWS, Source
from planner.profile.fields import HOURS_A_MONTH
from planner.signals.compute_share import arithmetic
from planner.signals.signals import saw_no_gpu, verdict_doubt
from planner.signals.thresholds import STARVED
from pricing.alternatives import commit
from pricing.catalog.offer import TERMS_H
from pricing.message import Message, join
from pricing.money import line_text, whole_dollars

STAY = "o0"
_LISTED = 15
_SIZE = attrgetter("offer.instance_type", "offer.purchase", "count")
_PROVIDER = attrgetter("offer.provider")
_MACHINE = attrgetter("offer.provider", "offer.gpu", "offer.gpu_count", "count", "offer.purchase")
_PEAKS = attrgetter("fp32_tflops", "fp16_tflops", "memory_bandwidth_gb_s")
_DOUBLE = attrgetter("fp64_tflops", "memory_bandwidth_gb_s")  # of what computes in it
_SAME = Decimal("0.99")  # of a bill: what saves less saves nothing
_LIKELY = 0.8  # of the draws in which what is called the cheapest costs less; our choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The ids of the options that a plan names, each with what proves it.

    Attributes:
        smallest_change: of the changes that pay for themselves, the smallest; `o0` where none does.
        cheapest: the lowest expected cost among dated prices and speeds within the fit that is
            surely below today's, and likely below the recommended option's; else that option, or
            today's machine.
        first_launchable: the first of the list that this version can launch; None where none is.
    """

    smallest_change: str = STAY
    cheapest: str = STAY
    first_launchable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """The options of one job in order of the objective, the recommended one, and the named ones.

    `best` is None for "leave it"; `reason` then says why.
    """

    options: tuple[Option, ...]
    best: Option | None
    named: Named
    reason: str | None = None


_Key = tuple[object, ...]


def _lazily_sorted(
    candidates: Sequence[Candidate],
    bound: Callable[[Candidate], _Key],
    exact: Callable[[Candidate], _Key],
) -> Iterator[Candidate]:
    """Yield candidates in the order of their exact keys, those of equal keys in their own order.

    Args:
        candidates: what is sorted.
        bound: a key that is never above the exact one, and quick to tell.
        exact: the key; asked for once of each, when no other that is left can come before it.
    """
    queue = [(bound(candidate), number, False) for number, candidate in enumerate(candidates)]
    heapify(queue)
    while queue:
        _, number, is_exact = heappop(queue)
        if is_exact:
            yield candidates[number]
        else:
            heappush(queue, (exact(candidates[number]), number, True))


class _Ranked:
    """Candidates in an order, each billed when it is reached.

    Args:
        candidates: in any order.
        by_time: whether by their hours, then by cost; else by cost, then by hours.
    """

    def __init__(self, candidates: Sequence[Candidate], *, by_time: bool) -> None:
        def key(candidate: Candidate, cost: Decimal) -> _Key:
            hours, offer = candidate.hours_mid, candidate.offer
            # The work of a period is fixed, so least cost is least cost per work.
            first = (hours, cost) if by_time else (cost, hours)
            return (*first, offer.place, offer.purchase, candidate.actions)

        self.candidates = candidates
        self.key: Callable[[Candidate], _Key] = lambda c: key(c, c.comparable)
        self._all = _lazily_sorted(candidates, lambda c: key(c, c.lowest_usd), self.key)

    def __iter__(self) -> Iterator[Candidate]:
        self._all, again = tee(self._all)
        return again

    def below(self, cost: Decimal) -> Iterator[Candidate]:
        """Yield those that cost less, of an order by cost."""
        return takewhile(lambda candidate: candidate.comparable < cost, self)


def least_spent(
    candidates: Sequence[Candidate], context: JobContext, *, of_smallest: bool = False
) -> Candidate | None:
    """Return the change that pays and spends least, of all or of the smallest; None: none pays.

    Where a limit is broken or time counts, all of them are changes to make.
    """

    def rank(candidate: Candidate) -> _Key:
        return size(candidate, context) if of_smallest else ()

    must_pay = context.asked.objective != "time" and not context.baseline.must_change
    limit_usd = (context.baseline.cost or Decimal(0)) * _SAME

    def pays(candidate: Candidate) -> bool:
        return candidate.comparable < limit_usd and weigh(candidate, context).pays

    changes = _lazily_sorted(
        candidates,
        lambda c: (*rank(c), spends_at_least(c, context)),
        lambda c: (*rank(c), weigh(c, context).spends),
    )
    return next((c for c in changes if not must_pay or pays(c)), None)


def recommended_option(options: tuple[Option, ...], id_: str) -> Option | None:
    """Return the option of the recommended id; None for "leave it"."""
    return None if id_ == STAY else next(option for option in options if option.id == id_)


def rank_candidates(context: JobContext, candidates: tuple[Candidate, ...]) -> _Ranking:
    """Return the listed options and which is recommended; `o0` means leave it."""
    in_time = context.asked.objective == "time"
    by_cost = _Ranked(candidates, by_time=False)
    ranked = _Ranked(candidates, by_time=True) if in_time else by_cost
    changes = [] if must_end(context.findings) else _may_be_recommended(ranked, context)
    best = least_spent(changes, context)
    smallest = least_spent(changes, context, of_smallest=True)
    if in_time:
        best = next(iter(changes), None)
    cheapest = _cheapest(by_cost, best, context)
    reason = None if best else _why_kept(by_cost, changes, cheapest, context)
    if _costs_more_than_cores(best, context):
        best = smallest = cheapest = None
        reason = Message("keep.no-gpu")
    startable = [c for c in candidates if context.asked.can_launch(c.offer)]
    first = next(iter(_Ranked(startable, by_time=in_time)), None)
    named = [c for c in (best, smallest, cheapest, first) if c is not None]
    listed = _shortlist(candidates, ranked, named, context)
    options = {
        id(c): _option(f"o{number}", c, context, told_most=c is (best or cheapest))
        for number, c in enumerate(listed, start=1)
    }
    ids = {key: option.id for key, option in options.items()}
    return _Ranking(
        options=tuple(options.values()),
        best=options.get(id(best)),
        named=Named(
            smallest_change=ids.get(id(smallest), STAY),
            cheapest=ids.get(id(cheapest), STAY),
            first_launchable=ids.get(id(first)),
        ),
        reason=reason,
    )


def may_move(context: JobContext) -> bool:
    """Return whether what was measured is ground to move a job at all.

    One instant is none, nor are steps timed without a look at the GPU; who does nothing is to end.
    """
    return not _is_blind(context) and not must_end(context.findings)


def _may_be_recommended(ranked: _Ranked, context: JobContext) -> list[Candidate]:
    """Return what may be worth doing, whatever it costs; for time, in that order.

    Where today's machine breaks a limit, that is whatever keeps it.
    """
    must_change, in_time = context.baseline.must_change, context.asked.objective == "time"
    if (blind := _is_blind(context)) and not must_change:
        return []
    today_h, gpu_now = context.baseline.hours.mid, context.gpu.name
    trusted = [
        candidate
        for candidate in (ranked if in_time else ranked.candidates)
        if _is_known(candidate, context)
        and not (blind and (candidate.offer.gpu != gpu_now or candidate.actions))
        and not takes_too_long(candidate, context)
    ]
    if must_change:
        return trusted or ([] if blind else [*islice(ranked, 1)])
    return [d for d in trusted if not in_time or d.hours_mid < today_h >= d.hours.high]


def takes_too_long(candidate: Candidate, context: JobContext) -> bool:
    """Return whether the work would end so much later that nobody is moved there unasked.

    Over --max-slowdown times today's hours, but where the user named a deadline or asked for the
    lowest cost; or more hours than the month may have.
    """
    hours, today_h, requirements = candidate.work_hours(), context.work.hours_at_work, context.asked
    if not context.work.fixed_work or hours <= today_h:
        return False
    if hours > requirements.most_time_factor * today_h:
        return True
    month = context.work.storage_h is not None
    return month and candidate.hours.high > max(HOURS_A_MONTH.high, today_h)


def _costs_more_than_cores(best: Candidate | None, context: JobContext) -> bool:
    """Return whether a machine without a GPU carries the job, and spends less than any change."""
    effort = effort_usd(CPU_MOVE_H, context.asked.engineer_usd_per_hour)
    machine = context.cpu_machine
    spends = None if machine is None else machine.usd * context.periods + effort
    return spends is not None and (best is None or spends < weigh(best, context).spends)


def _why_kept(
    by_cost: _Ranked, changes: Sequence[Candidate], cheapest: Candidate | None, context: JobContext
) -> str | None:
    """Return why nothing is recommended: what stands against the nearest option that costs less.

    And of the cheapest, which is shown, that it is too slow.
    """
    today, hardware = context.baseline.cost, context.profile.hardware
    if must_end(context.findings) or context.baseline.must_change:
        return None  # what is to be done, or which limit is broken, says it
    if today is None:
        return Message("keep.owned") if hardware.owned else None
    if not context.gpu.is_listed:
        return Message("keep.gpu-unlisted")
    if not any(by_cost):
        return Message("keep.no-offer")
    if context.asked.objective == "time":
        return Message("keep.none-faster")
    cheaper = [*by_cost.below(today * _SAME)]
    if not cheaper:
        return _why_owed(context) if context.baseline.owed else _why_none_cheaper(context, today)
    if _is_blind(context):
        return _why_blind(context)
    in_time = [c for c in cheaper if not takes_too_long(c, context)] or cheaper
    best = weigh(min(in_time, key=lambda c: (not _is_known(c, context), c.comparable)), context)
    near = (weigh(c, context) for c in changes if c.comparable < today * _SAME)
    nearest = min(near, key=attrgetter("spends"), default=best)
    why, first = (_why_not(weighed, context, today) for weighed in (best, nearest))
    if (first.code, why.code) == ("keep.not-sure", "keep.work"):
        return join((first, why), "sentences")  # what takes less work is not sure
    if cheapest is not None and why.code != "keep.slower" and takes_too_long(cheapest, context):
        return join((_why_not(weigh(cheapest, context), context, today), why), "sentences")
    return why


def _why_not(weighed: Worth, context: JobContext, today: Decimal) -> Message:
    """Return what keeps an option that costs less from being recommended."""
    best = weighed.candidate
    best_offer, usd = best.offer, whole_dollars(best.comparable)
    machine = Message("keep.changed") if best.stays else best_offer.name
    if takes_too_long(best, context):
        times = context.work.time_factor(best.hours_mid, best.actions)
        return Message("keep.slower", machine=machine, usd=usd, times=times)
    if _is_known(best, context):
        return _why_not_sure(weighed, machine, context, today)
    dated = "keep.no-speed" if best.speed.weak else "keep.no-interruptions"
    why = unproven(best.size, context) or Message(dated if best.offer.dated else "keep.no-date")
    return Message("keep.unknown", machine=machine, usd=usd, why=why)


def _why_blind(context: JobContext) -> Message:
    """Return what is to be recorded before anything is said of other machines."""
    if _ranks_wait(context):
        return Message("keep.ranks-wait")
    if _saw_parts(context):
        return Message("keep.parts-seen", n=len(context.profile.gpus))
    little = verdict_doubt(context.measured)
    if little is not None and little.code in {"cause.mostly-start-up", "cause.part-of-day"}:
        return Message(little.code.replace("cause", "keep"), **little.params)
    return Message("keep.too-little-seen")


def _why_none_cheaper(context: JobContext, today: Decimal) -> Message:
    """Return that no machine costs less; of a GPU held for few requests, what each costs."""
    rate = measured_requests_per_s(context.profile)
    if rate is None or context.findings[0].code != "idle-held":
        return Message("keep.none-cheaper")
    hours = Decimal(str(context.work.hours_at_work * context.baseline.replicas))
    usd = today / (Decimal(str(rate)) * 3600 * hours)
    return Message("keep.dear-requests", usd=line_text(usd))


def _why_owed(context: JobContext) -> str:
    """Return that today's machine is paid whatever runs, until when, and how much of it is free."""
    until = context.asked.paid_until or context.profile.hardware.paid_until
    busy = context.profile.paid_busy_fraction
    owed = Message("keep.paid-until", day=str(until)) if until else Message("keep.paid")
    paid = join((owed, _after_term(context) or ""), "sentences")
    if busy is None or busy >= STARVED:
        return paid
    return join((paid, Message("keep.free", percent=100 - 100 * busy)), "sentences")


def _after_term(context: JobContext) -> Message | None:
    """Return what the hours of use cost on demand, where that is less than the term does."""
    today, cost, hours = context.baseline.offer, context.baseline.cost, context.work.hours_at_work
    if today is None or today.purchase not in TERMS_H or cost is None:
        return None
    offer = commit(today, context.catalog.offers).on_demand
    usd = offer and offer.usd_per_hour * context.baseline.count * Decimal(str(hours))
    if not usd or usd >= cost:
        return None
    return Message("keep.after-term", hours=hours, usd=whole_dollars(usd))


def _why_not_sure(weighed: Worth, machine: str, context: JobContext, today: Decimal) -> Message:
    """Return why a change surely pays for nothing: its work and move, or what is open of it."""
    candidate, benefit = weighed.candidate, weighed.benefit
    high = candidate.usd_range.high
    if high < today:
        once = benefit.effort_usd + (benefit.moving_usd or 0)
        sure = whole_dollars(benefit.saves_usd or Decimal(0))
        return Message("keep.work", machine=machine, sure=sure, once=whole_dollars(once))
    days = (context.catalog.as_of - candidate.offer.as_of).days
    doubt = Message("keep.open-speed" if context.work.fixed_work else "keep.open-use")
    if candidate.by_price.high > candidate.by_hours.high:
        doubt = Message("keep.open-price", days=days)
    mid, top, paid = map(whole_dollars, (candidate.expected, high, today))
    return Message("keep.not-sure", machine=machine, mid=mid, high=top, today=paid, doubt=doubt)


def _cheapest(by_cost: _Ranked, best: Candidate | None, context: JobContext) -> Candidate | None:
    """Return the candidate of least expected cost that surely costs less than today's machine.

    And likely less than the recommended one, if another is: what as likely as not costs more is not
    the cheapest, whatever the middle of its range. None where today's machine is.
    """
    today = None if context.baseline.must_change else context.baseline.cost
    candidates = by_cost if today is None else by_cost.below(today * _SAME)
    sure: Iterable[Candidate] = (c for c in candidates if _is_known(c, context))
    if context.baseline.must_change:
        sure = [*sure] or by_cost  # something has to be taken, as in `_may_be_recommended`
    for candidate in sure if may_move(context) else ():
        saves = today is None or candidate.usd_range.high < today
        if candidate is best or (saves and _likely_costs_less(candidate, best)):
            return candidate
    return None


def _likely_costs_less(candidate: Candidate, best: Candidate | None) -> bool:
    """Return whether a bill is below the recommended one in most of the draws that they share."""
    if best is None:
        return True
    pairs = zip(candidate.complete_row, best.complete_row, strict=True)
    return sum(usd < usd_of_best for usd, usd_of_best in pairs) >= _LIKELY * DRAWS


def _is_blind(context: JobContext) -> bool:
    """Return whether too little was seen to predict a speed elsewhere.

    One instant is none, nor are a few seconds, nor steps timed without a look at the GPU.
    """
    unseen = verdict_doubt(context.measured) is not None or saw_no_gpu(context.profile)
    return unseen or _ranks_wait(context) or _saw_parts(context)


def _saw_parts(context: JobContext) -> bool:
    """Return whether several instances of a GPU were measured, and not the GPU."""
    return len(context.profile.gpus) > context.profile.gpu_count


def _ranks_wait(context: JobContext) -> bool:
    """Return whether the GPUs wait for one of them, so that none of their work was measured."""
    return bool(context.findings) and context.findings[0].actions == ("inspect-ranks",)


def _is_known(candidate: Candidate, context: JobContext) -> bool:
    """Return whether the bill is known.

    Not with an undated price, a speed beyond the fit of a GPU that may be slower, what only the
    seller can complete, or spot whose interruptions are unknown and may matter.
    """
    is_open = candidate.offer.purchase == "spot" and candidate.interruptions is None
    if is_open and not _pays_when_interrupted(candidate, context):
        return False
    weak = candidate.speed.weak and not _is_no_slower(candidate, context)
    return candidate.offer.dated and not weak


def _pays_when_interrupted(candidate: Candidate, context: JobContext) -> bool:
    """Return whether spot was asked for and saves though interruptions double all its hours."""
    today, worst = context.baseline.cost, max(2 * candidate.comparable, candidate.usd_range.high)
    return "spot" in (context.asked.purchases or ()) and bool(today and worst < today)


def _is_no_slower(candidate: Candidate, context: JobContext) -> bool:
    """Return whether as many GPUs with more of everything run it, at least as fast by the law."""
    size, profile = candidate.size, context.profile
    is_part = profile.hardware.slice is not None  # what it would do on a whole GPU is a guess
    if is_part or candidate.speed.low < 1.0 or size.used < profile.gpu_count:
        return False
    peaks = _DOUBLE if arithmetic(profile) == "double" else _PEAKS
    pairs = zip(peaks(context.gpu), peaks(candidate.offer.card), strict=True)
    has_more = all((more or 0) >= (peak or 0) for peak, more in pairs)
    return has_more and unproven(size, context) is None


def _shortlist(
    candidates: Sequence[Candidate],
    ranked: _Ranked,
    named: Iterable[Candidate],
    context: JobContext,
) -> list[Candidate]:
    """Keep what is named, the fastest, today's machine with its fixes, then a variety.

    The variety is the best of each cheaper type of today's GPUs and provider, of each provider,
    then of each kind of machine, up to a screenful.
    """
    hours = min((candidate.hours_mid for candidate in candidates), default=None)
    equal = [candidate for candidate in candidates if candidate.hours_mid == hours]
    cheapest = _lazily_sorted(
        equal, lambda c: (c.lowest_usd,), lambda c: (c.expected, c.offer.place, ranked.key(c))
    )
    mended = [d for d in candidates if d.actions and context.baseline.has_size(d.offer)]
    # Here before another region.
    stays = sorted(mended, key=lambda d: (not d.stays, ranked.key(d)))[:1]
    chosen = {id(candidate): candidate for candidate in (*named, *islice(cheapest, 1), *stays)}
    today, paid = context.baseline.offer, context.baseline.cost

    def neighbor(candidate: Candidate) -> object:
        """Return the type of a cheaper machine of today's GPUs and provider; None for others."""
        offer = candidate.offer
        is_near = today and (offer.provider, offer.gpu) == (today.provider, today.gpu)
        return is_near and paid and candidate.comparable < paid and _SIZE(candidate)

    far = islice((c for c in ranked if not neighbor(c)), 1)
    near = sorted(chain(filter(neighbor, candidates), far), key=ranked.key)
    kinds: tuple[Callable[[Candidate], object], ...] = (neighbor, _PROVIDER, _MACHINE)
    for kind in kinds:
        sorts: set[object] = set()
        for candidate in near if kind is neighbor else ranked:
            if len(chosen) >= _LISTED:
                break
            if kind(candidate) not in sorts:
                sorts.add(kind(candidate))
                chosen[id(candidate)] = candidate
    return sorted(chosen.values(), key=ranked.key)


def _option(id_: str, candidate: Candidate, context: JobContext, *, told_most: bool) -> Option:
    spread, machine, settings = how_it_runs(candidate, context)
    weighed = weigh(candidate, context)
    return Option(
        id=id_,
        offer=candidate.offer,
        count=candidate.count,
        provisionable=context.asked.can_launch(candidate.offer),
        actions=candidate.codes,
        speed=candidate.speed,
        hours=candidate.hours,
        quote=candidate.quote,
        compared=candidate.compared,
        usd_range=candidate.usd_range,
        by_hours=candidate.by_hours,
        by_price=candidate.by_price,
        by_source={source: candidate.by_source(source) for source in get_args(Source)}
        if told_most
        else {},
        saves=saving(context.baseline.cost, candidate.quote.exact),
        work_cost=context.work_cost(candidate.quote.exact),
        energy=energy_of(candidate, context),
        benefit=weighed.benefit,
        move=weighed.move,
        why=why(candidate, context),
        interruptions_known=candidate.interruptions is not None,
        distribution=spread,
        machine=machine,
        settings=settings,
        scaling=candidate.scaling,
    )
