"""A measured service of a language model: how much one copy can take, here and on other GPUs.

The load of a copy is its rate over the most it can take under the targets, never kernel time: a
server runs kernels all the time while one request is in it.
"""

import math
from collections.abc import Sequence

from msgspec import Struct, structs

from planner.models.gpu_speed import serves_language_model
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.profile.trials import Latency, Serving
from planner.serving.anchor import MeasuredRun
from planner.serving.language_model import WEIGHT_BYTES, LanguageModel, model_like, model_named
from planner.serving.load import CopyLimit, Target, copy_limit, fits, served
from planner.serving.search import Layout, Question, copy_of, is_linked
from planner.serving.simulation import Latencies
from planner.serving.traffic import Traffic
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.hardware import Gpu, is_socketed
from pricing.message import Message, join

CHAT_TARGETS = (
    Target(metric="ttft", percent=99.0, limit_s=0.5),
    Target(metric="tpot", percent=99.0, limit_s=0.03),
)
"""Limits of llama3.1-8b Interactive in MLPerf Inference v5.1 (mlcommons/inference
loadgen/mlperf.conf @001712e9), where no target is stated."""
_SLOWER = 1.2  # than today, without being asked: the contract's wall time
_LITTLE = 0.2
_SIGMAS = 2.0  # of a count: as far as an instant reading strays in 19 of 20
_IN_LINE = 0.2  # of the time of a request; less waiting is that of prefills, ours
_COUNT = 400
_FULL = 0.9  # of the cache, in a batch that is full
_CHAT = Traffic(rate=1.0, prompt=222.3, output=218.9)  # MLPerf's llama2-70b set, where not measured
_WEIGHTS_OF_MEMORY = 0.7  # where nothing says how large the model is: a large one, so few requests
_PRECISIONS = {"fp8": "fp8", "int8": "int8", "int4": "int4", "fp4": "fp4"}


class MeasuredService(Struct, frozen=True, kw_only=True):
    """A service as it was measured, one copy of it.

    Attributes:
        question: its model, traffic, targets and the run that anchors it.
        layout: where it was measured.
        rate: requests a second that the copy answered.
        percent: percentile of the measured latency.
        measured_over_simulated: measured latency [ms] over a whole simulated request [s]; None
            where latency was not measured.
        unbroken: where the run did not break the targets, that in words: then the copy takes its
            rate at least, whatever the law says; None where it did.
    """

    question: Question
    layout: Layout
    rate: float
    percent: float = 99.0
    measured_over_simulated: float | None = None
    unbroken: str | None = None

    def layout_on(self, offer: Offer, gpus: int) -> Layout:
        """Return the layout of a copy on GPUs of an offer."""
        return Layout(offer.gpu, gpus, self.layout.precision, gpus > 1 and is_linked(offer))

    def limit_on(self, layout: Layout) -> CopyLimit | None:
        """Return the most that a copy takes there; None where that cannot be said."""
        copy, traffic = copy_of(self.question, layout), self.question.traffic
        if copy is None:
            return None
        if not fits(copy, traffic):
            return CopyLimit(rate=0.0, saturated_rate=0.0, stopped_by="memory")
        limit = copy_limit(copy, traffic, self.question.targets, _COUNT)
        if self.unbroken and layout == self.layout and limit.rate < self.rate:
            return structs.replace(limit, rate=self.rate, stopped_by=self.unbroken, lowest_s=None)
        return limit

    def latency_ms(self, layout: Layout, rate: float) -> float | None:
        """Return the latency of a copy there at a rate; None where none was measured."""
        copy = copy_of(self.question, layout)
        if copy is None or self.measured_over_simulated is None:
            return None
        latencies = served(copy, self.question.traffic, rate, _COUNT)
        return latencies.percentile("e2e", self.percent) * self.measured_over_simulated


