"""Prints plans, fits, copies and curves of servers of language models."""

from gpucost.views.output import Output, Table, print_json, print_table
from planner.models.estimate import Estimate
from planner.serving.fit import CopiesAnswer, ServingCurve, ServingFit
from planner.serving.search import Layout, ServingPlan
from pricing.message import Message
from pricing.money import show, whole_dollars

ServingAnswer = ServingPlan | ServingFit | CopiesAnswer | ServingCurve
_SHOWN = 8
_COLUMNS = ("where", "gpu", "copies", "most", "ttft", "tpot", "month", "token", "full")


def print_answer(answer: ServingAnswer, output: Output, lang: str) -> None:
    """Print an answer as `output.format` asks."""
    if output.format == "json":
        print_json(answer)
    elif isinstance(answer, ServingPlan):
        _print_plan(answer, output, lang)
    elif isinstance(answer, ServingFit):
        _print_fit(answer, output, lang)
    elif isinstance(answer, CopiesAnswer):
        _print_copies(answer, output, lang)
    else:
        _print_curve(answer, output, lang)


def _said(code: str, lang: str, **params: str | float) -> str:
    return Message(f"serving.{code}", **params).translate_to(lang)


def _gpus(layout: Layout) -> str:
    return f"{layout.tensor_parallel}x {layout.gpu}"


def _range(estimate: Estimate) -> str:
    return f"{estimate.mid:,.0f} ({estimate.low:,.0f}-{estimate.high:,.0f})"


def _print_plan(found: ServingPlan, output: Output, lang: str) -> None:
    """Print the options, what they rest on, and the tokens of an API beside them."""
    columns = tuple(_said(f"column-{name}", lang) for name in _COLUMNS)
    rows = tuple(
        (
            f"{option.machines}x {option.offer.name}",
            _gpus(option.layout),
            f"{option.copies}+{option.spare}" if option.spare else f"{option.copies}",
            f"{option.limit.rate:.3g}/s",
            _range(option.ttft_ms[2]),
            _range(option.tpot_ms[2]),
            f"${whole_dollars(option.usd_per_month)}",
            f"${show(option.usd_per_million_output)}",
            f"${show(option.usd_per_million_output_full)}",
        )
        for option in found.options[:_SHOWN]
    )
    title = _said(
        "title",
        lang,
        model=found.model,
        rate=f"{found.rate:g}",
        prompt=f"{found.prompt_tokens:.0f}",
        output=f"{found.output_tokens:.0f}",
        targets=", ".join(found.targets),
    )
    right, spare = frozenset(columns[2:]), (columns[8], columns[3], columns[7])
    print_table(Table(columns=columns, rows=rows, right=right, title=title, spare=spare), output)
    best = found.options[0]
    answer = _said(
        "answer",
        lang,
        where=best.offer.name,
        copies=best.copies,
        gpu=_gpus(best.layout),
        month=show(best.usd_per_month),
        token=f"{best.usd_per_million_output:.2f}",
        full=f"{best.usd_per_million_output_full:.2f}",
        room=f"{best.headroom_fraction:.0%}",
        stopped=best.limit.stopped_by,
    )
    output.say(answer)
    weak = "; ".join(best.weak) or "-"
    output.say(_said("basis", lang, basis=best.basis, weak=weak, layouts=found.layouts))
    for tokens in found.tokens[:1]:
        month, never = show(tokens.usd_per_month), tokens.break_even_rate is None
        where = {"provider": tokens.provider, "model": tokens.model, "source": tokens.source}
        output.say(_said("tokens", lang, month=month, **where))
        code, rate = "host-never" if never else "host-from", f"{tokens.break_even_rate or 0:.3g}"
        output.say(_said(code, lang, rate=rate))


def _print_fit(found: ServingFit, output: Output, lang: str) -> None:
    times = (found.ttft_p50_ms, found.tpot_p50_ms)
    ttft, tpot = ("-" if ms is None else f"{ms:.3g} ms" for ms in times)
    rows = (
        ("model", found.model),
        ("gpu", f"{_gpus(found.layout)}, {found.layout.precision}"),
        ("rate", f"{found.rate:.3g}/s, {found.prompt_tokens:.0f} + {found.output_tokens:.0f}"),
        ("times", f"{ttft}, {tpot}"),
        ("running", f"{found.requests_running or 0:.3g}, {found.expected_running:.3g}"),
        ("steps", f"{found.step_factor:.2f}"),
        ("load", f"{found.load_fraction:.0%}, {found.saturated_rate:.3g}/s"),
    )
    table = tuple((_said(f"fit-{name}", lang), value) for name, value in rows)
    print_table(Table(columns=("", _said("fit-value", lang)), rows=table), output)
    for note in found.notes:
        output.say(f"note: {note}")


def _print_copies(found: CopiesAnswer, output: Output, lang: str) -> None:
    _print_fit(found.fit, output, lang)
    answer = _said(
        "copies",
        lang,
        copies=found.copies,
        now=found.copies_now,
        rate=f"{found.rate:.3g}",
        targets=", ".join(found.targets),
        most=f"{found.copy_rate:.3g}",
        stopped=found.stopped_by,
    )
    if found.usd_per_month is not None and found.usd_per_month_now is not None:
        month, now = show(found.usd_per_month), show(found.usd_per_month_now)
        answer += " " + _said("copies-usd", lang, month=month, now=now)
    output.insist(answer)


def _print_curve(found: ServingCurve, output: Output, lang: str) -> None:
    columns = ("requests/s", "running", "TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "$/1M")
    rows = []
    for point in found.points:
        ttft, tpot = point.ttft_ms, point.tpot_ms
        usd = point.usd_per_million_output
        times = (f"{ms:,.0f} ms" for ms in (ttft[0], ttft[2], tpot[0], tpot[2]))
        dollars = "-" if usd is None else f"{usd:.2f}"
        rows.append((f"{point.rate:.3g}", f"{point.requests_running:.0f}", *times, dollars))
    full = f"{found.saturated_rate:.3g}"
    title = _said("curve", lang, model=found.model, gpu=_gpus(found.layout), rate=full)
    right = frozenset(columns)
    print_table(Table(columns=columns, rows=tuple(rows), right=right, title=title), output)
