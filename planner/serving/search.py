"""Which GPU, how many of them, how many copies: every layout on sale, the cheapest first.

A layout is a GPU, how many split the model, a precision and the kind of their links. What a copy
can take by mean values is its best case, so that layouts whose best case costs more than what was
found are not simulated.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import islice
from operator import itemgetter
from statistics import NormalDist
from typing import NamedTuple

from msgspec import Struct, structs

from planner.models.estimate import Estimate
from planner.serving.anchor import MeasuredRun, anchored, transferred
from planner.serving.language_model import LanguageModel
from planner.serving.load import (
    MOST_OF_SATURATION,
    CopyLimit,
    Target,
    copies_for,
    copy_limit,
    fits,
    fluid_rate,
    lone_prompt,
    saturated_rate,
    served,
)
from planner.serving.server import Server, law, runs_in, server
from planner.serving.simulation import Latencies
from planner.serving.traffic import Traffic
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.hardware import find, is_socketed
from pricing.message import Message, join
from pricing.money import HOURS_PER_MONTH, show

SCHEMA = "gpucost.serving-plan/v1"
RANKS = (1, 2, 4, 8)
_NVLINK = frozenset({"nvlink", "nvlink-bridge", "xgmi"})
_SIMULATED = 6  # layouts, at least; more only while a best case is cheaper than what was found
_MOST_SIMULATED = 10
_MOST_WHILE_TIGHT = 40  # where a prompt by itself takes nearly all of the target on those before
_TIGHT = 0.9  # of a target
_FEWEST_OPTIONS = 3  # to choose from, of layouts up to `_MOST_SIMULATED`
_LEAST_ODDS = 0.5  # of an option: below, its times as simulated break a target
SOUND_ODDS = 0.8
"""Of keeping the targets: an option below is risky, and none is recommended for being cheaper."""
_DEAREST = 5  # times the cheapest option: what costs more is not listed
_MILLION = Decimal(1_000_000)
_HOUR_S = 3600
_PERCENTS = (50, 95, 99)
_SIGMAS_OF_90 = NormalDist().inv_cdf(0.95)
# Factors that hold nine of ten published runs (research/serving.py), around the simulation.
SPREAD: Mapping[str, Mapping[str, tuple[float, float, float]]] = {  # p50, p95, p99
    "measured": {"ttft": (1.25, 1.9, 2.0), "tpot": (1.24, 1.33, 1.33), "e2e": (1.33, 1.33, 1.33)},
    "law": {"ttft": (4.0, 4.0, 4.0), "tpot": (2.05, 2.05, 2.05), "e2e": (2.05, 2.05, 2.05)},
}
RATE_SPREAD = 1.33
"""Factor around what one copy can take that holds nine of ten published runs, with one measured."""
RATE_ERRORS: Mapping[str, tuple[float, float]] = {  # told over true: median, factor of nine of ten
    "measured": (1.0, RATE_SPREAD),
    # Full batches of dense models answer less than the law has it, which was fitted below them: 13
    # rows of Llama-3.1-8B, Qwen3-14B and -32B on A100 and H100, 1.09 to 1.52 (ml-energy/leaderboard
    # and gpustack/gpustack @47277d79, 2026-08; tests/outside/test_mixture_runs.py).
    "law": (1.3, 1.25),
    "mixture": (1.0, 1.72),  # nothing measured, the model left out (research/mixtures.py)
}


class Layout(Struct, frozen=True, order=True):
    """GPUs of one copy.

    Attributes:
        gpu: their name.
        tensor_parallel: how many split the model.
        precision: of the weights.
        nvlink: whether they are linked so.
    """

    gpu: str
    tensor_parallel: int
    precision: str
    nvlink: bool


class Question(Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        model: that is served.
        traffic: of all copies together.
        targets: to keep.
        precisions: of the weights; empty: as published.
        spare: copies more than the rate needs.
        peak: rate of the busiest minute over the mean.
        measured: a run of one copy, and where; None without.
        measured_on: its layout.
        batch: requests that are answered once, offline; None: a service.
        budget_usd: at most, of the batch or of a service's month.
    """

    model: LanguageModel
    traffic: Traffic
    targets: tuple[Target, ...]
    precisions: tuple[str, ...] = ()
    spare: int = 0
    peak: float = 1.0
    measured: MeasuredRun | None = None
    measured_on: Layout | None = None
    batch: float | None = None
    budget_usd: Decimal | None = None


