"""What `gpucost doctor` checks of launches: the journal, limits, clocks and orphans."""

import os
from collections.abc import Iterator

from gpucost.files.user_folders import state_folder
from gpucost.machines.state import CLOCK, open_cloud, open_journal
from pricing.errors import GpucostError
from pricing.listing import counted
from providers.journal.journal import FILE, JournalError
from providers.registry import CLOUDS

_MOST_SKEW_S = 60.0


def check_launches() -> Iterator[tuple[str, str, str]]:
    """Yield name, state and detail of the journal and of each provider with credentials."""
    folder = state_folder()
    if not (folder / FILE).exists():
        yield "journal", "none", f"nothing was launched from {folder}"
    try:
        if (folder / FILE).exists():
            with open_journal() as journal:
                runs = [run for run in journal.deployments() if run.state != "ended"]
                yield "journal", "ok", f"{len(runs)} open runs, in {folder}"
    except JournalError as error:
        yield "journal", "fail", error.problems[0]
    for name, provider in CLOUDS.items():
        if any(os.environ.get(variable) for variable in provider.asked_with):
            yield from _provider(name)


def _provider(provider: str) -> Iterator[tuple[str, str, str]]:
    """Yield the limits, the clock and the orphans at one provider."""
    try:
        cloud = open_cloud(provider)
        limits, seen = cloud.limits(), cloud.ours(None)
    except GpucostError as error:
        yield provider, "fail", error.problems[0]
        return
    yield from ((f"{provider} quota", "read", limit) for limit in limits)
    wrong = abs(cloud.skew_s) > _MOST_SKEW_S
    skew = f"{provider} is {cloud.skew_s:+.0f} s ahead of this machine"
    yield f"{provider} clock", "fail" if wrong else "ok", skew
    yield from ((f"{provider} orphans", "fail", one.text) for one in seen.unasked)
    yield from ((f"{provider} orphans", "fail", one) for one in seen.strangers)
    there = seen.resources
    late = {one.marks.run for one in there if one.marks.deadline < CLOCK.at(cloud.skew_s)}
    machines = sum(one.is_machine for one in there)
    told = (
        f"{counted(machines, 'machine')} of ours, {counted(len(late), 'run')} past their deadline"
    )
    advice = "; gpucost reap removes them" if late else ""
    yield f"{provider} orphans", "fail" if late else "ok", told + advice
