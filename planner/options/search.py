"""Every offer is either a draft of an option or a rejection with its reason."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from planner.actions import ACTIONS, Action
from planner.baseline.baseline import over_limits
from planner.baseline.rejection import Reason, Rejected
from planner.baseline.tenancy import Tenancy
from planner.diagnosis.fixes import SWITCH_HOURS
from planner.models.estimate import Estimate, divide
from planner.options.candidate import Candidate
from planner.options.context import JobContext, gpus_used, machines
from planner.options.feasibility import refusals, too_slow, unproven
from planner.options.spot import Interruptions, check_ends, misses_deadline, rate
from planner.prediction.layout import Layout
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import risen_at_most
from pricing.errors import InputError

_IDLE_SAVED = (0.95, 0.5, 0.05)


def candidates(case: JobContext) -> tuple[tuple[Candidate, ...], tuple[Rejected, ...]]:
    """Return the drafts that keep every limit, and one rejection per size and reason."""
    drafts: list[Candidate] = []
    rejected: dict[tuple[str, str], Rejected] = {}
    for offer in _cheapest_region(case):
        made, refused = _consider(offer, case)
        drafts.extend(made)
        for refusal in () if made else refused:
            key = (refusal.offer, refusal.reason)
            if key not in rejected or refusal.excess < rejected[key].excess:
                rejected[key] = refusal
    names = {draft.offer.name for draft in drafts}
    kept = (r for r in rejected.values() if r.offer not in names)
    return tuple(drafts), tuple(sorted(kept, key=lambda r: (r.offer, r.reason)))


def _cheapest_region(case: JobContext) -> Iterator[Offer]:
    """Yield one offer per size and purchase: the cheapest region, today's region on a tie.

    Today's machine is yielded as it is paid for, beside its size in a cheaper region.
    """
    today = case.baseline.offer
    home = today.region if today else None
    paid = None if today is None or case.baseline.assumed or not _named(today, case) else today
    if paid is not None:
        yield paid
    groups: dict[tuple[str, str, str], list[Offer]] = defaultdict(list)
    for offer in case.catalog.offers:
        if _named(offer, case):
            groups[_size(offer)].append(offer)
    for key in sorted(groups):
        allowed = [there for o in groups[key] if (there := case.there(o))]
        cheapest = min(
            allowed or groups[key],
            key=lambda o: (o.usd_per_hour, o.region != home, o.region),
        )
        if paid is None or (key, cheapest.region) != (_size(paid), home):
            yield cheapest


def _named(offer: Offer, case: JobContext) -> bool:
    """Whether the user's choice of providers and GPUs has room for an offer."""
    providers, models = case.asked.providers, case.asked.gpus
    return (not providers or offer.provider in providers) and (not models or offer.gpu in models)


def _size(offer: Offer) -> tuple[str, str, str]:
    return (offer.provider, offer.instance_type, offer.purchase)


def _consider(offer: Offer, case: JobContext) -> tuple[list[Candidate], list[Rejected]]:
    refused = next(refusals(offer, case), None)
    if refused is not None:
        reason, detail = refused
        return [], [Rejected(offer=offer.name, reason=reason, detail=detail)]
    made: list[Candidate] = []
    over: list[Rejected] = []
    for actions in _action_sets(case):
        paid = machines(offer, case) * case.work.replicas
        if not actions and case.baseline.is_paid(offer, paid):
            continue  # that is o0
        try:
            draft = _draft(offer, case, actions)
        except InputError as error:  # specifications that a prediction needs are missing
            over.append(Rejected(offer=offer.name, reason="unknown-gpu", detail=error.problems[0]))
            continue
        problem = _unfit_for_spot(draft, case) or too_slow(draft, case)
        if problem is not None:
            over.append(Rejected(offer=offer.name, reason=problem[0], detail=problem[1]))
            continue
        limits = over_limits(offer.name, draft.hours, _highest_cost(draft, case), case.asked)
        over.extend(limits)
        if not limits:
            made.append(draft)
    return made, over