class ServingOption(Struct, frozen=True, kw_only=True):
    """One way to serve.

    Attributes:
        layout: of a copy.
        offer: whose machines run them.
        copies: that the rate needs, at the peak.
        spare: more of them.
        machines: of the offer, for both.
        limit: what one copy can take.
        asked_rate: requests a second, mean, of all copies.
        ttft_ms: percentiles of the first token at the asked rate: p50, p95, p99.
        tpot_ms: of a token, likewise.
        e2e_ms: of a request, likewise.
        usd_per_hour: of all machines.
        usd_per_month: of 730 hours.
        usd_per_million_output: tokens of answers, at the asked rate.
        usd_per_million_tokens: of prompts and answers together, at the asked rate.
        usd_per_million_output_full: tokens of answers, with every copy at its most.
        usd_per_million_tokens_full: of both, likewise.
        headroom_fraction: of what the copies can take, what the asked rate leaves.
        load_fraction: of what a copy answers when it is full, what it is asked at the peak.
        odds_fraction: how likely the least likely target is kept, by how far the times and what a
            copy can take err; of a batch, that it is done in time; None without targets.
        batch_hours: of a batch, until it is done; None for a service.
        batch_usd: of a batch; None for a service.
        basis: where the times come from.
        weak: why they are weak; empty where they are not.
        tight: that one long prompt by itself takes over 90 % of a target; None where it does not.
    """

    layout: Layout
    offer: Offer
    copies: int
    spare: int
    machines: int
    limit: CopyLimit
    asked_rate: float
    ttft_ms: tuple[Estimate, ...]
    tpot_ms: tuple[Estimate, ...]
    e2e_ms: tuple[Estimate, ...]
    usd_per_hour: Decimal
    usd_per_month: Decimal
    usd_per_million_output: Decimal
    usd_per_million_tokens: Decimal
    usd_per_million_output_full: Decimal
    usd_per_million_tokens_full: Decimal
    headroom_fraction: float
    load_fraction: float
    odds_fraction: float | None
    basis: str
    weak: tuple[str, ...]
    tight: str | None = None
    batch_hours: float | None = None
    batch_usd: Decimal | None = None

    @property
    def usd(self) -> Decimal:
        """What it costs: a batch, or a month."""
        return self.usd_per_month if self.batch_usd is None else self.batch_usd

    @property
    def is_risky(self) -> bool:
        """Whether its odds of keeping the targets are too low to recommend it."""
        return self.odds_fraction is not None and self.odds_fraction < SOUND_ODDS


class Unfit(Struct, frozen=True):
    """Why a layout cannot serve.

    Attributes:
        layout: which.
        reason: memory, latency, precision, or unknown: its figures are.
        detail: in words.
        least_s: of the target that no rate keeps: its metric at almost no load, s.
    """

    layout: Layout
    reason: str
    detail: str
    least_s: float | None = None


class TokenOffer(Struct, frozen=True, kw_only=True):
    """Tokens of the model bought from an API.

    Attributes:
        provider: whose API.
        model: its name there.
        usd_per_million_input: tokens of prompts.
        usd_per_million_output: tokens of answers.
        usd_per_month: of 730 hours at the asked rate.
        break_even_rate: requests a second from which the cheapest option costs less, as long as its
            copies take them; None where it never does.
        source: where the price was read, and when.
        second_source: whose second reading of the price it is; None where there is none.
        second_usd_per_month: by the second reading.
        second_break_even_rate: likewise; None where hosting never costs less by it.
    """

    provider: str
    model: str
    usd_per_million_input: Decimal
    usd_per_million_output: Decimal
    usd_per_month: Decimal
    break_even_rate: Decimal | None
    source: str
    second_source: str | None = None
    second_usd_per_month: Decimal | None = None
    second_break_even_rate: Decimal | None = None


