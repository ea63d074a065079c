"""`gpucost serve`: which GPU, how many copies and what a token costs, under a latency target."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from msgspec import Struct, structs

from gpucost.arguments.command_group import DefaultGroup
from gpucost.arguments.parameters import options, today
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import (
    Output,
    Table,
    language_option,
    output_options,
    print_if_json,
    print_prose,
    print_table,
)
from planner.models.estimate import Estimate
from planner.profile.model import Profile
from planner.serving.fit import (
    CopiesAnswer,
    ServingCurve,
    ServingFit,
    copies_answer,
    curve,
    fit_run,
    too_little,
)
from planner.serving.language_model import WEIGHT_BYTES, LanguageModel, model_like, model_named
from planner.serving.load import METRICS, Target
from planner.serving.measured_service import CHAT_TARGETS
from planner.serving.search import (
    SOUND_ODDS,
    Layout,
    Question,
    ServingOption,
    ServingPlan,
    TokenOffer,
    search,
)
from planner.serving.traffic import SHAPES, Traffic, check_traffic
from pricing.catalog.catalog import unknown_names
from pricing.catalog.offer import Offer
from pricing.catalog.regions import placed
from pricing.errors import InputError
from pricing.hardware import is_socketed, matching
from pricing.message import Message, join
from pricing.money import show, whole_dollars
from templates.language.translate import translate_text

_NOT_MODELLED = ("disaggregated", "speculative-decoding", "lora", "expert-parallel")
_WEIGHTS = {"type": click.Choice(tuple(WEIGHT_BYTES))}
_CERTAIN = 0.995  # shown as 100 %
_SUREST = 0.99  # the odds rest on 36 published runs, which tell no more
_YEAR_S = 365 * 86_400  # of a batch without a deadline: one machine is enough
_TARGETS = tuple((metric, percent) for metric in METRICS for percent in (50, 95, 99))
Command = Callable[..., Any]


_LIMITS = " ".join(f"{metric}-p{percent}" for metric, percent in _TARGETS)
_MODEL = "model params layers kv-heads head-dim prompt answer shape cache-hit"
_SHAPE = {"type": click.Choice(tuple(SHAPES))}


def _targets(typed: dict[str, Any]) -> tuple[Target, ...]:
    """Take the limits out of a command's options."""
    return tuple(
        Target(metric=metric, percent=float(percent), limit_s=limit)
        for metric, percent in _TARGETS
        if (limit := typed.pop(f"{metric}_p{percent}")) is not None
    )


def _model(typed: dict[str, Any]) -> LanguageModel:
    if typed["params"] is not None:
        sizes = {key: typed[key] for key in ("layers", "kv_heads", "head_dim")}
        return model_like(typed["params"], name=typed["model"] or "", **sizes)
    if typed["model"] is None:
        raise InputError(Message("serving.say-model"))
    return model_named(typed["model"])


def _traffic(
    typed: dict[str, Any], model: LanguageModel, rate: float, trace: str | None = None
) -> Traffic:
    rows = _read_trace(trace) if trace else ()
    prompt, output = typed["prompt"], typed["answer"]
    if rows:
        prompt, output = (sum(row[column] for row in rows) / len(rows) for column in (1, 2))
        rate = rate or len(rows) / max(rows[-1][0], 1.0)
    if not (rate > 0 and prompt >= 1 and output >= 1):
        raise InputError(Message("serving.say-rate"))
    longest = None if model.context is None else model.context - round(output)
    if longest is not None and prompt > longest:
        window = {"tokens": prompt + output, "window": model.context or 0}
        raise InputError(Message("serving.too-long", model=model.name, **window))
    return Traffic(
        rate=rate,
        prompt=prompt,
        output=output,
        shape=typed["shape"],
        cached_fraction=min(typed["cache_hit"], 1.0),
        longest=longest,
        trace=rows,
    )


_TRACE_COLUMNS = (
    ("arrival", "timestamp", "arrival_s", "time"),
    ("prompt", "contexttokens", "prompt_tokens", "input_tokens"),
    ("output", "generatedtokens", "output_tokens"),
)


