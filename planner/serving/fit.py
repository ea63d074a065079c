"""What a measured run says of a copy, whether to believe it, and how many copies it asks for."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from statistics import fmean

from msgspec import Struct, structs

from planner.profile.model import Profile
from planner.serving.anchor import MeasuredRun, anchored
from planner.serving.language_model import model_named
from planner.serving.load import CopyLimit, Target, copies_for, saturated_rate, served
from planner.serving.measured_service import MeasuredService, by_chance, measured_service, overload
from planner.serving.search import (
    RATE_SPREAD,
    SOUND_ODDS,
    SPREAD,
    Layout,
    Question,
    copy_of,
    idle_time,
    least_copies,
    no_room,
    usd_per_million,
)
from planner.serving.server import Server, runs_in
from planner.serving.traffic import Traffic
from pricing.errors import InputError
from pricing.hardware import find
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH

_HIGHEST_LOAD = 0.85  # of saturation: above, TTFT is that of a queue (x/÷5 in published runs)
_FEWEST_REQUESTS = 200  # from which a p99 says something
_P99 = 99
_LITTLE = 0.2
_LATE, _IDLE = 10.0, 0.6
_OVERLOAD = 1.3  # of saturation: so many arrive that the queue never ends
_FURTHEST = SPREAD["law"]["tpot"][0] ** 2
"""Times of steps over the law's, or under: beyond twice what nine of ten published runs err."""
_CURVE = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95)  # of saturation


class ServingFit(Struct, frozen=True, kw_only=True):
    """What one measured run says of a copy.

    Attributes:
        schema: `gpucost.serving-fit/v1`.
        model: that is served, or the one that is taken for it.
        layout: GPUs of the copy.
        rate: requests a second that it answered.
        prompt_tokens: mean.
        output_tokens: mean.
        ttft_p50_ms: to the first token; None where not measured, or not but in buckets.
        tpot_p50_ms: of a token, likewise.
        ttft_mean_ms: to the first token, where its median is not told.
        tpot_mean_ms: of a token, likewise.
        requests: that the run rests on; None where not known.
        requests_running: in the batch, as measured; None where not.
        expected_running: rate times duration (Little's law).
        step_factor: time of its steps over the law's.
        saturated_rate: requests a second with a batch that is always full.
        load_fraction: rate over that.
        notes: what was assumed.
    """

    schema: str = "gpucost.serving-fit/v1"
    model: str
    layout: Layout
    rate: float
    prompt_tokens: float
    output_tokens: float
    ttft_p50_ms: float | None
    tpot_p50_ms: float | None
    requests: int | None
    requests_running: float | None
    expected_running: float
    step_factor: float
    saturated_rate: float
    load_fraction: float
    notes: tuple[str, ...] = ()
    ttft_mean_ms: float | None = None
    tpot_mean_ms: float | None = None


class CopiesAnswer(Struct, frozen=True, kw_only=True):
    """How many copies of a measured service are enough.

    Attributes:
        schema: `gpucost.serving-copies/v1`.
        copies_now: that run.
        copies: that are enough.
        spare: of them, more than the rate needs.
        rate: requests a second of all copies.
        copy_rate: that one copy takes at most.
        stopped_by: what sets that.
        targets: that are kept.
        usd_per_month_now: of 730 hours; None without a price.
        usd_per_month: of the copies that are enough; None without a price.
        fit: what the run says; None of an overloaded copy.
        odds_fraction: how likely the least likely target is kept without the spare ones, by how
            far the times and what a copy can take err of a copy that was measured once; None of an
            overloaded copy, and where each does no more than in the run that kept the targets.
        safer_copies: that keep them at odds of 80 %, without a spare; None where `copies` do, or
            twice as many do not.
    """

    schema: str = "gpucost.serving-copies/v1"
    copies_now: int
    copies: int
    spare: int
    rate: float
    copy_rate: float
    stopped_by: str
    targets: tuple[str, ...]
    usd_per_month_now: Decimal | None
    usd_per_month: Decimal | None
    fit: ServingFit | None
    odds_fraction: float | None = None
    safer_copies: int | None = None


