"""What is asked of a machine itself: whether its bootstrap is done, and to take the end token."""

from dataclasses import dataclass
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


class Login(Protocol):
    """A way into machines."""

    def status(self, machine: Resource) -> Status:
        """How far it is; pending while it cannot be reached."""

    def deliver(self, machine: Resource) -> None:
        """Hand over what it needs to end itself, where the provider demands that.

        Raises:
            ProviderError: it could not be handed over.
        """
