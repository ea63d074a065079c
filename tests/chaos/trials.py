"""Trials: something goes wrong, then everything is ended, and what is left is counted."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from providers.interface import Deployment, Kept
from providers.lifecycle.journal import Journal
from providers.lifecycle.ledger import bill_machine
from tests.chaos.children import Trouble, prepare_aws, run, start, wait
from tests.chaos.worlds import Remote, world
from tests.providers.fakes.aws_account import REGIONS

Command = tuple[str, ...]
_SECOND = timedelta(seconds=2)  # providers tell whole seconds, also of what time it is
_LATE_S = 1.2  # until a launch with a TTL of a second is past its deadline
_LAUNCH = ("provision", "--ttl", "2h", "--yes", "--allow-stale", "--no-self-destroy")
LAUNCHES: dict[str, dict[str, Command]] = {
    "digitalocean": {
        "1x GPU": (*_LAUNCH, "--type", "digitalocean/gpu-h100x1-80gb"),
        "8x GPU": (*_LAUNCH, "--type", "digitalocean/gpu-h100x8-640gb"),
        "two nodes": (*_LAUNCH, "--type", "digitalocean/gpu-h100x8-640gb", "--count", "2"),
    },
    "aws": {
        "1x GPU": (*_LAUNCH, "--type", "aws/g6.xlarge/us-east-1"),
        "8x GPU": (*_LAUNCH, "--type", "aws/p5.48xlarge/us-east-1"),
        "two nodes": (*_LAUNCH, "--type", "aws/g6.xlarge/us-east-1", "--count", "2"),
        "spot": (*_LAUNCH, "--type", "aws/p5.48xlarge/us-east-1", "--purchase", "spot"),
    },
}
DOWN: Command = ("down", "--all", "--yes")
REAP: Command = ("reap", "--all-owners", "--yes")


@dataclass(kw_only=True)
class Count:
    """What trials of one kind left.

    Attributes:
        trials: how many.
        kills: of them, with a process that was killed.
        machines, side_resources: of ours that are left; must be 0.
        foreign: of others that are gone; must be 0.
        ledger: machines whose ledger disagrees with the provider's; must be 0.
        billed: machines whose ledger was held against the provider's.
        refused: commands of the clean-up that did not end with 0; must be 0.
        told: what went wrong, with the log.
    """

    trials: int = 0
    kills: int = 0
    machines: int = 0
    side_resources: int = 0
    foreign: int = 0
    ledger: int = 0
    billed: int = 0
    refused: int = 0
    told: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left and nothing else was touched."""
        bad = (self.machines, self.side_resources, self.foreign, self.ledger, self.refused)
        return not any(bad)

    def add(self, other: "Count") -> None:
        """Add the counts of another kind."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(kw_only=True)
class Stage:
    """A provider, and a folder for the journal of the trial."""

    remote: Remote
    folder: Path
    state: Path = field(default_factory=Path)
    log: Path = field(default_factory=Path)
    number: int = 0

    @contextmanager
    def trial(self) -> Iterator[None]:
        """An account without anything of ours, and no journal."""
        self.number += 1
        self.state = self.folder / f"trial-{self.number}"
        self.log = self.folder / f"trial-{self.number}.log"
        self.remote.ask("reset")
        with mock.patch.dict(
            "os.environ",
            self.remote.environment() | {"GPUCOST_STATE_DIR": str(self.state)},
            clear=False,
        ):
            yield
        shutil.rmtree(self.state, ignore_errors=True)

    def run(self, command: Command, trouble: Trouble | None = None) -> tuple[int, int]:
        """Run a command; its exit code and its points."""
        return run(command, trouble or Trouble(), self.log)

    def clean_up(self, count: Count, *, ledger: bool = True) -> None:
        """End everything, and count what is left."""
        before = self.remote.ask("foreign")
        for command in (DOWN, REAP):
            code, _ = self.run(command)
            if code != 0:
                count.refused += 1
                count.told.append(f"{' '.join(command)} ended with {code}: {self.log}")
        machines, side = self.remote.ask("left")
        gone = set(before) - set(self.remote.ask("foreign"))
        count.trials += 1
        count.machines += len(machines)
        count.side_resources += len(side)
        count.foreign += len(gone)
        for what, names in (("machines", machines), ("side", side), ("foreign", gone)):
            if names:
                count.told.append(f"{what}: {sorted(names)}: {self.log}")
        if ledger:
            self._check_ledger(count)

    def _check_ledger(self, count: Count) -> None:
        """Hold every machine of the journal against the life that the provider saw."""
        bills = self.remote.ask("bills")
        journal = Journal(self.state)
        runs = journal.deployments()
        journal.close()
        known = {one.id: (run, one) for run in runs for one in run.machines if one.id}
        for key, (born, died) in bills.items():
            if died is None:
                continue  # one of the others
            count.billed += 1
            run, one = known.get(key, (None, None))
            told = "is not in the journal"
            if one is not None and one.billed_from and one.billed_until and run is not None:
                told = _disagrees(run, one, born, died)
            if told:
                count.ledger += 1
                count.told.append(f"ledger: {key} {told}: {self.log}")
        open_runs = [run.marks.run for run in runs if run.state != "ended"]
        if open_runs:
            count.ledger += 1
            count.told.append(f"ledger: {open_runs} still open: {self.log}")


def _disagrees(run: Deployment, one: Kept, born: datetime, died: datetime) -> str:
    """What is wrong with a machine's ledger; empty: nothing.

    It begins when the provider made the machine, ends when it was seen to be gone, never before
    the provider ended it, and bills at least the seconds between.
    """
    if one.billed_from is None or one.billed_until is None:
        return "has no times"
    late = one.billed_until - datetime.now(UTC) > _SECOND
    if abs(one.billed_from - born) > _SECOND or died - one.billed_until > _SECOND or late:
        return f"lived {born} to {died}, and is billed {one.billed_from} to {one.billed_until}"
    billed_s, usd = bill_machine(one, run.offer, one.billed_until)
    if usd is None or usd <= 0 or billed_s < (died - born - _SECOND).total_seconds():
        return f"lived {died - born}, and is billed {billed_s} s, {usd} USD"
    return ""


@contextmanager
def stage(kind: str) -> Iterator[Stage]:
    """A provider to play with, in a folder that goes away when all was well."""
    folder = Path(tempfile.mkdtemp(prefix="gpucost-chaos-"))
    with world(kind, folder) as remote:
        if kind == "aws":
            with mock.patch.dict("os.environ", remote.environment()):
                prepare_aws(REGIONS)
        yield Stage(remote=remote, folder=folder)


def kills(here: Stage, command: Command, *, step: int = 1, first: Command = ()) -> Count:
    """Kill a command at every `step`-th of its points, each in a trial of its own.

    Args:
        here: the stage.
        command: what is killed.
        step: 1 is every point.
        first: is run to its end before, such as a launch that is then ended.
    """
    count = Count()
    with here.trial():
        _before(here, first)
        code, points = here.run(command)
        if code != 0 or not points:
            raise RuntimeError(f"{' '.join(command)} ends with {code} by itself: {here.log}")
        here.clean_up(count)
    for at in range(0, points, step):
        with here.trial():
            _before(here, first)
            code, _ = here.run(command, Trouble(kill_at=at))
            count.kills += code == -9
            here.clean_up(count)
    return count


def _before(here: Stage, first: Command) -> None:
    if first:
        here.run(first)
    if "1s" in first:
        time.sleep(_LATE_S)


def faults(here: Stage, command: Command, told: list[dict[str, Any]]) -> Count:
    """Let each of the faults happen to a command, each in a trial of its own."""
    count = Count()
    for fault in told:
        with here.trial():
            here.remote.ask("fault", **fault)
            here.run(command)
            here.clean_up(count)
    return count


def skews(here: Stage, command: Command, seconds: tuple[float, ...]) -> Count:
    """Run a command with a clock that is wrong."""
    count = Count()
    for skew_s in seconds:
        with here.trial():
            here.run(command, Trouble(skew_s=skew_s))
            here.clean_up(count)
    return count


def two_at_once(here: Stage, pairs: list[tuple[Command, Command]]) -> Count:
    """Run two commands at the same time."""
    count = Count()
    for pair in pairs:
        with here.trial():
            for child in [start(command, here.log) for command in pair]:
                wait(child)
            here.clean_up(count)
    return count


def full_disk(here: Stage, command: Command, limits: tuple[int, ...]) -> Count:
    """Run a command whose journal cannot grow beyond so many bytes."""
    count = Count()
    for limit in limits:
        with here.trial():
            here.run(command, Trouble(file_limit=limit))
            here.clean_up(count)
    return count


def unreadable(here: Stage, command: Command, points: tuple[int | None, ...]) -> Count:
    """Damage the journal of a launch that was killed, or that was finished."""
    count = Count()
    for at in points:
        with here.trial():
            code, _ = here.run(command, Trouble(kill_at=at))
            count.kills += code == -9
            for path in here.state.glob("journal.sqlite*"):
                path.write_bytes(b"no database" * 2000)
            here.clean_up(count, ledger=False)
    return count
