"""Prints plans, fits, copies and curves of servers of language models."""

import re
from collections.abc import Callable

from msgspec import Struct, structs

from gpucost.views.output import Output, Table, print_json, print_prose, print_table
from planner.models.estimate import Estimate
from planner.serving.fit import CopiesAnswer, ServingCurve, ServingFit
from planner.serving.search import SOUND_ODDS, Layout, ServingPlan
from pricing.message import Message, join
from pricing.money import show, whole_dollars

ServingAnswer = ServingPlan | ServingFit | CopiesAnswer | ServingCurve
_SHOWN = 8
_PERCENTS = (50, 95, 99)
_COLUMNS = ("where", "gpu", "copies", "most", "ttft", "tpot", "odds", "month", "token", "full")
_LITTLE_USED = 0.8  # of a copy is idle: then tokens by the piece are worth a look


def print_answer(answer: ServingAnswer, output: Output, lang: str) -> None:
    """Print an answer as `output.format` asks."""
    if output.format == "json":
        print_json(answer)
    else:
        _PRINTERS[type(answer)](answer, output, lang)


def _text(code: str, lang: str, answer: Struct | None = None, **params: str | float) -> str:
    """Return a sentence; its words are the fields of an answer, and what else is given."""
    fields = structs.asdict(answer) if answer is not None else {}
    return Message(f"serving.{code}", **fields | params).translate_to(lang)


def _gpus(layout: Layout) -> str:
    return f"{layout.tensor_parallel}x {layout.gpu}" if layout.tensor_parallel > 1 else layout.gpu


def _range(estimate: Estimate) -> str:
    return f"{estimate.mid:,.0f} ({estimate.low:,.0f}-{estimate.high:,.0f})"


def _print_plan(answer: ServingPlan, output: Output, lang: str) -> None:
    """Print the options, what they rest on, and the tokens of an API beside them."""
    batch = answer.options[0].batch_usd is not None
    names = ("batch" if batch and name == "month" else name for name in _COLUMNS)
    percentiles = {metric: _asked_percent(metric, answer) for metric in ("ttft", "tpot")}
    percents = {f"p_{metric}": percent for metric, percent in percentiles.items()}
    columns = tuple(_text(f"column-{name}", lang, None, **percents) for name in names)
    rows = tuple(
        (
            f"{option.machines}x {option.offer.name}",
            _gpus(option.layout),
            f"{option.copies}+{option.spare}" if option.spare else f"{option.copies}",
            f"{option.limit.rate:.3g}/s",
            _range(option.ttft_ms[_PERCENTS.index(percentiles["ttft"])]),
            _range(option.tpot_ms[_PERCENTS.index(percentiles["tpot"])]),
            "-" if option.odds_fraction is None else f"{option.odds_fraction:.0%}",
            f"${whole_dollars(option.usd)}",
            f"${show(option.usd_per_million_output)}",
            f"${show(option.usd_per_million_output_full)}",
        )
        for option in answer.options[:_SHOWN]
    )
    best = answer.options[0]
    say = print_prose if output.format == "table" else output.say
    say(_text("title-batch" if batch else "title", lang, answer))
    bought = answer.tokens[0] if answer.tokens else None
    if bought is not None and bought.usd_per_month < best.usd:
        say(_token_text("tokens-buy", lang, answer))
    usd = {"usd": show(best.usd), "where": best.offer.name, "gpu": _gpus(best.layout)}
    code = "answer-batch" if batch else "answer"
    say(_text(code, lang, best, stopped=best.limit.stopped_by, **usd))
    if best.odds_fraction is not None:
        say(_text("odds-measured" if best.tpot_ms[0].basis == "measured" else "odds", lang, best))
    risky = min(answer.options, key=lambda option: option.usd)
    if risky.is_risky:
        cheaper = {"usd": show(risky.usd), "where": risky.offer.name, "gpu": _gpus(risky.layout)}
        code = "none-sound" if best.is_risky else "risky"
        say(_text(code, lang, risky, least=SOUND_ODDS, **cheaper))
    if not batch and best.copies + best.spare == 1:
        say(_text("alone", lang))
    say(_text("basis", lang, best, layouts=answer.layouts, weak=join(best.weak) or "-"))
    if bought is not None and bought.usd_per_month >= best.usd:
        say(_token_text("tokens", lang, answer))
    elif bought is None and not batch and best.headroom_fraction > _LITTLE_USED:
        say(_text("little-used", lang, used=1.0 - best.headroom_fraction))
    right, spare = frozenset(columns[2:]), (columns[9], columns[3], columns[1], columns[8])
    print_table(Table(columns=columns, rows=rows, right=right, spare=spare), output)


def _token_text(code: str, lang: str, answer: ServingPlan) -> str:
    """Return what an API's tokens cost beside the cheapest option, and from which rate on not."""
    tokens, usd = answer.tokens[0], show(answer.options[0].usd)
    even = "host-never" if tokens.break_even_rate is None else "host-from"
    bought = _text(code, lang, tokens, month=show(tokens.usd_per_month), usd=usd)
    return f"{bought} {_text(even, lang, tokens)}"


def _asked_percent(metric: str, answer: ServingPlan) -> int:
    """Return the percentile that a target is of; the 99th where none is."""
    stated = (re.match(rf"{metric.upper()} p(\d+) ", target) for target in answer.targets)
    return next((int(match[1]) for match in stated if match), _PERCENTS[-1])


def _print_fit(answer: ServingFit, output: Output, lang: str) -> None:
    medians = (answer.ttft_p50_ms, answer.tpot_p50_ms)
    times = (
        f"p50 {median:.3g} ms" if median else _text("mean", lang, ms=mean) if mean else "-"
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
    table = tuple((_text(f"fit-{name}", lang), value) for name, value in rows)
    print_table(Table(columns=("", _text("fit-value", lang)), rows=table), output)
    for note in answer.notes:
        output.say(f"note: {note}")


def _print_copies(answer: CopiesAnswer, output: Output, lang: str) -> None:
    more = answer.copies - answer.spare > answer.copies_now
    sentence = _text("copies-more" if more else "copies", lang, answer)
    if answer.usd_per_month is not None and answer.usd_per_month_now is not None:
        month, now = show(answer.usd_per_month), show(answer.usd_per_month_now)
        sentence += " " + _text("copies-usd", lang, month=month, now=now)
    if answer.copies == 1:
        sentence += " " + _text("alone", lang)
    (print_prose if output.format == "table" else output.insist)(sentence)
    _print_fit(answer.fit, output, lang)


def _print_curve(answer: ServingCurve, output: Output, lang: str) -> None:
    columns = ("requests/s", "running", "TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "$/1M out")
    rows = []
    for point in answer.points:
        ttft, tpot = point.ttft_ms, point.tpot_ms
        usd = point.usd_per_million_output
        times = (f"{ms:,.0f} ms" for ms in (ttft[0], ttft[2], tpot[0], tpot[2]))
        dollars = "-" if usd is None else f"{usd:.2f}"
        rows.append((f"{point.rate:.3g}", f"{point.requests_running:.0f}", *times, dollars))
    title = _text("curve", lang, answer, gpu=_gpus(answer.layout))
    right = frozenset(columns)
    print_table(Table(columns=columns, rows=tuple(rows), right=right, title=title), output)


_PRINTERS: dict[type, Callable[..., None]] = {
    ServingPlan: _print_plan,
    ServingFit: _print_fit,
    CopiesAnswer: _print_copies,
    ServingCurve: _print_curve,
}