class CurvePoint(Struct, frozen=True, kw_only=True):
    """One copy at one rate.

    Attributes:
        rate: requests a second.
        ttft_ms: of the first token: p50, p95, p99.
        tpot_ms: of a token, likewise.
        requests_running: in the batch, mean.
        usd_per_million_output: tokens of answers; None without a price.
    """

    rate: float
    ttft_ms: tuple[float, ...]
    tpot_ms: tuple[float, ...]
    requests_running: float
    usd_per_million_output: Decimal | None


class ServingCurve(Struct, frozen=True, kw_only=True):
    """One copy from an idle one to a full one.

    Attributes:
        schema: `gpucost.serving-curve/v1`.
        model: that is served.
        layout: GPUs of the copy.
        saturated_rate: requests a second with a batch that is always full.
        points: by rising rate.
    """

    schema: str = "gpucost.serving-curve/v1"
    model: str
    layout: Layout
    saturated_rate: float
    points: tuple[CurvePoint, ...]


def too_little(name: str) -> InputError:
    """Return the refusal of a run that anchors nothing."""
    return InputError(Message("serving.too-little", name=name))


def fit_run(
    profile: Profile, targets: tuple[Target, ...] = ()
) -> tuple[MeasuredService, ServingFit]:
    """Return the service of a profile and what its run says of a copy.

    Raises:
        InputError: the run cannot be believed as an anchor, and why, all reasons at once.
    """
    serving, job = profile.job.serving, profile.job
    if queue := overload(profile):
        raise InputError(f"{job.name}: {queue}: first tokens wait in line. Measure a lower rate.")
    _check_model(profile)
    notes: list[str] = []
    service = measured_service(profile, notes, targets)
    copy = copy_of(service.question, service.layout) if service else None
    if service is None or copy is None:
        raise too_little(job.name)
    question, run = service.question, service.question.measured
    traffic, running = question.traffic, serving.requests_running if serving else None
    law = copy_of(structs.replace(question, measured=None), service.layout) or copy
    saturated = saturated_rate(copy, traffic)
    times_ms = _times_ms(run) if run else {}
    mean_ms = job.latency_ms.mean if job.latency_ms else None  # as measured, else as simulated
    simulated = served(copy, service.question.traffic, service.rate, 400).request_s
    request_s = mean_ms / 1000.0 if mean_ms else fmean(simulated)
    if run and run.saturated and run.token_s:  # those in line run nothing
        request_s = run.token_s * traffic.output
    fit = ServingFit(
        model=question.model.name,
        layout=service.layout,
        rate=service.rate,
        prompt_tokens=traffic.prompt,
        output_tokens=traffic.output,
        ttft_p50_ms=times_ms.get(("ttft", False)),
        tpot_p50_ms=times_ms.get(("tpot", False)),
        ttft_mean_ms=times_ms.get(("ttft", True)),
        tpot_mean_ms=times_ms.get(("tpot", True)),
        requests=run.requests if run else None,
        requests_running=running,
        expected_running=service.rate * request_s,
        step_factor=anchored(law, run)[1] if run else 1.0,
        saturated_rate=saturated,
        load_fraction=service.rate / saturated,
        notes=(*notes, *([Message("serving.at-once")] if run and run.saturated else ())),
    )
    problems = [*_contradictions(fit, law)]
    problems += [] if run and run.saturated else _problems(profile, fit, law, service)
    problems += _too_few(fit, targets)
    _refuse(profile, problems)
    return service, fit


def _refuse(profile: Profile, problems: Iterable[str]) -> None:
    """Refuse a run for all its problems at once."""
    if named := [f"{profile.job.name}: {problem}" for problem in problems]:
        raise InputError(named)


def _times_ms(run: MeasuredRun) -> dict[tuple[str, bool], float]:
    """Return the times of a run by metric and whether they are means."""
    times = (("ttft", run.first_token_s), ("tpot", run.token_s))
    return {(name, name in run.means): 1000.0 * time_s for name, time_s in times if time_s}


def _check_model(profile: Profile) -> None:
    """Refuse a run of a model that has no size: how full a copy is would be a guess."""
    serving, job = profile.job.serving, profile.job
    if serving is None or job.parameters is not None:
        return
    if not serving.model:
        raise InputError(Message("serving.unnamed-model", name=job.name))
    model_named(serving.model)