def measured_service(
    profile: Profile, assumed: list[str], override: tuple[Target, ...] = ()
) -> MeasuredService | None:
    """Return the service of a profile; None for other jobs, and where too little is measured.

    A copy for which requests wait all the time is saturated: its times are those of its queue.
    What is not measured follows from what is: a rate from requests running and their time
    (Little's law), lengths from tokens a second, the model from its name or its parameters;
    `assumed` takes what is said of it. Targets in `override` go before the profile's.
    """
    job, serving = profile.job, profile.job.serving
    if serving is None or not job.kind.answers or not serves_language_model(profile):
        return None
    if overload(profile):
        return None
    notes: list[str] = []
    token_s = _seconds(serving.token_ms)
    rate, traffic = _traffic(profile, serving, token_s, notes)
    if rate is None:
        return None
    question = _question(profile, source_gpu(profile), traffic, token_s, notes)
    layout = question.measured_on
    if layout is None:
        return None
    copy = copy_of(question, layout)
    if copy is None or not fits(copy, traffic):
        return None
    today = served(copy, traffic, rate, _COUNT)
    percent = ((job.latency_ms and job.latency_ms.strictest) or (99.0,))[0]
    ratio = job.worst_latency_ms and job.worst_latency_ms / today.percentile("e2e", percent)
    if override or serving.all_at_once:
        targets = override or CHAT_TARGETS
    elif job.latency_slo_ms is None:
        targets = _default_targets(serving, today, notes)
    elif ratio is None and _is_of_first_token(job.latency_slo_ms, serving, today):
        targets = _first_token_target(job.latency_slo_ms, serving, today, notes)
    else:
        # Of a whole simulated request. Whatever part of it was measured changes as all of it does:
        # the target stands as far above what the simulation sees as above what was measured.
        slo_ms, limit_s = job.latency_slo_ms, job.latency_slo_ms / (ratio or 1000.0)
        targets = (Target(metric="e2e", percent=percent, limit_s=limit_s, stated_ms=slo_ms),)
    assumed.extend(Message("note.about", job=job.name, note=note) for note in notes)
    return MeasuredService(
        question=structs.replace(question, targets=targets),
        layout=layout,
        rate=rate,
        percent=percent,
        measured_over_simulated=ratio,
        unbroken=None if serving.all_at_once else _unbroken(profile, serving, targets),
    )


def fuller_batch(profile: Profile, gpu: str | None = None) -> float | None:
    """Return how much more a batch job does with as many requests at a time as its cache holds.

    By the law of a step, of requests as long as those that ran; None where it cannot be said, and
    for what answers requests as they come.

    Args:
        profile: of the job.
        gpu: on which it would run; None: as today.
    """
    serving = profile.job.serving
    if profile.job.kind != "inference_offline" or serving is None or not serving.requests_running:
        return None
    running, filled = serving.requests_running, serving.kv_cache_fraction
    generated, read = serving.generated_tokens_per_s, serving.prompt_tokens_per_s or 0.0
    if filled is None or not generated or not serves_language_model(profile):
        return None
    question = _question(profile, source_gpu(profile), _CHAT, None, [])
    layout = question.measured_on
    today = copy_of(question, layout) if layout else None
    copy = copy_of(question, structs.replace(layout, gpu=gpu)) if layout and gpu else today
    if today is None or copy is None or min(today.kv_tokens, copy.kv_tokens) <= 0.0:
        return None
    context = max(1.0, filled * today.kv_tokens / running)  # tokens of one of them
    fuller = max(running, min(copy.max_sequences, _FULL * copy.kv_tokens / context))
    few_s, many_s = (
        copy.step_s(batch, context * batch, batch * read / generated) for batch in (running, fuller)
    )
    return fuller / running * few_s / many_s


def by_chance(running: float, expected: float) -> bool:
    """Return whether requests seen running may be an instant of so many in the mean (Poisson)."""
    return abs(running - expected) <= _SIGMAS * math.sqrt(max(expected, 1.0))