class ServingPlan(Struct, frozen=True, kw_only=True):
    """How to serve a model: GPUs, copies, times and dollars.

    Attributes:
        schema: `gpucost.serving-plan/v1`.
        as_of: day of the prices.
        currency: of every amount.
        model: that is served.
        parameters: of it.
        rate: requests a second, mean, of all copies.
        prompt_tokens: mean.
        output_tokens: mean.
        requests: of a batch; None for a service.
        targets: that every option keeps.
        layouts: that were looked at; of those that cost more than the options by mean values alone
            nothing is told.
        options: the cheapest first, those after all others whose odds are below 80 %; one a
            layout, two where more copies lift its odds over that.
        unfit: layouts that cannot serve.
        tokens: the same tokens bought from an API, the cheapest first.
    """

    schema: str = SCHEMA
    as_of: date
    currency: str = "USD"
    model: str
    parameters: float
    rate: float
    prompt_tokens: float
    output_tokens: float
    requests: float | None
    targets: tuple[str, ...]
    layouts: int
    options: tuple[ServingOption, ...]
    unfit: tuple[Unfit, ...]
    tokens: tuple[TokenOffer, ...] = ()


def search(question: Question, offers: Iterable[Offer], as_of: date) -> ServingPlan:
    """Return the ways to serve: first the cheapest that keeps the targets at odds of 80 %.

    Args:
        question: what is asked.
        offers: that may be rented, already filtered.
        as_of: day of their prices.

    Raises:
        InputError: nothing serves: what stands in the way, and the least that can be had.
    """
    sold = layouts_on_sale(question, offers)
    unfit: list[Unfit] = []
    best_case = _best_cases(question, sold, unfit)
    options: list[ServingOption] = []
    for number, (lower_bound, layout, copy) in enumerate(sorted(best_case, key=itemgetter(0, 1))):
        sound_usd = min((o.usd for o in options if not o.is_risky), default=lower_bound)
        dear = number >= _SIMULATED and lower_bound > sound_usd and len(options) >= _FEWEST_OPTIONS
        is_tight = all(option.tight for option in options)
        if dear or (options and number >= (_MOST_WHILE_TIGHT if is_tight else _MOST_SIMULATED)):
            break
        limit = _expected(question, copy_limit(copy, question.traffic, question.targets))
        if limit.rate <= 0.0:
            unfit.append(Unfit(layout, "latency", idle_time(limit), limit.lowest_s))
            continue
        offer = min(sold[layout], key=lambda o: _cost(o, layout, question, limit.rate))
        if not (sized := list(_options_on(question, layout, copy, limit, offer))):
            detail = f"{limit.stopped_by} broken at {question.traffic.rate:g}/s"
            unfit.append(Unfit(layout, "latency", detail, 0.0))
        options += sized
    if not options:
        raise InputError(_nothing_serves(question, unfit))
    _check_budget(question, min(options, key=lambda option: option.usd))
    affordable = [o for o in options if o.usd <= (question.budget_usd or o.usd)]
    most = _DEAREST * min(affordable, key=_rank).usd
    options = sorted((option for option in affordable if option.usd <= most), key=_rank)
    return _plan(question, as_of, len(sold), options, unfit)


def idle_time(limit: CopyLimit) -> str:
    """Return the first target that no rate keeps, and its time at almost no load."""
    ms = 1000.0 * (limit.lowest_s or 0.0)
    return Message("serving.idle-time", target=limit.stopped_by, ms=ms)


