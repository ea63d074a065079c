"""What a shell offers for a half-typed value: providers, GPUs, regions, codes, options, runs.

From the bundled catalog, plan.json and the journal, without a network, and before the command's own
module is imported: a key that is pressed is answered in the time of a blink.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from gpucost.files.writing import state_folder
from pricing.catalog.offer import EVERYWHERE
from pricing.tables import DATA, read_csv
from providers.journal.journal_file import run_ids

_PLAN = "plan.json"
_MOST_BYTES = 64 * 1024**2  # a plan of some hundred jobs; what is larger would take seconds
_WHERE_RUNS = ("list", "logs", "ssh", "extend", "down")
_OF_PLANS = (
    "capacity",
    "diff",
    "export",
    "provision",
    "report",
    "run",
    "verify",
)
_OF_FILES = (*_OF_PLANS, "bill", "diagnose", "import", "plan")
_OWN_PROVIDERS = ("iam-policy",)  # whose --provider is a choice of its own


def add_values() -> None:
    """Let the shells that click knows be offered values, too."""
    for shell in (BashComplete, ZshComplete, FishComplete):
        add_completion_class(type(shell.__name__, (_Values, shell), {"name": shell.name}))


_Known = Callable[[list[str], str], Iterable[str]]
_Item = CompletionItem[str]


class _Values(ShellComplete):
    """Answers with known values; else as click does, and with files where that has nothing."""

    def get_completions(self, args: list[str], incomplete: str) -> list[_Item]:
        flag, before, typed = _split(args, incomplete)
        if flag in _OF_FLAGS and not (flag == "--provider" and args[0] in _OWN_PROVIDERS):
            return _offered(_OF_FLAGS[flag], args, before, typed)
        if args and args[0] in _OF_FILES and not flag and not incomplete.startswith("-"):
            return [_Item(incomplete, type="file")]
        argument = _OF_COMMANDS.get(args[0]) if args and not incomplete.startswith("-") else None
        items = [] if argument and not flag else super().get_completions(args, incomplete)
        if not items and argument:
            items = _offered(argument, args, "", incomplete)
        if items or incomplete.startswith("-"):
            return items
        return [_Item(incomplete, type="file")]


def _offered(values_of: _Known, args: list[str], before: str, typed: str) -> list[_Item]:
    """Return the values that go on from what is typed; a name with blanks is none for a shell."""
    texts = dict.fromkeys(text for text in values_of(args, typed) if text.startswith(typed))
    return [_Item(before + text) for text in texts if not any(map(str.isspace, text))]


def _split(args: list[str], incomplete: str) -> tuple[str, str, str]:
    """Return the option whose value is typed, what stands before the value, and the value.

    A shell hands `--option=a` over whole, or in three words.
    """
    if incomplete.startswith("--") and "=" in incomplete:
        flag, _, typed = incomplete.partition("=")
        return flag, f"{flag}=", typed
    if incomplete == "=" and args:
        return args[-1], "", ""
    if args[-1:] == ["="]:
        return args[-2] if args[1:] else "", "", incomplete
    last = args[-1] if args else ""
    return (last if last.startswith("-") else ""), "", incomplete


def _providers(_args: list[str], _typed: str) -> Iterator[str]:

    return iter(sorted(path.stem for path in (DATA / "offers").glob("*.csv")))


def _gpus(_args: list[str], _typed: str) -> Iterator[str]:

    return iter(sorted(row["gpu"] for row in read_csv("gpus.csv")))


def _regions(args: list[str], _typed: str) -> Iterator[str]:
    """Yield the regions of the providers that were typed, or all, and words for groups of them."""
    from pricing.catalog.regions import known_regions  # noqa: PLC0415 - as above

    named = {word for before, word in pairwise(args) if before == "--provider"}
    rows = read_csv("regions.csv")
    elsewhere = {row["region"] for row in rows if named and row["provider"] not in named}
    own = {row["region"] for row in rows if row["provider"] in named}
    return iter(sorted(known_regions(()) - (elsewhere - own)))


def _offers(_args: list[str], typed: str) -> Iterator[str]:
    """Yield PROVIDER/TYPE; its regions once the type is typed."""
    provider, _, place_text = typed.partition("/")
    for name in _providers([], ""):
        if not (name.startswith(provider) if "/" not in typed else name == provider):
            continue
        rows = [row for row in read_csv(f"offers/{name}.csv") if row["status"] == "current"]
        for row in rows:
            place = f"{name}/{row['instance_type']}"
            in_type = place_text.startswith(f"{row['instance_type']}/")
            everywhere = row["region"] == EVERYWHERE
            yield f"{place}/{row['region']}" if in_type and not everywhere else place


def _options(args: list[str], _typed: str) -> Iterator[str]:
    """Yield JOB/ID of the plan that was typed, or of ./plan.json."""
    path = Path(next((word for word in args if word.endswith(".json")), _PLAN))
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        if path.stat().st_size > _MOST_BYTES:
            return
        for job in json.loads(path.read_text(encoding="utf-8"))["jobs"]:
            for option_id in ("o0", *(option["id"] for option in job["options"])):
                yield f"{job['name']}/{option_id}"


def _runs(_args: list[str], _typed: str) -> Iterator[str]:

    with contextlib.suppress(OSError, sqlite3.Error):
        yield from run_ids(state_folder())


def _findings_and_actions(_args: list[str], _typed: str) -> Iterator[str]:
    from planner.diagnosis.rules import RULES  # noqa: PLC0415 - as above

    yield from sorted(rule.code for rule in RULES)
    yield from _actions([], "")


def _actions(_args: list[str], _typed: str) -> Iterator[str]:
    from planner.actions import ACTIONS  # noqa: PLC0415 - as above

    yield from sorted(ACTIONS)


def _feeds(_args: list[str], _typed: str) -> Iterator[str]:
    from pricing.feeds.feeds import FEEDS  # noqa: PLC0415 - as above

    yield from ("none", *sorted(FEEDS))


_OF_FLAGS: dict[str, _Known] = {
    "--provider": _providers,
    "--gpu": _gpus,
    "--region": _regions,
    "--current": _offers,
    "--type": _offers,
    "--option": _options,
    "--numeric": _actions,
    "--feed": _feeds,
}
_OF_COMMANDS: dict[str, _Known] = {
    "explain": _findings_and_actions,
    "quote": _offers,
    **dict.fromkeys(_WHERE_RUNS, _runs),
}