def _highest_cost(draft: Candidate, case: JobContext) -> Decimal | None:
    """Return the bill at the high end of the hours, where a budget asks for it."""
    return None if case.asked.budget_usd is None else draft.cost_at("high")


def _action_sets(case: JobContext) -> Iterator[tuple[Action, ...]]:
    """Yield the ways to run it: as it is, with all fixes or the quick ones, ended when idle."""
    yield ()
    if case.fixes:
        yield case.fixes
    switches = tuple(one for one in case.fixes if one.effort_hours <= SWITCH_HOURS)
    if switches and switches != case.fixes:
        yield switches
    if case.idle_share and not case.work.fixed_work:
        yield (ACTIONS["idle-shutdown"],)


def _draft(offer: Offer, case: JobContext, actions: tuple[Action, ...]) -> Candidate:
    count = machines(offer, case)
    speed = case.speed(Layout.of(offer, count, gpus_used(offer, case)), actions)
    if doubt := unproven(offer, case):
        speed = replace(speed, basis=f"{speed.basis}; {doubt}", weak=True)
    return Candidate(
        offer=offer,
        count=count * case.work.replicas,
        actions=tuple(a.code for a in actions),
        speed=speed,
        work_hours=_hours(case, speed, actions),
        work=case.work,
        interruptions=_interruptions(offer, case),
        catalog=case.catalog,
        risen=_risen(offer, case),
        tenancy=_tenancy(offer, case),
        unknown_today=_unknown_today(offer, case),
    )


def _unknown_today(offer: Offer, case: JobContext) -> tuple[str, ...]:
    """Return what the provider of today's machine has no known price for, at that provider."""
    today, bill = case.baseline.offer, case.baseline.quote
    return bill.unknown if today and bill and today.provider == offer.provider else ()


def _risen(offer: Offer, case: JobContext) -> Decimal:
    """Return what the price may have risen by; today's is the same on both sides."""
    return Decimal(1) if offer == case.baseline.offer else risen_at_most(offer, case.catalog.as_of)


def _tenancy(offer: Offer, case: JobContext) -> Tenancy | None:
    """Return the job's part in the bill of the very machine that it stands on."""
    return case.baseline.tenancy if case.baseline.has_size_there(offer) else None


def _interruptions(offer: Offer, case: JobContext) -> Interruptions | None:
    if offer.purchase != "spot":
        return None
    return rate(offer, case.asked.spot_trace, case.asked.checkpoints)


def _unfit_for_spot(draft: Candidate, case: JobContext) -> tuple[Reason, str] | None:
    """Return why spot capacity would not do: the work never ends, or not in time."""
    if draft.offer.purchase != "spot":
        return None
    asked, work_h = case.asked, draft.work_hours.high
    if draft.interruptions is not None:
        endless = check_ends(draft.interruptions, work_h)
        if endless is not None:
            return endless
    return misses_deadline(work_h, asked.spot_trace, asked.checkpoints, asked.deadline_h)


def _hours(case: JobContext, speed: Estimate, actions: tuple[Action, ...]) -> Estimate:
    held = case.work.hours
    if case.work.fixed_work:
        return divide(held.mid, speed, speed.basis)
    if any(a.code == "idle-shutdown" for a in actions) and case.idle_share:
        # Pauses shorter than the shutdown's own delay save nothing, so the saving lies anywhere
        # from none to the whole idle share; these are the ends of 90 % of that.
        low, mid, high = (held.mid * (1.0 - case.idle_share * part) for part in _IDLE_SAVED)
        basis = f"idle at least {case.idle_share:.0%} of the time; none to all of it saved"
        return Estimate(low=low, mid=mid, high=high, basis=basis)
    if case.profile.job.kind == "unknown":
        return Estimate(
            low=min(held.mid, held.mid / speed.high),
            mid=held.mid,
            high=max(held.mid, held.mid / speed.low),
            basis="the kind of job is unknown: held time, or the same work at the new speed",
            weak=speed.weak,
        )
    return Estimate(low=held.mid, mid=held.mid, high=held.mid, basis="held time stays")
