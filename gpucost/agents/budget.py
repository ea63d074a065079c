"""What agents may spend: a limit in dollars, held across calls, servers and restarts.

Each launch is written down with its cap before anything is made. Until its run is proved to be gone
it counts with that cap, and from then on with what it was billed.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from planner.plan_document.encode import encode
from pricing.errors import RefusedError
from pricing.money import show

FILE = "agent-launches.jsonl"

Billed = Mapping[str, Decimal]
"""What runs that have ended were billed, in dollars; without those where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCap:
    """A line of `agent-launches.jsonl`; the last one of a run counts.

    Attributes:
        run: its name.
        cap_usd: what it may cost; 0 where nothing was made for it.
    """

    run: str
    cap_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The dollars that all launches of agents from one state folder may come to.

    Attributes:
        usd: the limit; None: nothing may be launched.
        folder: of the journal.
    """

    usd: Decimal | None
    folder: Path

    def runs(self) -> frozenset[str]:
        """Return the ids of the runs that agents launched, or tried to."""
        with self._opened() as file:
            return frozenset(_caps(file, self.folder / FILE))

    def spent(self, billed: Billed) -> Decimal:
        """Return what all launches come to at most, in dollars."""
        with self._opened() as file:
            return _spent(_caps(file, self.folder / FILE), billed)

    def reserve(self, run: str, cap: Decimal, billed: Billed) -> None:
        """Write down that a run may cost as much as its cap.

        Raises:
            RefusedError: it would be more than what is left.
        """
        self.check(cap, billed, run)

    def check(self, cap: Decimal, billed: Billed, run: str = "") -> Decimal:
        """Return what is left in dollars, after a launch with this cap; with a run, reserve it.

        Raises:
            RefusedError: there is no budget, or it would be more than what is left.
        """
        if self.usd is None:
            raise RefusedError(
                "this server has no budget, and launches nothing: start it with "
                "`gpucost mcp --budget USD`."
            )
        with self._opened() as file:
            left = self.usd - _spent(_caps(file, self.folder / FILE), billed)
            if cap > left:
                raise RefusedError(
                    f"max_usd {show(cap)} is more than what is left of the budget: "
                    f"${show(max(left, Decimal(0)))} of ${show(self.usd)}. Runs count with their "
                    "cap until they are ended (`down`), then with their bill."
                )
            if run:
                _write(file, run, cap)
        return left - cap

    def release(self, run: str) -> None:
        """Count a run with nothing: nothing was made for it."""
        with self._opened() as file:
            _write(file, run, Decimal(0))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the file, with nobody else in it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self.folder / FILE, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _write(file: int, run: str, cap: Decimal) -> None:
    os.write(file, f"{json.dumps(encode(AgentCap(run=run, cap_usd=cap)))}\n".encode())
    os.fsync(file)


def _caps(file: int, path: Path) -> dict[str, Decimal]:
    """Return the cap of each run that was written down."""
    os.lseek(file, 0, os.SEEK_SET)
    text = b"".join(iter(lambda: os.read(file, 1 << 16), b"")).decode("utf-8", "replace")
    caps = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            told = json.loads(line)
            caps[str(told["run"])] = Decimal(told["cap_usd"])
        except (ValueError, KeyError, TypeError, InvalidOperation):
            raise RefusedError(
                f"{path}:{number} is damaged: what agents launched is not known, and nothing more "
                "is launched. `gpucost list` shows what runs; mend the line, or remove the file."
            ) from None
    return caps


def _spent(caps: dict[str, Decimal], billed: Billed) -> Decimal:
    return sum((billed.get(run, cap) for run, cap in caps.items()), Decimal(0))
