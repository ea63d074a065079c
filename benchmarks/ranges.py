"""Prints how wide the ranges of recommended bills are, and which options hold a cure.

Over the examples and the jobs that experts answered (tests/outside, and shared/cases/advice where
that folder is). `python benchmarks/ranges.py` prints a line for each job whose recommendation is a
change: high over low of its bill, the same for speed, cure, use and price alone, and how it stands
with the cures of the first finding: in the option, only the first step, or none named. The promises
are 1.4 in the median and 2.2 at the 90th percentile.
"""

import json
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median, quantiles
from typing import get_args

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the jobs are those of the tests

from planner.actions import ACTIONS  # noqa: E402
from planner.choice.option import Option  # noqa: E402
from planner.choice.requirements import Requirements  # noqa: E402
from planner.models.costs import UsdRange  # noqa: E402
from planner.models.draws import Source  # noqa: E402
from planner.pipeline import draft_plan  # noqa: E402
from planner.plan.draft import JobDraft  # noqa: E402
from planner.profile.codec import parse_profiles  # noqa: E402
from pricing.catalog.catalog import load_catalog  # noqa: E402
from pricing.errors import InputError  # noqa: E402
from tests.outside.test_public_jobs import CASES, profile  # noqa: E402

DAY = date(2026, 11, 27)
FOLDERS = (ROOT / "examples", ROOT / "examples/hard", ROOT.parent / "shared/cases/advice")


def texts() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the profile of each job."""
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.json")):
            yield path.stem, path.read_bytes()
    for case in CASES:
        yield case["profile"]["job"]["name"], json.dumps(profile(case)).encode()


def drafts() -> Iterator[tuple[str, JobDraft]]:
    """Yield each job with its plan."""
    catalog = load_catalog(DAY)
    for name, text in texts():
        try:
            plan = draft_plan(parse_profiles(text, name), catalog, Requirements(), as_of=DAY)
        except InputError:  # two of the cases are to be refused
            continue
        yield from ((name, job) for job in plan.jobs)


def times(ends: UsdRange) -> float:
    """Return the high end over the low one."""
    return float(ends.high / ends.low) if ends.low else float("inf")


def cured(job: JobDraft, option: Option) -> str:
    """Return whether an option holds what the first finding names; "-" of none for the program."""
    codes = {*job.findings[0].actions}
    if all(ACTIONS[code].kind == "structural" for code in codes):
        return "-"
    steps = {*job.now.actions} if job.now else set[str]()
    return "held" if codes & {*option.actions} else "step" if codes & steps else "missing"


def main() -> None:
    """Print the table."""
    changed = [(name, job, job.choice) for name, job in drafts() if job.choice]
    widths, cures = sorted(times(option.usd_range) for *_, option in changed), list[str]()
    for name, job, option in sorted(changed, key=lambda row: times(row[2].usd_range)):
        ends = {source: option.by_source[source] for source in get_args(Source)}
        ends = {"bill": option.usd_range, **ends, "price": option.by_price}
        parts = "  ".join(f"{source} {times(of_it):.2f}" for source, of_it in ends.items())
        cures.append(cured(job, option))
        sys.stdout.write(f"{name:24} {parts}  {cures[-1]:8} {option.offer.name}\n")
    p90, named = quantiles(widths, n=10, method="inclusive")[-1], len(cures) - cures.count("-")
    sys.stdout.write(
        f"{len(widths)} changes: median {median(widths):.2f}, 90th percentile {p90:.2f}, most "
        f"{max(widths):.2f}; {cures.count('held')} of {named} hold what the first finding names\n"
    )


if __name__ == "__main__":
    main()