def _contradictions(fit: ServingFit, law: Server) -> Iterable[str]:
    """Yield that a run's rate and times are not of one copy, or that no GPU sets its pace."""
    factor, gpus = fit.step_factor, f"{law.tensor_parallel}x {law.gpu}"
    token_ms, full = fit.tpot_p50_ms or fit.tpot_mean_ms or 0.0, fit.saturated_rate
    if fit.load_fraction > RATE_SPREAD:
        yield Message("serving.over-saturation", rate=fit.rate, most=full, ms=token_ms)
    elif (off := max(factor, 1.0 / factor)) > _FURTHEST:
        code = "serving.law-slow" if factor > 1.0 else "serving.law-fast"
        yield Message(code, factor=off, gpus=gpus, most=_FURTHEST)


def _problems(
    profile: Profile,
    fit: ServingFit,
    law: Server,
    service: MeasuredService,
) -> Iterable[str]:
    """Yield why a run says nothing of the GPU."""
    least_ms, token_ms = 1000.0 * law.least_token_s, fit.tpot_p50_ms or fit.tpot_mean_ms
    if token_ms is not None and token_ms < least_ms:
        yield Message("serving.too-fast", gpu=law.gpu, ms=token_ms, least=least_ms)
    latencies = served(law, service.question.traffic, fit.rate, 400)
    first_ms = fit.ttft_mean_ms or fit.ttft_p50_ms or 0.0
    late = first_ms > _LATE * 1000.0 * latencies.percentile("ttft", 50.0)
    calm = fit.rate < saturated_rate(law, service.question.traffic) / 2.0
    if late and calm and (profile.busy_fraction or 0.0) < _IDLE:
        yield Message("serving.api-limit", ms=first_ms)
    elif _HIGHEST_LOAD < fit.load_fraction <= RATE_SPREAD:
        yield Message("serving.near-saturation", rate=fit.rate, load=fit.load_fraction)
    running, expected = fit.requests_running, fit.expected_running
    off = abs(expected / running - 1.0) if running else 0.0
    if running and off > _LITTLE and not by_chance(running, expected):
        yield Message("serving.other-window", running=running, expected=expected)


def _too_few(fit: ServingFit, targets: Sequence[Target]) -> Iterable[str]:
    """Yield that so few requests have no p99, where one is asked for."""
    few = (fit.requests or _FEWEST_REQUESTS) < _FEWEST_REQUESTS
    if few and any(target.percent >= _P99 for target in targets):
        yield Message("serving.noise", n=fit.requests or 0, least=_FEWEST_REQUESTS)


def copies_answer(  # noqa: PLR0913 - what is asked of a service
    profile: Profile,
    targets: tuple[Target, ...],
    *,
    copies: int,
    spare: int,
    usd_per_hour: Decimal | None,
    rate: float | None = None,
) -> CopiesAnswer:
    """Return how many copies are enough for a rate.

    Args:
        profile: of one of the copies.
        targets: to keep; empty: those of the profile.
        copies: that run.
        spare: more than the rate needs.
        usd_per_hour: of a copy.
        rate: requests a second of all copies; None: what they answer today.

    Raises:
        InputError: the run says too little, or no number of copies keeps the targets.
    """
    fit: ServingFit | None = None
    sureness: tuple[float | None, int | None] = None, None
    if queue := overload(profile):  # what a copy takes of fewer requests was not measured
        stopped_by, copy_rate = queue, profile.job.requests_per_s or 0.0
        needed = _one_more(profile, copies, rate)
        rate = rate or copy_rate * copies
    else:
        service, fit = fit_run(profile, targets)
        _refuse(profile, _too_few(fit, service.question.targets))
        targets, rate = service.question.targets, rate or service.rate * copies
        limit = _limit(service, profile.job.name)
        stopped_by, copy_rate = limit.stopped_by, limit.rate
        needed, sureness = _enough(service, limit, rate)
    month = None if usd_per_hour is None else usd_per_hour * HOURS_PER_MONTH
    return CopiesAnswer(
        copies_now=copies,
        copies=needed + spare,
        spare=spare,
        rate=rate,
        copy_rate=copy_rate,
        stopped_by=stopped_by,
        targets=tuple(target.words for target in targets),
        usd_per_month_now=None if month is None else month * copies,
        usd_per_month=None if month is None else month * (needed + spare),
        fit=fit,
        odds_fraction=sureness[0],
        safer_copies=sureness[1],
    )


