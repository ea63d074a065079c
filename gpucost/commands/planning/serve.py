"""`gpucost serve`: which GPU, how many copies and what a token costs, under a latency target."""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from gpucost.arguments.command_group import DefaultGroup, GroupedCommand, SubCommand
from gpucost.arguments.parameters import DAY, DOLLARS, DURATION, ParsedType, today
from gpucost.prices.cache import load_catalog
from gpucost.prices.token_prices import token_offers
from gpucost.views.output import Output, output_options
from gpucost.views.serving import print_answer
from planner.choice.baseline import find_today
from planner.choice.requirements import Requirements
from planner.profile.model import Profile
from planner.serving.fit import copies_answer, curve, fit_run
from planner.serving.language_model import WEIGHT_BYTES, LanguageModel, model_like, model_named
from planner.serving.load import METRICS, Target
from planner.serving.measured_service import CHAT_TARGETS
from planner.serving.search import Layout, Question, search
from planner.serving.traffic import SHAPES, Traffic, check_traffic
from pricing.catalog.offer import PURCHASES, Offer
from pricing.catalog.regions import placed
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.message import ENGLISH, Message
from pricing.money import show
from templates.language.translate import LANGUAGES

_NOT_MODELLED = ("disaggregated", "speculative-decoding", "lora", "expert-parallel")
_PRECISIONS = click.Choice(tuple(WEIGHT_BYTES))
_WITH_UNIT = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z%]*)")
_NUMBER = {"s": 1.0, "ms": 0.001, "x": 1.0, "%": 0.01}
_YEAR_S = 365 * 86_400  # of a batch without a deadline: one machine is enough
_TARGETS = tuple((metric, percent) for metric in METRICS for percent in (50, 95, 99))
Command = Callable[..., Any]


def _with_unit(*units: str) -> Callable[[str], float]:
    """Return a parser of a number with one of the units, such as `500ms`."""

    def parse(text: str) -> float:
        match = _WITH_UNIT.fullmatch(text)
        if match is None or match[2] not in units:
            raise ValueError(f"{text!r}: write a number with {' or '.join(units)}.")
        return float(match[1]) * _NUMBER[match[2]]

    return parse