def _read_trace(path: str) -> tuple[tuple[float, int, int], ...]:
    """Return arrivals [s from the first] with their tokens, of a CSV such as Azure's traces.

    Raises:
        InputError: it cannot be read, or a column is missing.
    """
    try:
        lines = csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines())
        rows = [{str(name).lower(): cell for name, cell in row.items()} for row in lines]
        named = [[n for n in names if rows and n in rows[0]] for names in _TRACE_COLUMNS]
        if not all(named):
            needed = ", ".join(names[0] for names in _TRACE_COLUMNS)
            raise InputError(f"{path}: needs the columns {needed}.")
        when, prompt, output = (names[0] for names in named)
        cells = sorted((_instant(row[when]), int(row[prompt]), int(row[output])) for row in rows)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: {error}.") from error
    return tuple((arrival_s - cells[0][0], n_in, n_out) for arrival_s, n_in, n_out in cells)


def _instant(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text[:26]).timestamp()


def _offers(typed: dict[str, Any], day: date, say: Callable[[str], None]) -> Iterable[Offer]:
    """Yield the offers that may be rented and that the typed let in."""
    named = {gpu.name for name in typed["gpu_names"] for gpu in matching(name)}
    providers, offers = typed["providers"], load_catalog(day, say=say).offers
    if problems := unknown_names("--provider", providers, {offer.provider for offer in offers}):
        raise InputError(problems)
    for offer in offers:
        if (
            offer.purchase == typed["purchase"]
            and (offer.provider in providers if providers else offer.host == "provider")
            and (offer.gpu in named if named else _is_usual(offer))
            and offer.not_for_rent_reason(day) is None
            and (offer_there := placed(offer, typed["regions"])) is not None
        ):
            yield offer_there


def _is_usual(offer: Offer) -> bool:
    return offer.vendor == "NVIDIA" and offer.cpu_architecture == "x86_64"


_PLAN_EXAMPLE = "gpucost serve plan --model llama-3.1-8b --rate 20 --ttft-p99 500ms --tpot-p99 50ms"


@click.group(
    name="serve", cls=DefaultGroup, default_for=lambda _: "plan", epilog=f"Example: {_PLAN_EXAMPLE}"
)
def command() -> None:
    """Plan servers of language models: which GPU, how many copies, what a token costs."""


@command.command(name="plan", listed="serve plan", epilog=f"Example: {_PLAN_EXAMPLE}")
@options(
    f"{_MODEL} rate requests deadline.serve budget.serve request-log peak {_LIMITS} weights spare "
    "gpu.serve provider region.serve purchase measured.serve measured-on with tokens as-of",
    shape=_SHAPE,
    weights=_WEIGHTS,
    **{"with": {"type": click.Choice(_NOT_MODELLED)}},
)
@output_options
@language_option
@refreshing_prices
def plan(output: Output, as_of: date | None, **typed: Any) -> None:
    """Find the cheapest GPUs and copies that keep latency targets, and the price of a token."""
    day, targets, measured = as_of or today(), _targets(typed), typed["measured"]
    if typed["features"] and not measured:
        features = ", ".join(typed["features"])
        raise InputError(Message("serving.not-modelled", features=features))
    _check_shown(typed["features"], measured)
    batch = typed["requests"]
    if typed["deadline"] and not batch:
        raise InputError("--deadline is of a batch: add --requests N.")
    if batch and typed["rate"]:
        raise InputError("--rate is of a service and --requests of a batch: give one of them.")
    if not (targets or batch):
        targets = CHAT_TARGETS
        output.say(_text("chat-assumed"))
    on = typed | {"gpu": typed["measured_on"]}
    run = _anchor(_measured(measured, on), targets) if measured else None
    rate = batch / float(typed["deadline"] or _YEAR_S) if batch else typed["rate"]
    model = _model(typed) if run is None or typed["model"] else run.model
    question = Question(
        model=model,
        traffic=_traffic(typed, model, rate, None if batch else typed["trace"]),
        targets=targets,
        batch=batch,
        budget_usd=typed["budget"],
        precisions=typed["precisions"],
        spare=typed["spare"],
        peak=typed["peak"] or 1.0,
        measured=run.measured if run else None,
        measured_on=run.measured_on if run else None,
    )
    if typed["peak"] is None and not batch:
        check_traffic(question.traffic)
    answer = search(question, _offers(typed, day, output.say), day)
    if typed["tokens"] and not batch:
        from gpucost.prices.token_prices import token_offers  # noqa: PLC0415 - few plans ask

        answer = structs.replace(answer, tokens=token_offers(answer))
    if not typed["providers"]:
        output.say(_text("no-community"))
    print_answer(answer, output)


