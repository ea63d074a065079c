"""What every step of the lifecycle works with: a cloud, the journal, the time, somebody to tell."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pricing.catalog.offer import Offer
from pricing.errors import PartialError
from providers.interface import Cloud, Deployment, Resource
from providers.journal.journal import Journal, JournalError
from providers.ssh.connection import Login

_MOST_UNTOLD_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time, and a pause.

    Attributes:
        now: the local time, aware.
        sleep: waits so many seconds.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = field(default=time.sleep)

    def at(self, skew_s: float) -> datetime:
        """Return the time by a clock that is ahead of ours by so much, in whole seconds."""
        return (self.now() + timedelta(seconds=skew_s)).replace(microsecond=0)


class Stopwatch:
    """Seconds since it was made: by the clock, or the pauses that were made, whichever is more.

    A clock that is set back does not make a wait endless; a computer that slept has waited.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._start, self._paused_s = clock, clock.now(), 0.0

    def pause(self, seconds: float) -> None:
        """Wait."""
        self._clock.sleep(seconds)
        self._paused_s += seconds

    @property
    def elapsed_s(self) -> float:
        """Seconds so far."""
        return max((self._clock.now() - self._start).total_seconds(), self._paused_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each wait may take; in seconds, so that lost answers in a row end none early.

    Attributes:
        pause_s: between two looks, at first; see `pause_after`.
        running_s: until a machine runs.
        bootstrap_s: until it says that it is ready.
        gone_s: until everything of a run is gone.
        unasked_s: for a part of a provider that cannot be asked, where no known id depends on it.
        calls: tries of a call that may be repeated.
        longest_wait_s: before it is repeated, also where the provider asks for more.
    """

    pause_s: float = 5.0
    running_s: float = 900.0
    bootstrap_s: float = 1200.0
    gone_s: float = 900.0
    unasked_s: float = 30.0
    calls: int = 5
    longest_wait_s: float = 60.0

    def pause_after(self, waited_s: float) -> float:
        """Return the seconds until the next look: a tenth of the wait so far, six pauses at most.

        A provider that keeps one waiting for minutes is not asked every few seconds meanwhile: each
        look is a call to every region.
        """
        return max(self.pause_s, min(waited_s / 10, 6 * self.pause_s))


def skew_told(provider: str, skew_s: float) -> tuple[str, ...]:
    """Return what to say of a provider's clock that is over a minute off.

    Nothing where it is less.
    """
    if abs(skew_s) <= _MOST_UNTOLD_S:
        return ()
    way = "ahead of" if skew_s > 0 else "behind"
    problem = f"the clock of {provider} is {abs(skew_s) / 60:.0f} minutes {way} this computer's"
    return (f"{problem}: deadlines and bills go by that of {provider}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One piece of work at one provider.

    Attributes:
        cloud: the provider.
        journal: what is written down.
        clock: the local time; `now` corrects it by what the provider's answers say.
        patience: how long to wait for what.
        say: is told what happens, in sentences.
        price: the offer of a machine that was found and is not in the journal.
        login: the way into the machines of a run; None where there is none from here.
        may_end: is asked whether a machine that somebody has renamed and retagged ends as well.
    """

    cloud: Cloud
    journal: Journal
    clock: Clock = field(default_factory=Clock)
    patience: Patience = field(default_factory=Patience)
    say: Callable[[str], None] = lambda _: None
    price: Callable[[Resource], Offer | None] = lambda _: None
    login: Callable[[str], Login | None] = lambda _: None
    may_end: Callable[[str], bool] = lambda _: False

    def now(self) -> datetime:
        """Return the time by the provider's clock, as far as its answers told it."""
        return self.clock.at(self.cloud.skew_s)

    def deployment(self, run: str) -> Deployment:
        """Return a run that the journal must have.

        Raises:
            PartialError: it has not.
        """
        deployment = self.journal.deployment(run)
        if deployment is None:
            raise PartialError(f"the journal lost {run}; `gpucost reap` finds it at the provider.")
        return deployment

    def try_writing(self, write: Callable[[], None]) -> None:
        """Write to the journal; where that fails, say so and go on: ending must not need a disk."""
        try:
            write()
        except JournalError as error:
            self.say(f"warning: not written down: {error.problems[0]}")
