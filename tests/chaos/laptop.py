"""The laptop is gone: a launch dies at each of its steps, nobody comes, and the bill stops when?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from tests.chaos.computers import Boot
from tests.chaos.trials import LAUNCHES, Stage
from tests.chaos.wire import Command, Trouble
from tests.providers.fakes.world import World

_LONG_S = 48 * 3600.0
_SAID = re.compile(r"^.*\bfor each day\b.*$", re.MULTILINE)
"""The sentence of a preview that says what nobody ends, with its price."""

_RUN = re.compile(r"\b[a-z2-9]{8}(?=-\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What came of a launch that died.

    Attributes:
        step: after which it died.
        machines: that were there.
        over_min: minutes from the deadline until the last bill stopped; None: it never does.
    """

    step: str
    machines: int
    over_min: int | None

    @property
    def text(self) -> str:
        """For the table."""
        if not self.machines:
            return "no machine was made"
        if self.over_min is None:
            return "never"
        return f"{self.over_min} min after the deadline" if self.over_min > 0 else "before it"


def variants(kind: str) -> dict[str, tuple[Command, Boot]]:
    """The launches of the table, by how their machines end."""
    launch, dead = LAUNCHES[kind]["1x GPU"], Boot(starts=False)
    if kind == "aws":
        return {
            "powers off": (launch, Boot()),
            "never starts": (launch, dead),
            "never starts, --end-role": (LAUNCHES[kind]["end role"], dead),
        }
    if kind == "eks":
        bare, ended = LAUNCHES[kind]["1x GPU"], LAUNCHES[kind]["end role"]
        return {"--no-self-destroy": (bare, Boot()), "--end-role": (ended, Boot())}
    bare = (*launch, "--no-self-destroy")
    by = "with the CronJob" if kind == "doks" else "with a reaper token"
    return {by: (launch, Boot()), "--no-self-destroy": (bare, Boot())}


_MOST = 45
"""Steps that are tried of a launch that waits for its machine in vain: it has hundreds."""


def fates(here: Stage, launch: Command, boot: Boot) -> tuple[tuple[Fate, ...], str]:
    """What comes of a launch at each of its steps, and what its preview said about machines left.

    Nobody helps, for two days after the deadline.
    """
    if hasattr(here.account, "has_ender"):
        here.account.has_ender = "--no-self-destroy" not in launch
    with here.trial(World(), boot):
        whole = here.run(launch)
    said = _SAID.search(whole.output)
    found = []
    steps = whole.steps if boot.starts else whole.steps[:_MOST]
    for at, step in enumerate((*steps, "the end of the launch")):
        with here.trial(World(), boot):
            here.run(launch, Trouble(kill_at=at if at < len(steps) else len(whole.steps)))
            here.time.sleep(_LONG_S)
            left, _ = here.account.left()
            lives = here.account.lives().values()
            over = [died - here.deadline for _, died in lives if died is not None]
            last = max(over, default=timedelta())
            minutes = None if left else max(0, round(last.total_seconds() / 60))
            told = _RUN.sub("RUN", step)
            found.append(Fate(step=told, machines=len(lives), over_min=minutes))
    return tuple(found), said[0].strip() if said else "(the preview says nothing)"


HEAD = ("| provider | machines end by | dies | the bill stops |", "|---|---|---|---|")


def gone_table(here: Stage, name: str) -> Iterator[str]:
    """The lines of a variant in Markdown, neighbours of one fate in one line."""
    found, said = fates(here, *variants(here.kind)[name])
    for text, group in groupby(found, key=lambda fate: fate.text):
        steps = list(group)
        where = steps[0].step if len(steps) == 1 else f"{steps[0].step} .. {steps[-1].step}"
        yield f"| {here.kind} | {name} | {where} ({len(steps)} points) | {text} |"
    yield f"| {here.kind} | {name} | the preview says | {said} |"