_TIME = ParsedType("time", _with_unit("ms", "s"))
# fmt: off
_OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "model": (("--model",), {"metavar": "NAME|config.json", "help": "Language model."}),
    "params": (("--params",), {"type": float, "help": "Parameters of the model, e.g. 8e9."}),
    "layers": (("--layers",), {"type": int, "help": "Layers of the model."}),
    "kv-heads": (("--kv-heads",), {"type": int, "help": "Key-value heads of the model."}),
    "head-dim": (("--head-dim",), {"type": int, "help": "Width of an attention head."}),
    "prompt": (("--prompt",), {"type": float, "default": 500, "show_default": True, "help": "Prompt tokens, mean."}),  # noqa: E501
    "output": (("--output", "answer"), {"type": float, "default": 300, "show_default": True, "help": "Output tokens, mean."}),  # noqa: E501
    "shape": (("--shape",), {"type": click.Choice(tuple(SHAPES)), "default": "chat", "show_default": True, "help": "How lengths spread."}),  # noqa: E501
    "cache-hit": (("--cache-hit",), {"type": ParsedType("share", _with_unit("%")), "default": "0%", "show_default": True, "help": "Share of prompt tokens found in the prefix cache."}),  # noqa: E501
    "rate": (("--rate",), {"type": float, "default": 0.0, "help": "Requests per second of all copies, mean."}),  # noqa: E501
    "requests": (("--requests",), {"type": click.FloatRange(min=1), "metavar": "N", "help": "Offline: answer so many requests once."}),  # noqa: E501
    "deadline": (("--deadline",), {"type": DURATION, "help": "Latest finish of --requests, e.g. 8h."}),  # noqa: E501
    "budget": (("--budget",), {"type": DOLLARS, "help": "Maximum cost of a month, or of --requests."}),  # noqa: E501
    "trace": (("--trace",), {"metavar": "CSV", "help": "Real requests: arrival, prompt, output."}),
    "peak": (("--peak",), {"type": ParsedType("factor", _with_unit("x")), "metavar": "2.5x", "help": "Rate of the busiest minute over the mean."}),  # noqa: E501
    "precisions": (("--precision", "precisions"), {"type": _PRECISIONS, "multiple": True, "help": "Weights (repeatable); else as published."}),  # noqa: E501
    "precision": (("--precision",), {"type": _PRECISIONS, "help": "Precision of the weights.  [default: as published]"}),  # noqa: E501
    "spare": (("--spare",), {"type": click.IntRange(min=0), "default": 0, "metavar": "N", "help": "Copies beyond what the rate needs."}),  # noqa: E501
    "gpus": (("--gpu", "gpu_names"), {"multiple": True, "help": "Use only this GPU model (repeatable)."}),  # noqa: E501
    "providers": (("--provider", "providers"), {"multiple": True, "help": "Use only this provider (repeatable)."}),  # noqa: E501
    "regions": (("--region", "regions"), {"multiple": True, "help": "Use only this region, e.g. eu (repeatable)."}),  # noqa: E501
    "purchase": (("--purchase",), {"type": click.Choice(PURCHASES), "default": "on_demand", "show_default": True, "help": "Purchase type."}),  # noqa: E501
    "measured": (("--measured",), {"multiple": True, "metavar": "SOURCE", "help": "Profile or benchmark of one copy."}),  # noqa: E501
    "measured-on": (("--measured-on",), {"metavar": "GPU", "help": "GPU of that run, where it does not say."}),  # noqa: E501
    "with": (("--with", "features"), {"type": click.Choice(_NOT_MODELLED), "multiple": True, "help": "What the server does beyond the law; needs --measured."}),  # noqa: E501
    "tokens": (("--tokens",), {"is_flag": True, "help": "Compare with the price of tokens from APIs."}),  # noqa: E501
    "as-of": (("--as-of",), {"type": DAY, "help": "Use the prices of this day.  [default: today]"}),
    "window": (("--window",), {"type": DURATION, "help": "Time between two scrapes of /metrics."}),
    "metrics": (("--metrics",), {"multiple": True, "metavar": "URL", "help": "/metrics page of one copy."}),  # noqa: E501
    "copies": (("--copies",), {"type": click.IntRange(min=1), "default": 1, "show_default": True, "help": "Copies that run now."}),  # noqa: E501
    "gpu": (("--gpu",), {"help": "GPU of the copy, where SOURCE does not say."}),
    "tp": (("--tp",), {"type": click.IntRange(1, 64), "default": 1, "show_default": True, "help": "GPUs of the copy."}),  # noqa: E501
    "nvlink": (("--nvlink",), {"is_flag": True, "help": "The GPUs are linked by NVLink."}),
    "price": (("--price",), {"type": DOLLARS, "help": "Your hourly price of one copy in USD."}),
    "lang": (("--lang",), {"type": click.Choice(LANGUAGES), "default": ENGLISH, "help": "Language of what is printed."}),  # noqa: E501
    **{f"{m}-p{p}": ((f"--{m}-p{p}",), {"type": _TIME, "help": f"Most {METRICS[m]}, e.g. 500ms."}) for m, p in _TARGETS},  # noqa: E501
}
# fmt: on
_LIMITS = " ".join(f"{metric}-p{percent}" for metric, percent in _TARGETS)
_RARE = (
    "--layers --kv-heads --head-dim --cache-hit --peak --ttft-p50 --ttft-p95 --tpot-p50 --tpot-p95 "
    "--e2e-p50 --e2e-p95 --e2e-p99 --measured-on --with --purchase --as-of --lang --quiet "
    "--verbose --no-color"
)
_MODEL = "model params layers kv-heads head-dim prompt output shape cache-hit"


