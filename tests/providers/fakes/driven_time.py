"""A time that passes when somebody sleeps, for stand-ins and what is tested against them."""

import mmap
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from time_machine import Traveller

_FORM = struct.Struct("d")
_MONOTONIC = time.monotonic


class DrivenTime:
    """How far the time is ahead of the real one; a file shares it between processes.

    Args:
        traveller: moves the clock of this process.
        shared: file of the shared figure; None: it is shared with forked processes only.
    """

    def __init__(self, traveller: "Traveller", shared: Path | None) -> None:
        self._traveller = traveller
        self._skew_s = 0.0
        if shared is None:
            self._ahead = mmap.mmap(-1, _FORM.size)
        else:
            if not shared.exists():
                shared.write_bytes(_FORM.pack(0.0))
            with shared.open("r+b") as stream:
                self._ahead = mmap.mmap(stream.fileno(), _FORM.size)
        self.sync()

    @property
    def ahead_s(self) -> float:
        """Seconds that were slept so far."""
        return float(_FORM.unpack(self._ahead[:])[0])

    def sleep(self, seconds: float) -> None:
        """Move the time on, at once."""
        self._ahead[:] = _FORM.pack(self.ahead_s + max(0.0, seconds))
        self.sync()

    def reset(self) -> None:
        """Go back to the real time."""
        self._ahead[:] = _FORM.pack(0.0)
        self.sync()

    def skew(self, seconds: float) -> None:
        """Let the clock of this process alone be ahead by so much."""
        self._skew_s = seconds
        self.sync()

    def sync(self) -> None:
        """Take over what another process has slept."""
        import time_machine  # noqa: PLC0415 - only where time is driven

        self._traveller.move_to(time_machine.escape_hatch.time.time() + self.ahead_s + self._skew_s)


@contextmanager
def driven_time(shared: Path | None = None) -> Iterator[DrivenTime]:
    """Drive the time of this process: `time.sleep` returns at once, and it is later.

    All clocks of the process are meant, `datetime.now` and `time.monotonic` included, so stand-ins
    that it serves see the same time.

    Args:
        shared: file by which several processes have one time.
    """
    import time_machine  # noqa: PLC0415 - only where time is driven

    with time_machine.travel(time.time(), tick=True) as traveller:
        driven = DrivenTime(traveller, shared)

        def monotonic() -> Any:
            return _MONOTONIC() + driven.ahead_s

        with (
            mock.patch("time.sleep", driven.sleep),
            mock.patch("time.monotonic", monotonic),
        ):
            yield driven