_SIGNS = {  # of a feature, in what a server or a benchmark of it writes
    "lora": r"lora",
    "speculative-decoding": r"spec_decode|accept_length\W+\d",
    "expert-parallel": r"expert.parallel|ep_size",
    "disaggregated": r"disagg|kv_transfer",
}


def _check_shown(features: Sequence[str], measured: Sequence[str]) -> None:
    """Refuse a run of which no file shows the features that it shall stand for."""
    texts = [Path(name).read_text("utf-8", "replace") for name in measured if Path(name).is_file()]
    for feature in features if texts else ():
        if not any(re.search(_SIGNS[feature], text, re.IGNORECASE) for text in texts):
            raise InputError(
                Message("serving.not-shown", feature=feature, files=", ".join(measured))
            )


def _anchor(profile: Profile, targets: tuple[Target, ...]) -> Question:
    """Return what was asked of the copy that was measured."""
    question = fit_run(profile, targets)[0].question
    if question.measured is None:
        raise too_little(profile.job.name)
    return question


def _measured(sources: Sequence[str], typed: dict[str, Any]) -> Profile:
    from gpucost.live.sources import measured_profile  # noqa: PLC0415 - few plans are of a copy

    names = ("window", "gpu", "tp", "model", "params")
    return measured_profile(sources, **{name: typed[name] for name in names if name in typed})


_FIT_EXAMPLE = "gpucost serve fit before.prom after.prom --window 10m --gpu H100-SXM-80GB"


@command.command(name="fit", epilog=f"Example: {_FIT_EXAMPLE}")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@options("window gpu.copy tp model params")
@output_options
@language_option
def fit(sources: tuple[str, ...], output: Output, **typed: Any) -> None:
    """Check a measured run of a copy, and show what it says.

    SOURCE is two scrapes of a /metrics page (vLLM, SGLang, TGI, Triton), its URL, the result of a
    benchmark (vllm bench, sglang bench_serving), or a profile.
    """
    print_answer(fit_run(_measured(sources, typed))[1], output)


_COPIES_EXAMPLE = "gpucost serve copies profile.json --copies 8 --ttft-p99 500ms --tpot-p99 50ms"


@command.command(name="copies", epilog=f"Example: {_COPIES_EXAMPLE}")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@options(f"metrics.serve window copies rate spare gpu.copy tp price.copy model params {_LIMITS}")
@output_options
@language_option
def copies(sources: tuple[str, ...], output: Output, **typed: Any) -> None:
    """Find how many copies of a running server are enough."""
    places = (*sources, *typed["metrics"])
    if not places:
        raise InputError(Message("serving.say-run"))
    numbers = {"copies": typed["copies"], "spare": typed["spare"], "rate": typed["rate"] or None}
    profile, price = _measured(places, typed), typed["price"]
    if price is None:
        price = _listed_price(profile, output.say)
    answer = copies_answer(profile, _targets(typed), usd_per_hour=price, **numbers)
    print_answer(answer, output)


def _listed_price(profile: Profile, say: Callable[[str], None]) -> Decimal | None:
    """Return the list price of the machine that a copy runs on; None where that is not known."""
    from planner.choice.baseline import find_today  # noqa: PLC0415 - heavy, only for this
    from planner.choice.requirements import Requirements  # noqa: PLC0415 - the same

    try:
        offer = find_today(profile, load_catalog(today(), say=say).at(today()), Requirements())[0]
    except InputError:
        return None
    if offer is not None:
        usd = show(offer.usd_per_hour)
        say(translate_text(Message("note.price-list", machine=offer.name, usd=usd)))
    return None if offer is None else offer.usd_per_hour