def overload(profile: Profile) -> str | None:
    """Return that a language model's server has more requests than it takes; None where not.

    A target that is kept says that it has not. Else requests wait for a part of their time. A batch
    is not overloaded: two copies take half the time for the same dollars.
    """
    serving = profile.job.serving
    if serving is None or not serving.makes_tokens or profile.job.kind.has_fixed_work:
        return None
    is_kept = profile.job.misses_target is False
    waiting = serving.requests_waiting or 0.0
    if is_kept or waiting < max(1.0, _IN_LINE * (waiting + (serving.requests_running or 0.0))):
        return None
    preempted = serving.preemptions_per_s or 0.0
    code = "serving.queue-preempts" if preempted else "serving.queue"
    return Message(code, waiting=waiting, kv=serving.kv_cache_fraction or 0.0, preempted=preempted)


def _unbroken(profile: Profile, serving: Serving, targets: Sequence[Target]) -> str | None:
    """Return that the run kept its targets, or that its histograms cannot tell; None: it did not.

    Of each the measured percentile, or a stricter one, is held against the limit.
    """
    text: str = Message("serving.kept-in-run")
    for target in targets:
        measured = {
            "ttft": serving.first_token_ms,
            "tpot": serving.token_ms,
            "e2e": profile.job.latency_ms,
        }[target.metric]
        value = _percentile(measured, target.percent)
        if measured is None or value is None:
            return None
        limit_ms = target.stated_ms if target.stated_ms is not None else 1000.0 * target.limit_s
        low, high = measured.bucket(value)
        if low > limit_ms or low == limit_ms < high:
            return None
        if high > limit_ms:
            text = Message("serving.bucket-in-run", target=target.words, low=low, high=high)
    return text


def _percentile(measured: Latency | None, percent: float) -> float | None:
    """Return the measured percentile, or the next stricter one; None where there is none."""
    if measured is None:
        return None
    pairs = ((50, measured.p50), (95, measured.p95), (99, measured.p99))
    return next((value for at, value in pairs if value and at >= percent), None)


def _question(
    profile: Profile, gpu: Gpu, traffic: Traffic, token_s: float | None, notes: list[str]
) -> Question:
    """Return what is asked of the copy, without targets yet."""
    job, ranks = profile.job, profile.gpu_count
    linked = profile.hardware.interconnect in {"nvlink", "xgmi"} or is_socketed(gpu.name)
    precision = _PRECISIONS.get(job.precision or "")
    model = _model(profile, gpu, precision, notes)
    precision = precision or (model.native_precision if job.precision is None else "bf16")
    serving = job.serving or Serving()
    times = {"ttft": serving.first_token_ms, "tpot": serving.token_ms}
    window_s = profile.window.duration_s if profile.window else None
    requests = round(traffic.rate * window_s) if window_s else None
    run = token_s and MeasuredRun(
        traffic=traffic,
        first_token_s=None if serving.all_at_once else _seconds(serving.first_token_ms),
        token_s=token_s,
        requests=requests,
        saturated=bool(serving.all_at_once),
        means=frozenset(metric for metric, latency in times.items() if _is_mean(latency)),
    )
    return Question(
        model=model,
        traffic=traffic,
        targets=(),
        measured=run or None,
        measured_on=Layout(gpu.name, ranks, precision, linked and ranks > 1),
    )


def _seconds(latency: Latency | None, *, tail: bool = False) -> float | None:
    if latency is None:
        return None
    values = (latency.p99, latency.p95) if tail else (latency.p50, latency.mean)
    if _is_mean(latency) and not tail:
        values = (latency.mean, None)
    return next((value / 1000.0 for value in values if value), None)


def _is_mean(latency: Latency | None) -> bool:
    """Return whether the mean stands for a latency: buckets tell the median in part only."""
    return latency is not None and bool(latency.mean and (latency.bounds or not latency.p50))