def _plan(
    question: Question, as_of: date, layouts: int, options: list[ServingOption], unfit: list[Unfit]
) -> ServingPlan:
    return ServingPlan(
        as_of=as_of,
        model=question.model.name,
        parameters=question.model.parameters,
        rate=question.traffic.rate,
        prompt_tokens=question.traffic.prompt,
        output_tokens=question.traffic.output,
        requests=question.batch,
        targets=tuple(target.words for target in question.targets),
        layouts=layouts,
        options=tuple(options),
        unfit=tuple(unfit),
    )


def _rank(option: ServingOption) -> tuple[bool, Decimal, bool, float, int]:
    """Return the order of options: sound odds, dollars, no split over PCIe, better odds."""
    layout = option.layout
    split = layout.tensor_parallel > 1 and not layout.nvlink
    return option.is_risky, option.usd, split, -(option.odds_fraction or 0.0), option.copies


def _best_cases(
    question: Question, sold: Mapping[Layout, Sequence[Offer]], unfit: list[Unfit]
) -> list[tuple[Decimal, Layout, Server]]:
    best_case = []
    for layout, its_offers in sold.items():
        copy = copy_of(question, layout)
        gpu = find(layout.gpu)
        if copy is None or gpu is None:
            unfit.append(Unfit(layout, "unknown", "its peak or bandwidth is not known"))
        elif not runs_in(gpu, layout.precision):
            unfit.append(Unfit(layout, "precision", "it has no bfloat16"))
        elif not fits(copy, question.traffic):
            unfit.append(Unfit(layout, "memory", _no_room(copy, question.traffic)))
        else:
            rate = fluid_rate(copy, question.traffic, question.targets)
            rate = min(rate, MOST_OF_SATURATION * saturated_rate(copy, question.traffic))
            cheapest = min(_cost(offer, layout, question, rate)[0] for offer in its_offers)
            best_case.append((cheapest, layout, copy))
    return best_case


def _check_budget(question: Question, cheapest: ServingOption) -> None:
    lowest, budget = cheapest.usd, question.budget_usd
    if budget is not None and lowest > budget:
        sums = {"least": show(lowest), "budget": show(budget), "where": cheapest.offer.name}
        raise InputError(Message("serving.over-budget", model=question.model.name, **sums))


def _nothing_serves(question: Question, unfit: Sequence[Unfit]) -> str:
    """Return what stands in the way of every layout, the least that can be had, and a remedy."""
    late = [why for why in unfit if why.least_s is not None]
    name = question.model.name
    if late:
        best = min(late, key=lambda why: why.least_s or 0.0)
        where = f"{best.layout.tensor_parallel}x {best.layout.gpu}"
        fewer = "int4" if "fp8" in {why.layout.precision for why in late} else "fp8"
        layout = {"where": where, "detail": best.detail, "fewer": fewer}
        return Message("serving.too-late", model=name, **layout)
    if any(why.reason == "memory" for why in unfit):
        return no_room(question, Message("serving.machines-looked-at"))
    if unfit:
        gpus = ", ".join(sorted({why.layout.gpu for why in unfit}))
        return Message("serving.cannot-run", model=name, gpus=gpus, detail=unfit[0].detail)
    return Message("serving.not-on-sale", model=name)


def no_room(question: Question, where: str) -> str:
    """Return that a model and 4 requests fit no such place, and what would hold them."""
    tokens, holders = question.traffic.context, join(_holders(question), "words")
    name = question.model.name
    return Message("serving.no-room", model=name, tokens=tokens, where=where, holders=holders)