def _one_more(profile: Profile, copies: int, rate: float | None) -> int:
    """Return one copy more than those that answer a rate with a queue."""
    copy_rate = profile.job.requests_per_s
    if rate and not copy_rate:
        raise too_little(profile.job.name)
    full = rate / copy_rate if rate and copy_rate else copies
    return int(full + 1e-9) + 1


def _enough(
    service: MeasuredService, limit: CopyLimit, rate: float
) -> tuple[int, tuple[float | None, int | None]]:
    """Return how many copies carry a rate, their odds, and how many have odds of 80 %.

    There are no odds where the run itself shows that each copy takes its part.
    """
    needed = copies_for(rate, limit.rate)
    traffic = structs.replace(service.question.traffic, rate=rate)
    question = structs.replace(service.question, traffic=traffic)
    copy = copy_of(question, service.layout)
    if copy is None or limit.stopped_by == service.unbroken:
        return needed, (None, None)
    odds = least_copies(question, copy, limit, (needed,), 0.0).odds
    if odds >= SOUND_ODDS:
        return needed, (odds, None)
    safer = least_copies(question, copy, limit, range(needed + 1, 2 * needed + 1), SOUND_ODDS)
    return needed, (odds, safer.copies if safer.odds >= SOUND_ODDS else None)


def _limit(service: MeasuredService, name: str) -> CopyLimit:
    """Return what a copy takes at most; an error where no number of copies keeps the targets."""
    limit = service.limit_on(service.layout)
    if limit is None or limit.rate <= 0.0:
        reason = idle_time(limit) if limit else Message("serving.the-targets")
        raise InputError(Message("serving.no-copies", name=name, reason=reason))
    return limit


def _most_answered(copy: Server, traffic: Traffic) -> float:
    """Return the requests a second that a full copy ends: less than the law's where memory is full.

    Requests that are thrown out for memory are computed twice, which mean values do not see.
    """
    saturated = saturated_rate(copy, traffic)
    run = served(copy, traffic, _OVERLOAD * saturated)
    lasts_s = run.percentile("tpot", 50) * traffic.output  # the last ones end after the arrivals
    return min(saturated, len(run.request_s) / max(run.span_s - lasts_s, 1e-9))


def curve(question: Question, layout: Layout, usd_per_hour: Decimal | None) -> ServingCurve:
    """Return one copy at rates up to its saturation.

    Raises:
        InputError: the model does not fit, or the GPU's figures are not known.
    """
    copy = copy_of(question, layout)
    gpu = find(layout.gpu)
    if gpu is not None and not runs_in(gpu, layout.precision):
        raise InputError(f"{layout.gpu} has no bfloat16: give --weights fp16, int8 or int4.")
    if copy is None or copy.kv_tokens < 4 * question.traffic.context:
        raise InputError(no_room(question, f"{layout.tensor_parallel}x {layout.gpu}"))
    saturated = _most_answered(copy, question.traffic)
    points = []
    for rate in (share * saturated for share in _CURVE):
        latencies = served(copy, question.traffic, rate)
        ttft, tpot = (
            tuple(1000.0 * latencies.percentile(metric, percent) for percent in (50, 95, 99))
            for metric in ("ttft", "tpot")
        )
        tokens_per_s = rate * question.traffic.output
        usd = None if usd_per_hour is None else usd_per_million(usd_per_hour, tokens_per_s)
        point = CurvePoint(
            rate=rate,
            ttft_ms=ttft,
            tpot_ms=tpot,
            requests_running=latencies.running,
            usd_per_million_output=usd,
        )
        points.append(point)
    return ServingCurve(
        model=question.model.name, layout=layout, saturated_rate=saturated, points=tuple(points)
    )