def _options(names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds options by name, in their order."""

    def decorate(command: Command) -> Command:
        for name in reversed([*names.split(), "lang"]):
            flags, settings = _OPTIONS[name]
            command = click.option(*flags, **settings)(command)
        return command

    return decorate


def _targets(options: dict[str, Any]) -> tuple[Target, ...]:
    """Take the limits out of a command's options."""
    return tuple(
        Target(metric=metric, percent=float(percent), limit_s=limit)
        for metric, percent in _TARGETS
        if (limit := options.pop(f"{metric}_p{percent}")) is not None
    )


def _model(options: dict[str, Any]) -> LanguageModel:
    if options["params"] is not None:
        sizes = {key: options[key] for key in ("layers", "kv_heads", "head_dim")}
        return model_like(options["params"], name=options["model"] or "", **sizes)
    if options["model"] is None:
        raise InputError("say which model: --model NAME, --model config.json, or --params 8e9.")
    return model_named(options["model"])


def _traffic(options: dict[str, Any], rate: float, trace: str | None = None) -> Traffic:
    rows = _read_trace(trace) if trace else ()
    prompt, output = options["prompt"], options["answer"]
    if rows:
        prompt, output = (sum(row[place] for row in rows) / len(rows) for place in (1, 2))
        rate = rate or len(rows) / max(rows[-1][0], 1.0)
    if not (rate > 0 and prompt >= 1 and output >= 1):
        raise InputError(
            "say how many requests come a second: --rate 20 with a --prompt and an --output of at "
            "least 1 token, or --trace FILE."
        )
    return Traffic(
        rate=rate,
        prompt=prompt,
        output=output,
        shape=options["shape"],
        cached_fraction=min(options["cache_hit"], 1.0),
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
    columns = [next((names[n] for n in known if n in names), "") for known in _COLUMNS]
    if not all(columns):
        raise InputError(f"{path}: needs the columns {', '.join(known[0] for known in _COLUMNS)}.")
    when, prompt, output = columns
    try:
        cells = sorted((_instant(row[when]), int(row[prompt]), int(row[output])) for row in rows)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: {error}.") from error
    return tuple((second - cells[0][0], taken, given) for second, taken, given in cells)


def _instant(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text[:26]).timestamp()


def _offers(options: dict[str, Any], day: date, say: Callable[[str], None]) -> Iterable[Offer]:
    """Yield the offers that may be rented and that the options let in."""
    named = {gpu.name for name in options["gpu_names"] for gpu in matching(name)}
    providers = options["providers"]
    for offer in load_catalog(day, say=say).offers:
        usual = offer.vendor == "NVIDIA" and offer.cpu_architecture == "x86_64"
        if (
            offer.purchase == options["purchase"]
            and (offer.gpu in named if named else usual)
            and (offer.provider in providers if providers else offer.host == "provider")
            and offer.not_for_rent_reason(day) is None
            and (there := placed(offer, options["regions"])) is not None
        ):
            yield there


_PLAN_EXAMPLE = "gpucost serve plan --model llama-3.1-8b --rate 20 --ttft-p99 500ms --tpot-p99 50ms"


@click.group(
    name="serve",
    cls=DefaultGroup,
    default_for=lambda _: "plan",
    epilog=f"Example: {_PLAN_EXAMPLE}",
)
def command() -> None:
    """Plan servers of language models: which GPU, how many copies, what a token costs."""


class _PlanCommand(GroupedCommand, SubCommand):
    """A sub-command with rare options."""


@command.command(name="plan", cls=_PlanCommand, rare=_RARE, epilog=f"Example: {_PLAN_EXAMPLE}")
@_options(
    f"{_MODEL} rate requests deadline budget trace peak {_LIMITS} precisions spare gpus providers "
    "regions purchase measured measured-on with tokens as-of"
)
@output_options
def plan(output: Output, as_of: date | None, lang: str, **options: Any) -> None:
    """Find the cheapest GPUs and copies that keep latency targets, and the price of a token."""
    day, targets, measured = as_of or today(), _targets(options), options["measured"]
    if options["features"] and not measured:
        raise InputError(
            f"{', '.join(options['features'])}: not modelled. Give --measured with a run that "
            "includes it."
        )
    run = None
    if measured:
        named = options | {"gpu": options["measured_on"]}
        run = fit_run(_measured(measured, named), targets)[0].question
    batch = options["requests"]
    if options["deadline"] and not batch:
        raise InputError("--deadline is of a batch: add --requests N.")
    if not (targets or batch):
        targets = CHAT_TARGETS
        output.say(Message("serving.chat-assumed").translate_to(lang))
    rate = batch / float(options["deadline"] or _YEAR_S) if batch else options["rate"]
    question = Question(
        model=_model(options) if run is None or options["model"] else run.model,
        traffic=_traffic(options, rate, None if batch else options["trace"]),
        targets=targets,
        batch=batch,
        budget_usd=options["budget"],
        precisions=options["precisions"],
        spare=options["spare"],
        peak=options["peak"] or 1.0,
        measured=run.measured if run else None,
        measured_on=run.measured_on if run else None,
    )
    if options["peak"] is None and not batch:
        check_traffic(question.traffic)
    answer = search(question, _offers(options, day, output.say), day)
    if options["tokens"] and not batch:
        answer = structs.replace(answer, tokens=token_offers(answer))
    print_answer(answer, output, lang)


def _measured(sources: Sequence[str], options: dict[str, Any]) -> Profile:
    from gpucost.live.metrics_pages import measured_profile  # noqa: PLC0415 - pandas

    names = ("window", "gpu", "tp", "model", "params")
    return measured_profile(sources, **{name: options[name] for name in names if name in options})


_FIT_EXAMPLE = "gpucost serve fit before.prom after.prom --window 10m --gpu H100-SXM-80GB"


@command.command(name="fit", epilog=f"Example: {_FIT_EXAMPLE}")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@_options("window gpu tp model params")
@output_options
def fit(sources: tuple[str, ...], output: Output, lang: str, **options: Any) -> None:
    """Check a measured run of a copy, and show what it says.

    SOURCE is two scrapes of a /metrics page (vLLM, SGLang, TGI, Triton), its URL, the result of a
    benchmark (vllm bench, sglang bench_serving), or a profile.
    """
    print_answer(fit_run(_measured(sources, options))[1], output, lang)


_COPIES_EXAMPLE = "gpucost serve copies profile.json --copies 8 --ttft-p99 500ms --tpot-p99 50ms"


@command.command(name="copies", epilog=f"Example: {_COPIES_EXAMPLE}")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@_options(f"metrics window copies spare gpu tp price model params {_LIMITS}")
@output_options
def copies(sources: tuple[str, ...], output: Output, lang: str, **options: Any) -> None:
    """Find how many copies of a running server are enough."""
    places = (*sources, *options["metrics"])
    if not places:
        raise InputError("give a profile, two scrapes of /metrics, or --metrics URL --window 10m.")
    numbers = {"copies": options["copies"], "spare": options["spare"]}
    profile, price = _measured(places, options), options["price"]
    if price is None:
        price = _listed_price(profile, output.say)
    answer = copies_answer(profile, _targets(options), usd_per_hour=price, **numbers)
    print_answer(answer, output, lang)


def _listed_price(profile: Profile, say: Callable[[str], None]) -> Decimal | None:
    """Return the list price of the machine that a copy runs on; None where that is not known."""
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
@_options(f"{_MODEL} gpu tp precision nvlink price")
@output_options
def curve_(output: Output, lang: str, **options: Any) -> None:
    """Show the latency and the price of a token of one copy from idle to full."""
    model, ranks, price = _model(options), options["tp"], options["price"]
    if options["gpu"] is None:
        raise InputError("say which GPU: --gpu H100-SXM-80GB.")
    precision = options["precision"] or model.native_precision
    layout = Layout(
        matching(options["gpu"])[0].name, ranks, precision, options["nvlink"] and ranks > 1
    )
    question = Question(model=model, traffic=_traffic(options, 1.0), targets=())
    print_answer(curve(question, layout, price), output, lang)