def _traffic(
    profile: Profile, serving: Serving, token_s: float | None, notes: list[str]
) -> tuple[float | None, Traffic]:
    """Return the requests a second of the copy, and their lengths."""
    job, work = profile.job, profile.work
    counted = work is not None and (work.unit or "").lower() == "request"
    rate = job.requests_per_s or (work.rate_per_s if work is not None and counted else None)
    lasts_s = _seconds(job.latency_ms)
    output = _CHAT.output
    if rate and serving.generated_tokens_per_s:
        output = serving.generated_tokens_per_s / rate
    elif token_s and lasts_s and lasts_s > token_s:
        output = lasts_s / token_s
    else:
        notes.append(Message("serving.answers-assumed", n=output))
    if rate is None and serving.requests_running:
        lasts_s = lasts_s or (token_s * output if token_s else None)
        rate = serving.requests_running / lasts_s if lasts_s else None
        if rate is not None:
            running = serving.requests_running
            notes.append(
                Message("serving.rate-by-law", rate=rate, running=running, s=lasts_s or 0.0)
            )
    elif rate and serving.requests_running and token_s:
        expected = rate * (output * token_s + (_seconds(serving.first_token_ms) or 0.0))
        running = serving.requests_running
        if abs(expected / running - 1.0) > _LITTLE:
            code = "gauge" if by_chance(running, expected) else "against-law"
            notes.append(Message(f"serving.{code}", running=running, expected=expected))
    prompt = _CHAT.prompt
    if rate and serving.prompt_tokens_per_s:
        prompt = serving.prompt_tokens_per_s / rate
    else:
        notes.append(Message("serving.prompts-assumed", n=prompt))
    return rate, Traffic(rate=rate or 1.0, prompt=max(1.0, prompt), output=max(1.0, output))


def _model(profile: Profile, gpu: Gpu, precision: str | None, notes: list[str]) -> LanguageModel:
    job = profile.job
    named = job.serving.model if job.serving else None
    if named:
        try:
            return model_named(named)
        except InputError:
            notes.append(Message("serving.shape-unknown", model=named))
    parameters = job.parameters
    if parameters is None:
        room = _WEIGHTS_OF_MEMORY * gpu.memory_gib * profile.gpu_count
        parameters = room * 2**30 / WEIGHT_BYTES.get(precision or "", 2.0)
        notes.append(Message("serving.model-assumed", billions=parameters / 1e9))
    return model_like(parameters)


def _is_of_first_token(slo_ms: float, serving: Serving, today: Latencies) -> bool:
    """Return whether no answer keeps a target today, while the measured first tokens do."""
    first_s = _seconds(serving.first_token_ms, tail=True) or _seconds(serving.first_token_ms)
    return first_s is not None and 1000.0 * first_s <= slo_ms < 1000.0 * today.percentile("e2e", 50)


def _first_token_target(
    slo_ms: float, serving: Serving, today: Latencies, notes: list[str]
) -> tuple[Target, ...]:
    """Return a target that is taken for the first token's, beside the default one of a token."""
    notes.append(Message("serving.slo-first-token", ms=slo_ms, s=today.percentile("e2e", 50)))
    _, token = _default_targets(serving, today, [])
    first = Target(metric="ttft", percent=99.0, limit_s=slo_ms / 1000.0)
    return first, token


def _default_targets(serving: Serving, today: Latencies, notes: list[str]) -> tuple[Target, ...]:
    """Return limits of a chat, each at least a fifth above what is seen today."""
    measured = {"ttft": serving.first_token_ms, "tpot": serving.token_ms}
    targets = []
    for target in CHAT_TARGETS:
        tail_s = _seconds(measured[target.metric], tail=True) or 0.0
        seen_s = max(tail_s, today.percentile(target.metric, target.percent))
        limit_s = max(target.limit_s, _SLOWER * seen_s)
        targets.append(structs.replace(target, limit_s=limit_s))
    stated = join((target.words for target in targets), "and")
    notes.append(Message("serving.targets-assumed", targets=stated))
    return tuple(targets)
