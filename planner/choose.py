"""Ranks the drafts, keeps a list that a person can read, and recommends one or says "leave it".

A change is recommended only when it is no worse than today even at the pessimistic end of its 90 %
interval and better at the expected value, its price is dated, and its speed is not predicted beyond
what the method was fitted on.
"""

from dataclasses import dataclass
from decimal import Decimal

from planner.baseline import gpu_memory_gib
from planner.case import Case, gpus_used, idle_gpus
from planner.distribution import Distribution, distribution
from planner.draft import Draft
from planner.estimate import Estimate
from planner.kernels import kernel_speed_up
from planner.move import data_bytes, move
from planner.option import Option
from planner.scale import Layout
from planner.signals import is_snapshot, saw_no_gpu
from pricing.hardware import gpus
from pricing.offer import Offer

STAY = "o0"
_LISTED = 15
_BY_PURCHASE = {"spot": "spot", "reserved_180d": "commit", "reserved_1y": "commit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options of one job in order of the objective, and the recommended id."""

    options: tuple[Option, ...]
    recommended: str


def choose(case: Case, drafts: tuple[Draft, ...]) -> Choice:
    """Return the listed options and which is recommended; `o0` means leave it."""
    ranked = sorted(drafts, key=lambda draft: _rank(draft, case))
    best = _recommended(ranked, case)
    listed = _shortlist(ranked, best, case)
    options = tuple(
        _option(f"o{number}", draft, case) for number, draft in enumerate(listed, start=1)
    )
    index = next((i for i, draft in enumerate(listed) if draft is best), None)
    return Choice(options=options, recommended=STAY if index is None else options[index].id)


def _rank(draft: Draft, case: Case) -> tuple[object, ...]:
    keys: dict[str, tuple[object, ...]] = {
        "cost": (draft.quote.exact, draft.hours.mid),
        "time": (draft.hours.mid, draft.quote.exact),
        "cost-per-work": (draft.quote.exact, draft.hours.mid),  # the work of a period is fixed
    }
    return (*keys[case.asked.objective], draft.offer.place, draft.offer.purchase, draft.actions)


def _recommended(ranked: list[Draft], case: Case) -> Draft | None:
    if case.baseline.broken:
        return next((d for d in ranked if _is_trusted(d, case)), ranked[0] if ranked else None)
    return next((draft for draft in ranked if _beats_today(draft, case)), None)


def _is_trusted(draft: Draft, case: Case) -> bool:
    """Return whether price and prediction are grounds to act on.

    One instant is none, nor are steps timed without a look at the GPU, nor is a speed beyond the
    fit, an undated price, or spot capacity whose interruptions are unknown.
    """
    if draft.offer.purchase == "spot" and draft.interruptions is None:
        return False
    elsewhere = draft.offer.gpu != case.gpu.name or bool(draft.actions)
    if elsewhere and (is_snapshot(case.profile) or saw_no_gpu(case.profile)):
        return False
    return draft.offer.dated and not draft.speed.weak


def _beats_today(draft: Draft, case: Case) -> bool:
    if not _is_trusted(draft, case):
        return False
    if case.asked.objective == "time":
        today = case.baseline.hours.mid
        return draft.hours.high <= today and draft.hours.mid < today
    cost = case.baseline.cost
    if cost is None or draft.quote.exact >= cost:
        return False
    return draft.cost_at("high") <= cost


def _shortlist(ranked: list[Draft], best: Draft | None, case: Case) -> list[Draft]:
    """Keep the recommended, the fastest, today's machine with its fixes, then a variety.

    The variety is the best of each provider, then of each kind of machine, up to a screenful.
    """
    fastest = min(ranked, key=lambda d: (d.hours.mid, d.quote.exact, d.offer.place), default=None)
    today = case.baseline.offer
    stays = (d for d in ranked if d.actions and today and d.offer.name == today.name)
    kept = {id(draft) for draft in (best, fastest, next(stays, None)) if draft is not None}
    for kind in (_provider, _machine):
        seen: set[object] = set()
        for draft in ranked:
            if kind(draft) not in seen and (len(kept) < _LISTED or id(draft) in kept):
                kept.add(id(draft))
            seen.add(kind(draft))
    return [draft for draft in ranked if id(draft) in kept]


def _provider(draft: Draft) -> object:
    return draft.offer.provider


def _machine(draft: Draft) -> object:
    offer = draft.offer
    return (offer.provider, offer.gpu, offer.gpu_count, draft.count, offer.purchase)


def _option(id_: str, draft: Draft, case: Case) -> Option:
    cost, today = draft.quote.exact, case.baseline.cost
    saves = today - cost if today is not None and case.work.storage_h is not None else None
    return Option(
        id=id_,
        offer=draft.offer,
        count=draft.count,
        provisionable=_is_launchable(draft.offer, case.asked.launchable),
        actions=(*draft.actions, *_structural(draft, case)),
        speed=draft.speed,
        hours=draft.hours,
        quote=draft.quote,
        cost_low=draft.cost_at("low"),
        cost_high=draft.cost_at("high"),
        move=move(
            case.baseline, draft.offer, data_bytes(case.profile, case.work), saves, case.catalog
        ),
        why=_why(draft, case),
        interruptions_known=draft.interruptions is not None,
        distribution=_distribution(draft, case),
    )


def _distribution(draft: Draft, case: Case) -> Distribution | None:
    offer = draft.offer
    layout = Layout(
        gpus=gpus_used(offer, case),
        link=offer.interconnect,
        nodes=draft.count if draft.count > 1 else None,
        gpu=offer.gpu,
        network_gbps=offer.network_gbps,
    )
    return distribution(
        case.profile,
        layout,
        memory_gib=gpu_memory_gib(offer),
        hours=draft.hours.mid,
        checkpoints=case.asked.checkpoints,
    )


def _is_launchable(offer: Offer, providers: frozenset[str]) -> bool:
    """Return whether a launch can buy it: terms and contracts are bought at the provider's."""
    bought = offer.purchase in ("on_demand", "spot") and not offer.contract_only
    return bought and offer.provider in providers


def _structural(draft: Draft, case: Case) -> tuple[str, ...]:
    """Return the codes for what the choice of machine changes against today."""
    offer, today = draft.offer, case.baseline.offer
    before, after = case.profile.gpu_count, gpus_used(offer, case)
    codes = []
    if offer.gpu != case.gpu.name:
        slower = kernel_speed_up(case.profile, gpus()[offer.gpu]).mid < 1.0
        codes.append("smaller-gpu" if slower else "newer-gpu")
    if after > before:
        codes.extend(("more-gpus", "data-parallel") if before == 1 else ("more-gpus",))
    if after < before:
        codes.append("fewer-gpus")
    if today is not None and today.provider != offer.provider:
        codes.append("move-provider")
    if offer.purchase in _BY_PURCHASE and (today is None or today.purchase != offer.purchase):
        codes.append(_BY_PURCHASE[offer.purchase])
    return tuple(codes)


def _why(draft: Draft, case: Case) -> str:
    today, offer = case.baseline.offer, draft.offer
    said = []
    if offer.gpu == case.gpu.name:
        said.append("the same GPU")
    elif case.work.fixed_work or draft.speed.mid != 1.0:
        said.append(f"{_times(draft.speed)} today's speed on {offer.gpu}")
    if draft.count > 1:
        said.append(f"on {draft.count} machines over the network")
    if idle := idle_gpus(offer, case):
        said.append(f"{idle} of {offer.gpu_count:g} GPUs idle: no machine with fewer is sold")
    if draft.actions:
        said.append(f"with {', '.join(draft.actions)}")
    if today is not None and today.usd_per_hour:
        ratio = offer.usd_per_hour * draft.count / (today.usd_per_hour * case.baseline.count)
        said.append(f"at {_percent(ratio)} of today's hourly price")
    return ", ".join(said)


def _times(speed: Estimate) -> str:
    low, mid, high = (_figure(x) for x in (speed.low, speed.mid, speed.high))
    return f"{mid}x ({low}-{high})"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"  # noqa: PLR2004 - two digits are enough


def _percent(ratio: Decimal) -> str:
    return f"{ratio * 100:.0f} %"
