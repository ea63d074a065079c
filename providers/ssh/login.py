"""What is asked of a machine itself: how far its bootstrap is, and what ends it at its deadline."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from providers.interface import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a machine's bootstrap is.

    Attributes:
        state: pending while there is no word.
        reason: why it failed.
    """

    state: Literal["pending", "ready", "failed"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a machine says about its own end, as it was seen there just now.

    Attributes:
        deadline: that its watch goes by; None where it has none.
        clock: its time of day; None where it does not say.
        fault: why it would not end itself; empty: it would.
        answered: whether it could be asked.
        life_s: longest life that its watch goes by, in seconds; None where it has none.
    """

    deadline: datetime | None
    clock: datetime | None
    fault: str
    answered: bool = True
    life_s: int | None = None


class Login(Protocol):
    """A way into machines."""

    def status(self, machine: Resource) -> Status:
        """Return how far it is; pending while it cannot be reached."""

    def deliver(self, machine: Resource, peers: tuple[Resource, ...]) -> None:
        """Hand over what it needs to end itself, and where the other machines of the run are.

        Args:
            machine: who gets it.
            peers: every machine of the run, in the order of their ranks.

        Raises:
            ProviderError: it could not be handed over.
        """

    def proof(self, machine: Resource) -> Proof:
        """Return what ends it; a fault where it cannot be asked."""

    def set_deadline(self, machine: Resource, deadline: datetime, life_s: int) -> None:
        """Let its watch go by another deadline, and another length of its life in seconds.

        Raises:
            ProviderError: it could not be told.
        """
