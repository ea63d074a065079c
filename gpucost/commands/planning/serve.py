"""`gpucost serve`: which GPU, how many copies and what a token costs, under a latency target."""

import csv
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from gpucost.arguments.command_group import DefaultGroup
from gpucost.arguments.parameters import options, today
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.prices.token_prices import token_offers
from gpucost.views.output import Output, output_options
from gpucost.views.serving import print_answer
from planner.choice.requirements import Requirements
from planner.profile.model import Profile
from planner.serving.fit import copies_answer, curve, fit_run, too_little
from planner.serving.language_model import WEIGHT_BYTES, LanguageModel, model_like, model_named
from planner.serving.load import METRICS, Target
from planner.serving.measured_service import CHAT_TARGETS
from planner.serving.search import Layout, Question, is_socketed, search
from planner.serving.traffic import SHAPES, Traffic, check_traffic
from pricing.catalog.catalog import unknown_names
from pricing.catalog.offer import Offer
from pricing.catalog.regions import placed
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.message import Message
from pricing.money import show

_NOT_MODELLED = ("disaggregated", "speculative-decoding", "lora", "expert-parallel")
_WEIGHTS = {"type": click.Choice(tuple(WEIGHT_BYTES))}
_YEAR_S = 365 * 86_400  # of a batch without a deadline: one machine is enough
_TARGETS = tuple((metric, percent) for metric in METRICS for percent in (50, 95, 99))
Command = Callable[..., Any]


_LIMITS = " ".join(f"{metric}-p{percent}" for metric, percent in _TARGETS)
_RARE = (
    "--layers --kv-heads --head-dim --cache-hit --peak --ttft-p50 --ttft-p95 --tpot-p50 --tpot-p95 "
    "--e2e-p50 --e2e-p95 --e2e-p99 --measured-on --with --purchase --as-of --offline --refresh "
    "--lang --quiet "
    "--verbose --no-color"
)
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
        raise InputError("say which model: --model NAME, --model config.json, or --params 8e9.")
    return model_named(typed["model"])


def _traffic(typed: dict[str, Any], rate: float, trace: str | None = None) -> Traffic:
    rows = _read_trace(trace) if trace else ()
    prompt, output = typed["prompt"], typed["answer"]
    if rows:
        prompt, output = (sum(row[column] for row in rows) / len(rows) for column in (1, 2))
        rate = rate or len(rows) / max(rows[-1][0], 1.0)
    if not (rate > 0 and prompt >= 1 and output >= 1):
        raise InputError(
            "say how many requests come a second: --rate 20 with a --prompt and an --answer of at "
            "least 1 token, or --request-log FILE."
        )
    return Traffic(
        rate=rate,
        prompt=prompt,
        output=output,
        shape=typed["shape"],
        cached_fraction=min(typed["cache_hit"], 1.0),
        trace=rows,
    )


