"""Serves the signals of this process while the command runs: each reaches the command once.

All are blocked and taken one by one. What only we got is passed on; what the command got itself, as
one of our group, is not. When the command stops, so do we, and the shell that started us sees it.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from telemetry.measure.command.witness import ALL, Witness

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# A sender that signals a process and then its group, or all of a control group one by one, is done
# within this time; what only we have got by then was meant for us alone.
_TOGETHER_S = 0.05
_LOOK_S = 0.002
# The kernel's own, by which it tells us of our children and of what the sampler says.
MESSAGE = signal.SIGIO
_OURS = frozenset((signal.SIGCHLD, MESSAGE))
_BY_TERMINAL = frozenset((signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU))


class Receiver(Protocol):
    """What gets the signals: a `child.Child`."""

    stopped_by: int | None

    def look(self) -> bool:
        """Take note of what became of it; return whether it has ended."""
        ...

    def send(self, number: int) -> None:
        """Send it a signal."""
        ...


@dataclass(slots=True)
class _Shared:
    """Signals of a moment ago that the whole group got: a second copy is the same act."""

    numbers: frozenset[int] = frozenset()
    until_s: float = float("-inf")

    def now(self) -> frozenset[int]:
        return self.numbers if time.monotonic() < self.until_s else frozenset()


@dataclass(slots=True)
class Relay:
    """The signals of this process, from before the command starts to after its end.

    Args:
        command: the program and its arguments.

    Attributes:
        mask: what was blocked before, for the command.
    """

    command: Sequence[str]
    mask: Collection[int] = field(init=False)
    _witness: Witness = field(init=False)
    _shared: _Shared = field(default_factory=_Shared)

    def __post_init__(self) -> None:
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
        self._witness = Witness(self.command)

    def begun(self, to: Receiver) -> None:
        """Pass on what came while the command was being started: it was not there to get it."""
        for number in sorted(signal.sigpending() & self._witness.seen() - _OURS):
            to.send(number)

    def cancel(self) -> None:
        """Take signals as before: no command was started."""
        self._witness.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def close(self) -> None:
        """End the witness; signals stay blocked, for there is only the end to come."""
        self._witness.close()

    def serve(self, to: Receiver) -> None:
        """Wait for signals, and pass on those that only we have got."""
        got = taken(ALL, None)
        until_s = time.monotonic() + _TOGETHER_S
        while got:
            seen = self._witness.seen()
            alone = got - seen - self._shared.now()
            left_s = until_s - time.monotonic()
            if not alone or left_s <= 0:
                self._forget(got & seen)
                break
            got |= taken(ALL, min(_LOOK_S, left_s))
        if not to.look():
            for number in sorted(alone if got else ()):
                to.send(number)

    def after(self, timeout_s: float) -> frozenset[int]:
        """Wait for signals after the command's end; return those that are not of its last act."""
        return taken(ALL, timeout_s) - self._shared.now()

    def _forget(self, shared: frozenset[int]) -> None:
        """Start again after signals that the whole group got."""
        if not shared:
            return
        waiting = self._witness.seen() & signal.sigpending()  # seen, and still to come to us
        self._witness.renew()
        self._shared = _Shared(shared | waiting, time.monotonic() + _TOGETHER_S)


def stop(number: int) -> None:
    """Stop as the command did, where a terminal stopped it, until the shell goes on with us."""
    if number not in _BY_TERMINAL:
        return  # a debugger's: it goes on with the command, and knows nothing of us
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def taken(numbers: Collection[int], timeout_s: float | None) -> frozenset[int]:
    """Wait for a signal; return it, unless it is the kernel's word of our child or the sampler.

    Args:
        numbers: to wait for; they are blocked.
        timeout_s: the longest time, None for as long as it takes.
    """
    got = (
        signal.sigwaitinfo(numbers)
        if timeout_s is None
        else signal.sigtimedwait(numbers, max(0.0, timeout_s))
    )
    if got is None or (got.si_signo in _OURS and got.si_code > 0):
        return frozenset()
    return frozenset((got.si_signo,))