@command.command(
    name="curve", epilog="Example: gpucost serve curve --model llama-3.1-8b --gpu L40S --price 1.90"
)
@options(
    f"{_MODEL} gpu.copy tp weights.curve nvlink price.copy",
    shape=_SHAPE,
    weights=_WEIGHTS,
    nvlink={"default": None},
)
@output_options
@language_option
def curve_(output: Output, **typed: Any) -> None:
    """Show the latency and the price of a token of one copy from idle to full."""
    model, ranks, price = _model(typed), typed["tp"], typed["price"]
    if typed["gpu"] is None:
        raise InputError("say which GPU: --gpu H100-SXM-80GB.")
    precision = typed["precision"] or model.native_precision
    gpu = _card(typed["gpu"], output.say)
    linked = is_socketed(gpu) if typed["nvlink"] is None else typed["nvlink"]
    layout = Layout(gpu, ranks, precision, linked and ranks > 1)
    question = Question(model=model, traffic=_traffic(typed, model, 1.0), targets=())
    print_answer(curve(question, layout, price), output)


def _card(name: str, say: Callable[[str], None]) -> str:
    """Return the card that a name means: of several the one on NVLink's socket, and say so."""
    cards = [gpu.name for gpu in matching(name)]
    card = min(cards, key=lambda gpu: not is_socketed(gpu))
    if len(cards) > 1:
        several = {"name": name, "card": card, "cards": ", ".join(cards)}
        say(translate_text(Message("note.card-of-several", **several)))
    return card


ServingAnswer = ServingPlan | ServingFit | CopiesAnswer | ServingCurve
_ROWS = 17  # of a screen of 24 lines, without heads and messages: those of prose and of options
_FEWEST_ROWS = 3
_COLUMNS = ("where", "gpu", "copies", "most", "ttft", "tpot", "odds", "month", "token", "full")
_BATCH_COLUMNS = ("where", "gpu", "copies", "hours", "batch", "token")
_PERCENTS = (50, 95, 99)
_WHOLE_WEIGHTS = frozenset({"bf16", "fp16"})
_LITTLE_USED = 0.8  # of a copy is idle: then tokens by the piece are worth a look


def print_answer(answer: ServingAnswer, output: Output) -> None:
    """Print an answer as `output.format` asks."""
    if not print_if_json(answer, output):
        _PRINTERS[type(answer)](answer, output)


def _text(code: str, answer: Struct | None = None, **params: str | float) -> str:
    """Return a sentence; its words are the fields of an answer, and what else is given."""
    fields = structs.asdict(answer) if answer is not None else {}
    return translate_text(Message(f"serving.{code}", **fields | params))


def _gpus(layout: Layout) -> str:
    return f"{layout.tensor_parallel}x {layout.gpu}" if layout.tensor_parallel > 1 else layout.gpu


def _range(estimate: Estimate) -> str:
    return f"{estimate.mid:,.0f} ({estimate.low:,.0f}-{estimate.high:,.0f})"


def _print_plan(answer: ServingPlan, output: Output) -> None:
    """Print the options, what they rest on, and the tokens of an API beside them."""
    best, is_batch = answer.options[0], answer.options[0].batch_usd is not None
    say = print_prose if output.format == "table" else output.say
    lines = [say(text) or 0 for text in _plan_prose(answer, best, is_batch=is_batch)]
    shown = max(_FEWEST_ROWS, _ROWS - sum(lines)) if any(lines) else len(answer.options)
    print_table(_options_table(answer, shown, is_batch=is_batch), output)


def _plan_prose(answer: ServingPlan, best: ServingOption, *, is_batch: bool) -> Iterator[str]:
    """Yield the paragraphs of a plan: what to rent, its cost, how sure that is, what to do."""
    yield _text("title-batch" if is_batch else "title", answer)
    if answer.tokens and answer.tokens[0].usd_per_month < best.usd:
        yield _token_text("tokens-buy", answer)
    usd = {"usd": show(best.usd), "where": best.offer.name, "gpu": _gpus(best.layout)}
    code = "answer-batch" if is_batch else "answer-tight" if best.tight else "answer"
    for line in (code, "cost", "load") if code == "answer" else (code,):
        yield _text(line, best, stopped=best.limit.stopped_by, **usd)
    if why := next((option.tight for option in answer.options if option.tight), None):
        yield _text("tight", why=why)
    if sure := _how_sure(best):
        yield sure
    risky = min(answer.options, key=lambda option: option.usd)
    if risky.is_risky:
        cheaper = {"usd": show(risky.usd), "where": risky.offer.name, "gpu": _gpus(risky.layout)}
        code = "none-sound" if best.is_risky else "risky"
        yield _text(code, risky, least=SOUND_ODDS, **cheaper)
    weak = _text("weak", weak=join(best.weak)) if best.weak else ""
    yield f"{_text('basis', best, layouts=answer.layouts)} {weak}".rstrip()
    if advice := " ".join(_advice(answer, best, is_batch=is_batch)):
        yield advice