def _holders(question: Question) -> Iterable[str]:
    """Yield the smallest that hold the model: two as published, one with weights of 4 bits."""
    for precision, count in ((question.model.native_precision, 2), ("int4", 1)):
        layouts = (Layout(gpu, ranks, precision, ranks > 1) for gpu, ranks in law()["holders"])
        copies = ((layout.tensor_parallel, copy_of(question, layout)) for layout in layouts)
        fitting = ((n, copy) for n, copy in copies if copy and fits(copy, question.traffic))
        for ranks, copy in islice(fitting, count):
            code = "serving.holder" if ranks <= RANKS[-1] else "serving.holder-machines"
            yield Message(code, n=ranks, half=ranks // 2, gpu=copy.gpu, precision=precision)


def layouts_on_sale(
    question: Question, offers: Iterable[Offer]
) -> Mapping[Layout, Sequence[Offer]]:
    """Return the offers of each layout; GPUs below a whole one have no bandwidth of their own."""
    sold: dict[Layout, list[Offer]] = {}
    for offer in offers:
        if offer.gpu_count < 1 or find(offer.gpu) is None:
            continue
        for ranks in RANKS:
            if ranks <= offer.gpu_count:
                for precision in question.precisions or (question.model.native_precision,):
                    layout = Layout(offer.gpu, ranks, precision, ranks > 1 and is_linked(offer))
                    sold.setdefault(layout, []).append(offer)
    return sold


def is_linked(offer: Offer) -> bool:
    """Return whether an offer's GPUs are linked by more than PCIe."""
    return offer.interconnect in _NVLINK if offer.interconnect else is_socketed(offer.gpu)


def copy_of(question: Question, layout: Layout) -> Server | None:
    """Return a copy on a layout, anchored where a run of a like one was measured."""
    copy, run, machine = _law_copy(question, layout), question.measured, question.measured_on
    if run is None or machine is None or not is_anchored(question, layout):
        return copy
    measured = _law_copy(question, machine)
    if copy is None or measured is None:
        return copy
    return transferred(copy, measured, anchored(measured, run)[0])


def is_anchored(question: Question, layout: Layout) -> bool:
    """Return whether a run speaks of a layout: one GPU says nothing of the links of several."""
    machine = question.measured_on
    if question.measured is None or machine is None:
        return False
    return (layout.tensor_parallel > 1) is (machine.tensor_parallel > 1)


def _law_copy(question: Question, layout: Layout) -> Server | None:
    gpu, ranks = find(layout.gpu), layout.tensor_parallel
    if gpu is None:
        return None
    precision, nvlink = layout.precision, layout.nvlink
    return server(question.model, gpu, tensor_parallel=ranks, precision=precision, nvlink=nvlink)


def _no_room(copy: Server, traffic: Traffic) -> str:
    if copy.kv_tokens <= 0:
        return "the weights alone do not fit"
    return (
        f"{copy.kv_tokens:,.0f} tokens of keys and values fit beside the weights: fewer than 4 "
        f"requests of {traffic.context:,.0f}"
    )


def _cost(offer: Offer, layout: Layout, question: Question, rate: float) -> tuple[Decimal, int]:
    """Return dollars of a month or of the batch, and machines, where a copy takes a rate."""
    copies_a_machine = _copies_on(offer, layout)
    copies = copies_for(question.traffic.rate * question.peak, rate) + question.spare
    machines = math.ceil(copies / copies_a_machine)
    hour = offer.usd_per_hour * machines
    if question.batch is None:
        return hour * HOURS_PER_MONTH, machines
    batch_h = question.batch / (machines * copies_a_machine * rate * _HOUR_S)
    return hour * Decimal(str(batch_h)), machines


def _copies_on(offer: Offer, layout: Layout) -> int:
    return int(offer.gpu_count) // layout.tensor_parallel


class _Load(NamedTuple):
    """So many copies: the rate that each is asked, its times, and the odds that they are enough."""

    copies: int
    rate: float
    latencies: Latencies
    odds: float


def least_copies(
    question: Question, copy: Server, limit: CopyLimit, numbers: Sequence[int], odds: float
) -> _Load:
    """Return the least of some numbers of copies that has such odds; the most where none has."""

    @cache
    def load(copies: int) -> _Load:
        rate = question.traffic.rate * question.peak / copies
        copy_rate = rate if question.batch is None else limit.rate
        latencies = served(copy, question.traffic, copy_rate)
        return _Load(copies, copy_rate, latencies, _odds(question, limit, latencies, rate))

    if load(numbers[0]).odds >= odds:  # of most layouts
        return load(numbers[0])
    last = len(numbers) - 1  # with less to do each, copies keep the targets better
    at = bisect_left(numbers, odds, min(1, last), last, key=lambda number: load(number).odds)
    return load(numbers[at])


def _options_on(
    question: Question, layout: Layout, copy: Server, limit: CopyLimit, offer: Offer
) -> Iterator[ServingOption]:
    """Yield the least copies that may be enough, up to twice those that carry the rate.

    Where those are risky, more follow.
    """
    if not is_anchored(question, layout):
        question = structs.replace(question, measured=None)
    fewest, step = copies_for(question.traffic.rate * question.peak, limit.rate), 1
    if question.batch is not None:  # every GPU that is paid for works
        step = _copies_on(offer, layout)
        fewest = _cost(offer, layout, question, limit.rate)[1] * step
    numbers = range(fewest, 2 * fewest + 1, step)
    load = least_copies(question, copy, limit, numbers, _LEAST_ODDS)
    if load.odds < _LEAST_ODDS:
        return
    yield (option := _option(question, layout, copy, limit, offer, load))
    more = range(load.copies + step, 2 * fewest + 1, step)
    if option.is_risky and not option.tight and more:
        load = least_copies(question, copy, limit, more, SOUND_ODDS)
        if load.odds >= SOUND_ODDS:
            yield _option(question, layout, copy, limit, offer, load)


def _option(  # noqa: PLR0913, PLR0917 - what is asked, of what, where
    question: Question,
    layout: Layout,
    copy: Server,
    limit: CopyLimit,
    offer: Offer,
    load: _Load,
) -> ServingOption:
    copies, copy_rate, latencies, sureness = load
    traffic, batch, spare = question.traffic, question.batch, question.spare
    kind = "measured" if question.measured else "law"
    machines = math.ceil((copies + (0 if batch else spare)) / _copies_on(offer, layout))
    rate = traffic.rate if batch is None else copies * limit.rate
    batch_h = None if batch is None else batch / rate / _HOUR_S
    usd_per_hour = offer.usd_per_hour * machines
    output, tokens, capacity = traffic.output, traffic.context, copies * limit.rate
    return ServingOption(
        layout=layout,
        offer=offer,
        copies=copies,
        spare=spare,
        machines=machines,
        limit=limit,
        asked_rate=rate,
        ttft_ms=_times_ms(latencies, "ttft", kind),
        tpot_ms=_times_ms(latencies, "tpot", kind),
        e2e_ms=_times_ms(latencies, "e2e", kind),
        usd_per_hour=usd_per_hour,
        usd_per_month=usd_per_hour * HOURS_PER_MONTH,
        usd_per_million_output=usd_per_million(usd_per_hour, rate * output),
        usd_per_million_tokens=usd_per_million(usd_per_hour, rate * tokens),
        usd_per_million_output_full=usd_per_million(usd_per_hour, capacity * output),
        usd_per_million_tokens_full=usd_per_million(usd_per_hour, capacity * tokens),
        headroom_fraction=1.0 - rate / capacity,
        load_fraction=copy_rate / limit.saturated_rate,
        odds_fraction=sureness if batch or question.targets else None,
        basis=_basis(question.measured),
        weak=tuple(_weak(question, offer, layout, limit, copy_rate)),
        tight=_tight(question, copy),
        batch_hours=batch_h,
        batch_usd=None if batch_h is None else usd_per_hour * Decimal(str(batch_h)),
    )


def _tight(question: Question, copy: Server) -> str | None:
    """Return that the prompt at a target's percentile takes nearly all of it by itself."""
    traffic = question.traffic
    for target in question.targets:
        if target.metric == "ttft":
            tokens, first_s = lone_prompt(copy, traffic, target.percent)
            if first_s > _TIGHT * target.limit_s:
                return Message(
                    "serving.tight-prompt",
                    gpu=f"{copy.tensor_parallel}x {copy.gpu}",
                    percent=target.percent,
                    tokens=tokens,
                    lengths="--request-log" if traffic.trace else f"--shape {traffic.shape}",
                    ms=1000.0 * first_s,
                    share=first_s / target.limit_s,
                    target=target.words,
                )
    return None


def _basis(run: MeasuredRun | None) -> str:
    code = "law" if run is None else "run" if run.requests else "one-run"
    return Message(f"serving.basis-{code}", n=(run.requests if run else None) or 0)


def _times_ms(latencies: Latencies, metric: str, kind: str) -> tuple[Estimate, ...]:
    """Return a metric's percentiles, each with how far it may err."""
    return tuple(
        Estimate(low=value / spread, mid=value, high=value * spread, basis=kind)
        for percent, spread in zip(_PERCENTS, SPREAD[kind][metric], strict=True)
        for value in (1000.0 * latencies.percentile(metric, percent),)
    )


def _odds(question: Question, limit: CopyLimit, latencies: Latencies, rate: float) -> float:
    """Return how likely the least likely target is kept; all err together, so it stands for all.

    The true time is taken to be log-normal around the simulated one, with `SPREAD` as 90 %. So is
    what a copy can take, by `RATE_ERRORS`: over that its queue never ends, and no target is kept.
    """
    kind = "measured" if question.measured else "law"
    over, spread = _rate_error(question)
    rooms = [(limit.saturated_rate / rate / over, spread)]
    for target in question.targets:
        at = min(range(len(_PERCENTS)), key=lambda n: abs(_PERCENTS[n] - target.percent))
        room = target.limit_s / latencies.percentile(target.metric, target.percent)
        rooms.append((room, SPREAD[kind][target.metric][at]))
    sigmas = (math.log(room) / math.log(spread) * _SIGMAS_OF_90 for room, spread in rooms)
    return NormalDist().cdf(min(sigmas)) if question.targets or question.batch else 1.0


def _expected(question: Question, limit: CopyLimit) -> CopyLimit:
    """Return what a copy can take; of a batch, which keeps it full, what is expected of it."""
    full = limit.saturated_rate / _rate_error(question)[0]
    rate = limit.rate if question.batch is None else min(limit.rate, full)
    return structs.replace(limit, rate=rate)


def _rate_error(question: Question) -> tuple[float, float]:
    """Return the errors of what a full copy answers: predicted over true, the factor of 90 %."""
    unmeasured = "mixture" if question.model.is_mixture else "law"
    return RATE_ERRORS["measured" if question.measured else unmeasured]


def usd_per_million(usd_per_hour: Decimal, tokens_per_s: float) -> Decimal:
    """Return dollars of a million tokens at so many a second."""
    return usd_per_hour * _MILLION / (Decimal(str(tokens_per_s)) * _HOUR_S)


def _weak(
    question: Question, offer: Offer, layout: Layout, limit: CopyLimit, copy_rate: float
) -> Iterable[str]:
    gpu = find(layout.gpu)
    unmeasured = question.measured is None or question.measured.saturated
    if unmeasured and any(t.metric == "ttft" for t in question.targets):
        yield Message("serving.weak-ttft")
    if offer.is_community:
        yield Message("serving.weak-community")
    if layout.tensor_parallel > 1 and not layout.nvlink:
        yield Message("serving.weak-pcie")
    if gpu is not None and gpu.vendor != "NVIDIA":
        yield Message("serving.weak-vendor")
    if question.model.weak:
        yield Message("serving.weak-shape")
    tail_rate = MOST_OF_SATURATION * MOST_OF_SATURATION * limit.saturated_rate
    if question.targets and copy_rate > tail_rate:
        yield Message("serving.weak-tail")
