"""`make chaos`: every trial at every provider; prints tables in Markdown; all counts must be 0."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.chaos.accounts import ACCOUNTS as OF_MACHINES
from tests.chaos.kept import keep, kept
from tests.chaos.laptop import HEAD, gone_table, variants
from tests.chaos.pool_accounts import POOL_ACCOUNTS
from tests.chaos.programme import everything, some
from tests.chaos.trials import Job, Stage
from tests.chaos.truth import BAD, Count
from tests.chaos.workers import Task, work_all

ACCOUNTS = {**OF_MACHINES, **POOL_ACCOUNTS}
_TITLES = {
    "machines": "machines left",
    "late": "after the deadline",
    "side_resources": "side resources left",
    "foreign": "others' touched",
    "cap": "over the cap",
    "ledger": "ledger off",
    "lies": "lies",
    "bugs": "bugs",
    "refused": "recovery refused",
}
_BEGIN, _END = "<!-- chaos: begin -->", "<!-- chaos: end -->"
"""Between these lines of a page stand the tables."""


def main(arguments: list[str]) -> int:
    """Run the trials; the exit code is 0 when all were clean."""
    asked = _asked(arguments)
    programme = _programme(asked)
    tasks = {task: job for task, job in programme.items() if _is_asked(task, asked)}
    done = kept(asked.keep) if asked.keep else {}
    new = {task: job for task, job in tasks.items() if task not in done}
    for (kind, name), count, took_s in work_all(new, jobs=asked.jobs):
        done[kind, name] = (count, took_s)
        if asked.keep and count.is_clean:
            keep(asked.keep, (kind, name), count, took_s)
        told = "clean" if count.is_clean else "NOT CLEAN"
        print(
            f"{len(done)}/{len(tasks)} {kind}: {name}: {count.trials} trials, {told}, "
            f"{took_s:.0f} s",
            *(count.told if not count.is_clean else ()),
            sep="\n    ",
            file=sys.stderr,
            flush=True,
        )
    text = "\n".join(_page(programme, done))
    print(text)
    if asked.into:
        _put(asked.into, text)
    clean = all(count.is_clean for count, _ in done.values())
    return 0 if clean and all(task in done for task in tasks) else 1


def _programme(asked: argparse.Namespace) -> dict[Task, Job]:
    """All that can be tried at every provider, in the order of the page."""
    tasks: dict[Task, Job] = {
        (kind, name): job
        for kind in ACCOUNTS
        for name, job in (some(kind) if asked.some else everything(kind, step=asked.step)).items()
    }
    return tasks | {(k, _GONE + v): _fates(v) for k in ACCOUNTS for v in variants(k)}


def _is_asked(task: Task, asked: argparse.Namespace) -> bool:
    kind, name = task
    return (
        (not asked.providers or kind in asked.providers)
        and (not asked.gone or name.startswith(_GONE))
        and (not asked.world or any(one in name for one in asked.world))
    )


def _asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("providers", nargs="*", metavar="PROVIDER", help="; ".join(ACCOUNTS))
    parser.add_argument("--some", action="store_true", help="a sample, as every test run does")
    parser.add_argument("--world", action="append", help="only those with this in their name")
    parser.add_argument("--gone", action="store_true", help="only the table of the laptop")
    parser.add_argument("--step", type=int, default=3, help="every so manieth point is killed at")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="what was clean is kept here, not tried again")
    parser.add_argument("--into", type=Path, help="page whose tables are replaced")
    return parser.parse_args(arguments)


_GONE = "the laptop is gone: "


def _fates(variant: str) -> Job:
    """The lines of the laptop-gone table as what a job tells."""

    def job(here: Stage) -> Count:
        lines = tuple(gone_table(here, variant))
        return Count(told=list(lines))

    return job


def _page(tasks: Iterable[Task], done: dict[Task, tuple[Count, float]]) -> Iterator[str]:
    """The tables in the order of the programme."""
    total, took_s = Count(), 0.0
    tried = [task for task in tasks if task in done and not task[1].startswith(_GONE)]
    for kind in dict.fromkeys(kind for kind, _ in tried):
        yield from ("", f"| {kind} | trials | killed | {' | '.join(_TITLES.values())} |")
        yield f"|---|{'---:|' * (len(_TITLES) + 2)}"
        here = Count()
        for name in (name for one, name in tried if one == kind):
            count, one_s = done[kind, name]
            here.add(count)
            took_s += one_s
            yield f"| {name} | {_cells(count)} |"
        yield f"| **all** | {_cells(here)} |"
        total.add(here)
    if tried:
        yield from ("", _told_of(total, took_s))
    gone = [task for task in tasks if task in done and task[1].startswith(_GONE)]
    if gone:
        yield from ("", *HEAD, *(line for task in gone for line in done[task][0].told))


def _told_of(total: Count, took_s: float) -> str:
    return (
        f"{total.trials} trials, {total.kills} of them killed, {took_s / 60:.0f} minutes of one "
        f"process; {total.billed} machines were held against the provider's bill; after the "
        f"deadline with nobody there {total.may_stay} were billed, each in a case that the preview "
        "names."
    )


def _cells(count: Count) -> str:
    return " | ".join(
        str(n) for n in (count.trials, count.kills, *(getattr(count, n) for n in _TITLES))
    )


def _put(page: Path, text: str) -> None:
    """Replace what stands between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise SystemExit(f"{page} has no lines {_BEGIN} and {_END}")
    page.write_text(f"{before}{_BEGIN}\n{text.strip()}\n\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    assert set(_TITLES) == set(BAD)
    sys.exit(main(sys.argv[1:]))
