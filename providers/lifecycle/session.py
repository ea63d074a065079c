"""What every step of the lifecycle works with: a cloud, the journal, the time, somebody to tell."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from pricing.catalog.offer import Offer
from providers.interface import Cloud, Resource
from providers.journal.journal import Journal, JournalError
from providers.lifecycle.waiting import Clock, Patience
from providers.ssh.login import Login


def _silent(_: str) -> None:
    """Tell nobody."""


def _no_price(_: Resource) -> Offer | None:
    return None


def _no_login(_: str) -> Login | None:
    return None


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
    """

    cloud: Cloud
    journal: Journal
    clock: Clock = field(default_factory=Clock)
    patience: Patience = field(default_factory=Patience)
    say: Callable[[str], None] = _silent
    price: Callable[[Resource], Offer | None] = _no_price
    login: Callable[[str], Login | None] = _no_login

    def now(self) -> datetime:
        """Return the time by the provider's clock, as far as its answers told it."""
        return self.clock.at(self.cloud.skew_s)

    def try_writing(self, write: Callable[[], None]) -> None:
        """Write to the journal; where that fails, say so and go on: ending must not need a disk."""
        try:
            write()
        except JournalError as error:
            self.say(f"warning: not written down: {error.problems[0]}")
