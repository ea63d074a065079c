"""Fits how far prices move with age: writes the table that ships, and the page with its scores.

python -m research.price_moves_page FIT_DAY
"""

import csv
import io
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

from research.price_choices import Rules, all_decisions, regrets
from research.price_moves import HORIZONS, KINDS, SAME, Moves, covered, level, measure, share_moved

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "pricing/data/price_moves.csv"
PAGE = ROOT / "research/price_moves.md"
_FEW = 2
_COLUMNS = "sellers days low high moved pairs providers as_of confidence source"


def table(moves: Moves, day: str) -> str:
    """Return the factors that ship, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS.split())
    for kind in KINDS:
        for days, (low, high) in moves.law(kind).items():
            many = moves.found[kind][days]
            providers = len({one.provider for one in many})
            moved, trust = f"{share_moved(many):.3f}", "medium" if providers > _FEW else "low"
            source = "research/price_moves.py on price_history.csv and the dated offers"
            row = (kind, days, f"{low:.3f}", f"{high:.3f}", moved, len(many), providers)
            writer.writerow((*row, day, trust, source))
    return text.getvalue()


def page(moves: Moves, day: str) -> str:
    """Return the page: the law, how often it held, what the choice by it costs later."""
    parts = (_law(moves), _held(moves), _chosen(moves))
    lines = [
        "# How far prices move with age",
        "",
        f"Written by `make prices-backtest` on {day}; how: [price_moves.py](price_moves.py).",
        *(line for part in parts for line in part),
    ]
    return "\n".join(lines) + "\n"


def _law(moves: Moves) -> Iterator[str]:
    yield from ("", "## The law that ships", "")
    yield (
        "The quantile of an age is the least that held 90 % of the prices of providers left out in "
        "turn, of all pairs and on average over providers; 1 means the most extreme move seen."
    )
    yield ""
    yield "| sellers | days | moved | lies between | quantile | pairs | providers |"
    yield "|---|---:|---:|---|---:|---:|---:|"
    for kind in KINDS:
        for days, (low, high) in moves.law(kind).items():
            many = moves.found[kind][days]
            providers = len({one.provider for one in many})
            ends = f"x{low:.2f} to x{high:.2f} | {level(many):g}"
            moved = f"{share_moved(many):.1%}"
            yield f"| {kind} | {days} | {moved} | {ends} | {len(many)} | {providers} |"


def _held(moves: Moves) -> Iterator[str]:
    yield from ("", "## Providers left out in turn: how often the interval held", "")
    yield (
        "The bar is 88 to 93 % of the prices of a provider that was not in the fit; its "
        "quantile is chosen without it, too."
    )
    yield ""
    yield "| sellers | days | held, providers alike | held, pairs alike | by provider |"
    yield "|---|---:|---:|---:|---|"
    everyone: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for kind in KINDS:
        scores = list(covered(moves.found[kind], lambda p, k=kind: moves.law_without(k, p)))  # type: ignore[misc]
        for days in HORIZONS:
            at = [(p, n, held) for d, p, n, held in scores if d == days]
            everyone[days] += [(n, held) for _, n, held in at]
            if at:
                each = ", ".join(f"{p} {held:.0%}" for p, _, held in at)
                yield f"| {kind} | {days} | {_shares([(n, held) for _, n, held in at])} | {each} |"
    for days in HORIZONS:
        yield f"| all | {days} | {_shares(everyone[days])} | |"


def _shares(at: list[tuple[int, float]]) -> str:
    pairs = sum(n * held for n, held in at) / sum(n for n, _ in at)
    return f"{mean(held for _, held in at):.1%} | {pairs:.1%}"


def _chosen(moves: Moves) -> Iterator[str]:
    yield from ("", "## What the chosen price costs later, over the best of that day", "")
    yield (
        "One decision for each week and GPU model with prices of at least two providers. Fitted "
        "rules are fitted without the provider that is judged. The cheapest price as read is the "
        "two-line baseline; whatever asks for more caution, or expects a move, or shrinks a low "
        "price towards the others, has to cost less than it ([price_choices.py](price_choices.py))."
    )
    yield ""
    yield "| days | decisions | rule | median | mean | 90 % | none |"
    yield "|---:|---:|---|---:|---:|---:|---:|"
    rules = Rules(moves).by_name
    for days in HORIZONS:
        found = all_decisions(moves, days)
        for name, rule in rules.items() if found else ():
            many = sorted(regrets(found, rule))
            ninety = many[min(len(many) - 1, int(0.9 * len(many)))]
            none = mean(one < SAME for one in many)
            yield (
                f"| {days} | {len(many)} | {name} | {median(many):.1%} | {mean(many):.1%} "
                f"| {ninety:.1%} | {none:.0%} |"
            )


def main(day: str) -> None:
    """Fit, score, and write the table and the page."""
    moves = measure()
    TABLE.write_text(table(moves, day), encoding="utf-8")
    PAGE.write_text(page(moves, day), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