def _advice(answer: ServingPlan, best: ServingOption, *, is_batch: bool) -> Iterator[str]:
    """Yield what may cost less, or what one copy lacks."""
    if not is_batch and best.copies + best.spare == 1:
        yield _text("alone")
    if best.layout.tensor_parallel > 1 and best.layout.precision in _WHOLE_WEIGHTS:
        yield _text("half-weights")
    if answer.tokens and answer.tokens[0].usd_per_month >= best.usd:
        yield _token_text("tokens", answer)
    elif not answer.tokens and not is_batch and best.headroom_fraction > _LITTLE_USED:
        yield _text("little-used", used=1.0 - best.headroom_fraction)


def _how_sure(best: ServingOption) -> str:
    """Return the odds of the cheapest option; empty where none are known, or a batch has time."""
    odds, is_batch = best.odds_fraction, best.batch_usd is not None
    if odds is None or (is_batch and odds > _CERTAIN):
        return ""
    is_measured = best.tpot_ms[0].basis == "measured"
    return _text("odds-batch" if is_batch else "odds-measured" if is_measured else "odds", best)


def _options_table(answer: ServingPlan, shown: int, *, is_batch: bool) -> Table:
    """Return what each option costs, and when its requests are answered."""
    percents = {metric: _asked_percent(metric, answer) for metric in ("ttft", "tpot")}
    rows = [_cells(option, percents) for option in answer.options[:shown]]
    columns = _BATCH_COLUMNS if is_batch else _COLUMNS
    titles = {name: _text(f"column-{name}", None, **percents) for name in columns}
    return Table(
        columns=tuple(titles.values()),
        rows=tuple(tuple(row[name] for name in columns) for row in rows),
        right=frozenset(tuple(titles.values())[2:]),
        spare=tuple(titles[name] for name in ("full", "most", "gpu", "token") if name in titles),
    )


def _cells(option: ServingOption, percents: Mapping[str, int]) -> dict[str, str]:
    """Return what is shown of an option, with the percentiles that are asked of its latencies."""
    usd = f"${whole_dollars(option.usd)}"
    return {
        "where": f"{option.machines}x {option.offer.name}",
        "gpu": _gpus(option.layout),
        "copies": f"{option.copies}+{option.spare}" if option.spare else f"{option.copies}",
        "most": f"{option.limit.rate:.3g}/s",
        "ttft": _range(option.ttft_ms[_PERCENTS.index(percents["ttft"])]),
        "tpot": _range(option.tpot_ms[_PERCENTS.index(percents["tpot"])]),
        "odds": "-" if option.odds_fraction is None else f"{option.odds_fraction:.0%}",
        "hours": "-" if option.batch_hours is None else f"{option.batch_hours:.1f}",
        "month": usd,
        "batch": usd,
        "token": f"${show(option.usd_per_million_output)}",
        "full": f"${show(option.usd_per_million_output_full)}",
    }


def _token_text(code: str, answer: ServingPlan) -> str:
    """Return what an API's tokens cost beside the cheapest option, and from which rate on not."""
    tokens, usd = answer.tokens[0], show(answer.options[0].usd)
    bought = _text(code, tokens, month=show(tokens.usd_per_month), usd=usd)
    return f"{bought} {_break_even(tokens.break_even_rate)}{_second_reading(tokens)}"


def _break_even(rate: Decimal | None) -> str:
    return _text("host-never") if rate is None else _text("host-from", break_even_rate=float(rate))


def _second_reading(tokens: TokenOffer) -> str:
    """Return what a second reading of the price says; empty where there is none."""
    month, source = tokens.second_usd_per_month, tokens.second_source
    if month is None or source is None:
        return ""
    if round(month, 2) == round(tokens.usd_per_month, 2):
        return " " + _text("tokens-agree", source=source)
    even = _break_even(tokens.second_break_even_rate)
    return f" {_text('tokens-differ', source=source, month=show(month), even=even)}"


