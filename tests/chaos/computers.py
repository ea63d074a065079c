"""The machines behind the accounts: they boot, arm their end, take a token, and end themselves.

A model of what the bootstrap does, driven by what the launch really handed over: the user data of
the create call, and what came over SSH. That the scripts do it is held by `tests/bootstrap`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Protocol

from tests.bootstrap.box import parts

GRACE_S, SILENT_S = 900, 1800
"""How long a machine stays whose bootstrap failed, and how long one may say nothing."""

BOOT_S = 40.0
"""From the create call until cloud-init runs what comes first."""

READY_S = 90.0
"""From there until the bootstrap says that it is ready."""

LOOK_S = 70.0
"""Most seconds from the deadline until the watch has seen it and called for the end."""

_TIMER = re.compile(r"OnCalendar=([-: \d]+) UTC\s+OnBootSec=(\d+)s")
_ARMING = re.compile(r"^\s*echo '(\S+) (\d+) (\d+)' \| put", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """What goes wrong on machines.

    Attributes:
        starts: whether its system starts at all.
        bootstraps: whether cloud-init comes as far as the packages and the bootstrap.
        reachable: whether SSH reaches it from here.
        fails: the bootstrap says that it failed.
    """

    starts: bool = True
    bootstraps: bool = True
    reachable: bool = True
    fails: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A machine as its account has it.

    Attributes:
        id: of the account.
        born: when it was made, by a right clock.
        user_data: what it was given.
        ends_by_power: whether the account ends what powers off.
    """

    id: str
    born: datetime
    user_data: str
    ends_by_power: bool

    @property
    def run(self) -> str:
        """The run that it is for."""
        return run_in(self.user_data)


class Estate(Protocol):
    """An account whose machines can end themselves."""

    def seen(self) -> Iterable[Seen]:
        """Machines of ours that are billed."""

    def end_itself(self, key: str, at: datetime) -> None:
        """One is ended at that time, by itself."""


@dataclass(kw_only=True)
class Computer:
    """One machine.

    Attributes:
        seen: as its account has it.
        boot: what goes wrong.
        token: what came over SSH to end itself with.
        moved: a later deadline and length of life that it was told over SSH.
    """

    seen: Seen
    boot: Boot
    token: str = ""
    moved: tuple[datetime, float] | None = None

    @property
    def arming(self) -> tuple[datetime, float] | None:
        """Deadline and length of life that its user data set; None where nothing sets them.

        By a boothook, or by a timer that the bootstrap starts, if cloud-init comes so far.
        """
        text = self.seen.user_data
        if not self.boot.starts:
            return None
        if self.moved is not None:
            return self.moved
        found = _ARMING.search(parts(text).get("cloud-boothook", ""))
        if found is not None:
            return datetime.fromtimestamp(int(found[2]), UTC), float(found[3])
        found = _TIMER.search(text)
        if found is not None and self.boot.bootstraps:
            return datetime.fromisoformat(f"{found[1]}+00:00"), float(found[2])
        return None

    def proof(self, now: datetime) -> tuple[datetime | None, str, int | None]:
        """What it says about its own end: the deadline, why it has no end, length of life."""
        arming = self.arming
        if arming is None or now < self._up:
            return None, "nothing watches the deadline", None
        fault = "" if self.can_end else "the token does not reach this machine"
        return arming[0], fault, int(arming[1])

    @property
    def can_end(self) -> bool:
        """Whether its call for the end would do anything."""
        return self.seen.ends_by_power or bool(self.token)

    def is_armed(self, now: datetime) -> bool:
        """Whether it will end itself, as it stands now."""
        return self.arming is not None and self.can_end and now >= self._up

    @property
    def _up(self) -> datetime:
        return self.seen.born + timedelta(seconds=BOOT_S)

    def status(self, now: datetime) -> tuple[str, str]:
        """Word of the bootstrap, and reason."""
        if not (self.boot.starts and self.boot.reachable) or now < self._up + timedelta(
            seconds=READY_S
        ):
            return "pending", ""
        if not self.boot.bootstraps:
            return "pending", ""
        return ("failed", "the driver shows 0 GPUs") if self.boot.fails else ("ready", "")

    def due(self) -> datetime | None:
        """When its watch ends it; None: never."""
        if self.arming is None or not self.can_end:
            return None
        deadline, ttl_s = self.arming
        ends = [deadline, self._up + timedelta(seconds=ttl_s)]
        if self.boot.fails or not self.boot.bootstraps:
            wait_s = READY_S if self.boot.fails else SILENT_S
            ends.append(self._up + timedelta(seconds=wait_s + GRACE_S))
        return max(self._up, min(ends)) + timedelta(seconds=LOOK_S)


@dataclass(kw_only=True)
class Computers:
    """All machines of an account."""

    estate: Estate
    boot: Boot = field(default_factory=Boot)
    known: dict[str, Computer] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def reset(self, boot: Boot) -> None:
        """Forget all machines; new ones boot like this."""
        self.boot = boot
        self.known.clear()
        self.ended.clear()

    def now(self) -> Mapping[str, Computer]:
        """Those that are billed, after what is due has happened."""
        at = datetime.now(UTC)
        found = {}
        for seen in self.estate.seen():
            one = self.known.setdefault(seen.id, Computer(seen=seen, boot=self.boot))
            due = one.due()
            if due is not None and due <= at:
                self.estate.end_itself(seen.id, due)
                self.ended.add(seen.id)
            else:
                found[seen.id] = one
        return found


_RUN = re.compile(r"for run ([a-z2-9]{8})")


@cache
def run_in(text: str) -> str:
    """The run that user data, packed or not, is for."""
    found = _RUN.search(text) or _RUN.search("\n".join(parts(text).values()))
    return "" if found is None else found[1]