_COLUMNS = (
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
        rows = list(csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}.") from error
    names = {name.lower(): name for name in (rows[0] if rows else {})}
    columns = [next((names[n] for n in spellings if n in names), "") for spellings in _COLUMNS]
    if not all(columns):
        raise InputError(
            f"{path}: needs the columns {', '.join(spellings[0] for spellings in _COLUMNS)}."
        )
    when, prompt, output = columns
    try:
        cells = sorted((_instant(row[when]), int(row[prompt]), int(row[output])) for row in rows)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: {error}.") from error
    return tuple(
        (second - cells[0][0], prompt_tokens, output_tokens)
        for second, prompt_tokens, output_tokens in cells
    )


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
        usual = offer.vendor == "NVIDIA" and offer.cpu_architecture == "x86_64"
        if (
            offer.purchase == typed["purchase"]
            and (offer.gpu in named if named else usual)
            and (offer.provider in providers if providers else offer.host == "provider")
            and offer.not_for_rent_reason(day) is None
            and (offer_there := placed(offer, typed["regions"])) is not None
        ):
            yield offer_there


_PLAN_EXAMPLE = "gpucost serve plan --model llama-3.1-8b --rate 20 --ttft-p99 500ms --tpot-p99 50ms"


@click.group(
    name="serve",
    cls=DefaultGroup,
    default_for=lambda _: "plan",
    epilog=f"Example: {_PLAN_EXAMPLE}",
)
def command() -> None:
    """Plan servers of language models: which GPU, how many copies, what a token costs."""


@command.command(name="plan", rare=_RARE, epilog=f"Example: {_PLAN_EXAMPLE}")
@options(
    f"{_MODEL} rate requests deadline.serve budget.serve request-log peak {_LIMITS} weights spare "
    "gpu.serve provider region.serve purchase measured.serve measured-on with tokens as-of lang",
    shape=_SHAPE,
    weights=_WEIGHTS,
    **{"with": {"type": click.Choice(_NOT_MODELLED)}},
)
@output_options
@refreshing_prices
def plan(output: Output, as_of: date | None, lang: str, **typed: Any) -> None:
    """Find the cheapest GPUs and copies that keep latency targets, and the price of a token."""
    day, targets, measured = as_of or today(), _targets(typed), typed["measured"]
    if typed["features"] and not measured:
        raise InputError(
            f"{', '.join(typed['features'])}: not modelled. Give --measured with a run that "
            "includes it."
        )
    on = typed | {"gpu": typed["measured_on"]}
    run = _anchor(_measured(measured, on), targets) if measured else None
    batch = typed["requests"]
    if typed["deadline"] and not batch:
        raise InputError("--deadline is of a batch: add --requests N.")
    if batch and typed["rate"]:
        raise InputError("--rate is of a service and --requests of a batch: give one of them.")
    if not (targets or batch):
        targets = CHAT_TARGETS
        output.say(Message("serving.chat-assumed").translate_to(lang))
    rate = batch / float(typed["deadline"] or _YEAR_S) if batch else typed["rate"]
    question = Question(
        model=_model(typed) if run is None or typed["model"] else run.model,
        traffic=_traffic(typed, rate, None if batch else typed["trace"]),
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
        answer = structs.replace(answer, tokens=token_offers(answer))
    if not typed["providers"]:
        output.say(Message("serving.no-community").translate_to(lang))
    print_answer(answer, output, lang)


def _anchor(profile: Profile, targets: tuple[Target, ...]) -> Question:
    """Return what was asked of the copy that was measured."""
    question = fit_run(profile, targets)[0].question
    if question.measured is None:
        raise too_little(profile.job.name)
    return question


def _measured(sources: Sequence[str], typed: dict[str, Any]) -> Profile:
    from gpucost.live.metrics_pages import measured_profile  # noqa: PLC0415 - pandas

    names = ("window", "gpu", "tp", "model", "params")
    return measured_profile(sources, **{name: typed[name] for name in names if name in typed})


_FIT_EXAMPLE = "gpucost serve fit before.prom after.prom --window 10m --gpu H100-SXM-80GB"


@command.command(name="fit", epilog=f"Example: {_FIT_EXAMPLE}")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@options("window gpu.copy tp model params lang")
@output_options
def fit(sources: tuple[str, ...], output: Output, lang: str, **typed: Any) -> None:
    """Check a measured run of a copy, and show what it says.

    SOURCE is two scrapes of a /metrics page (vLLM, SGLang, TGI, Triton), its URL, the result of a
    benchmark (vllm bench, sglang bench_serving), or a profile.
    """
    print_answer(fit_run(_measured(sources, typed))[1], output, lang)


_COPIES_EXAMPLE = "gpucost serve copies profile.json --copies 8 --ttft-p99 500ms --tpot-p99 50ms"


@command.command(name="copies", epilog=f"Example: {_COPIES_EXAMPLE}")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@options(
    f"metrics.serve window copies rate spare gpu.copy tp price.copy model params {_LIMITS} lang"
)
@output_options
def copies(sources: tuple[str, ...], output: Output, lang: str, **typed: Any) -> None:
    """Find how many copies of a running server are enough."""
    places = (*sources, *typed["metrics"])
    if not places:
        raise InputError(
            "give what one copy answered: a profile, two scrapes of /metrics, or --metrics URL "
            "--window 10m. Where nothing runs yet: gpucost serve plan --model NAME --rate 0.5."
        )
    numbers = {"copies": typed["copies"], "spare": typed["spare"], "rate": typed["rate"] or None}
    profile, price = _measured(places, typed), typed["price"]
    if price is None:
        price = _listed_price(profile, output.say)
    answer = copies_answer(profile, _targets(typed), usd_per_hour=price, **numbers)
    print_answer(answer, output, lang)


def _listed_price(profile: Profile, say: Callable[[str], None]) -> Decimal | None:
    """Return the list price of the machine that a copy runs on; None where that is not known."""
    from planner.choice.baseline import find_today  # noqa: PLC0415 - heavy, only for this

    try:
        offer = find_today(profile, load_catalog(today(), say=say).at(today()), Requirements())[0]
    except InputError:
        return None
    if offer is not None:
        say(Message("note.price-list", machine=offer.name, usd=show(offer.usd_per_hour)))
    return None if offer is None else offer.usd_per_hour


@command.command(
    name="curve", epilog="Example: gpucost serve curve --model llama-3.1-8b --gpu L40S --price 1.90"
)
@options(
    f"{_MODEL} gpu.copy tp weights.curve nvlink price.copy lang",
    shape=_SHAPE,
    weights=_WEIGHTS,
    nvlink={"default": None},
)
@output_options
def curve_(output: Output, lang: str, **typed: Any) -> None:
    """Show the latency and the price of a token of one copy from idle to full."""
    model, ranks, price = _model(typed), typed["tp"], typed["price"]
    if typed["gpu"] is None:
        raise InputError("say which GPU: --gpu H100-SXM-80GB.")
    precision = typed["precision"] or model.native_precision
    gpu = _card(typed["gpu"], output.say)
    linked = is_socketed(gpu) if typed["nvlink"] is None else typed["nvlink"]
    layout = Layout(gpu, ranks, precision, linked and ranks > 1)
    question = Question(model=model, traffic=_traffic(typed, 1.0), targets=())
    print_answer(curve(question, layout, price), output, lang)


def _card(name: str, say: Callable[[Message], None]) -> str:
    """Return the card that a name means: of several the one on NVLink's socket, and say so."""
    cards = [gpu.name for gpu in matching(name)]
    card = min(cards, key=lambda gpu: not is_socketed(gpu))
    if len(cards) > 1:
        say(Message("note.card-of-several", name=name, card=card, cards=", ".join(cards)))
    return card