def _asked_percent(metric: str, answer: ServingPlan) -> int:
    """Return the percentile that a target is of; the 99th where none is."""
    stated = (re.match(rf"{metric.upper()} p(\d+) ", target) for target in answer.targets)
    return next((int(match[1]) for match in stated if match), _PERCENTS[-1])


def _print_fit(answer: ServingFit, output: Output) -> None:
    medians = (answer.ttft_p50_ms, answer.tpot_p50_ms)
    times = (
        f"p50 {median:.3g} ms" if median else _text("mean", ms=mean) if mean else "-"
        for median, mean in zip(medians, (answer.ttft_mean_ms, answer.tpot_mean_ms), strict=True)
    )
    running = "-" if answer.requests_running is None else f"{answer.requests_running:.3g}"
    rows = (
        ("model", answer.model),
        ("gpu", f"{_gpus(answer.layout)}, {answer.layout.precision}"),
        ("rate", f"{answer.rate:.3g}/s, {answer.prompt_tokens:.0f} + {answer.output_tokens:.0f}"),
        ("times", ", ".join(times)),
        ("running", f"{running}, {answer.expected_running:.3g}"),
        ("steps", f"{answer.step_factor:.2f}"),
        ("load", f"{answer.load_fraction:.0%}, {answer.saturated_rate:.3g}/s"),
    )
    table = tuple((_text(f"fit-{name}"), value) for name, value in rows)
    print_table(Table(columns=("", _text("fit-value")), rows=table), output)
    for note in answer.notes:
        output.say(f"note: {translate_text(note)}")


def _print_copies(answer: CopiesAnswer, output: Output) -> None:
    more = answer.copies - answer.spare > answer.copies_now
    code = "copies-overloaded" if answer.fit is None else "copies-more" if more else "copies"
    sentence = _text(code, answer)
    if answer.usd_per_month is not None and answer.usd_per_month_now is not None:
        month, now = show(answer.usd_per_month), show(answer.usd_per_month_now)
        sentence += " " + _text("copies-usd", month=month, now=now)
    sentence += " " + _copies_odds(answer)
    is_mean = answer.fit is not None and answer.rate == answer.fit.rate * answer.copies_now
    if is_mean and answer.copies < answer.copies_now:
        sentence += " " + _text("copies-mean", answer, capacity=answer.copies * answer.copy_rate)
    if answer.copies == 1:
        sentence += " " + _text("alone")
    (print_prose if output.format == "table" else output.insist)(sentence)
    if answer.fit is not None:
        _print_fit(answer.fit, output)


def _copies_odds(answer: CopiesAnswer) -> str:
    """Return the odds of the copies and what raises low ones, or why there are none."""
    if answer.fit is None or answer.odds_fraction is None:
        return _text("copies-no-odds" if answer.fit is None else "copies-shown")
    odds = _text(
        "copies-odds", likely=min(_SUREST, answer.odds_fraction), load=answer.fit.load_fraction
    )
    if answer.safer_copies:
        return f"{odds} {_text('copies-safer', answer, least=SOUND_ODDS)}"
    return odds


def _print_curve(answer: ServingCurve, output: Output) -> None:
    columns = ("requests/s", "running", "TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "$/1M out")
    rows = []
    for point in answer.points:
        times = (f"{ms:,.0f} ms" for ms in (*point.ttft_ms[::2], *point.tpot_ms[::2]))
        usd = point.usd_per_million_output
        dollars = () if usd is None else (f"{usd:.2f}",)
        rows.append((f"{point.rate:.3g}", f"{point.requests_running:.0f}", *times, *dollars))
    title, shown = _text("curve", answer, gpu=_gpus(answer.layout)), columns[: len(rows[0])]
    right = frozenset(shown)
    print_table(Table(columns=shown, rows=tuple(rows), right=right, title=title), output)


_PRINTERS: dict[type, Callable[..., None]] = {
    ServingPlan: _print_plan,
    ServingFit: _print_fit,
    CopiesAnswer: _print_copies,
    ServingCurve: _print_curve,
}
