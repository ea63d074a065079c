"""What became of an action that a recipe asked for."""

from dataclasses import dataclass

from planner.profile.fields import text
from planner.profile.kinds import OUTCOMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `gpucost run` made of one action of a recipe."""

    action: str | None = text("action code; `environment` for a variable that belongs to none")
    outcome: str | None = text("what became of it", choices=OUTCOMES)
    what: str | None = text("what was set, or why it was left")
    where: str | None = text("which loader, model or optimizer; null where it is the whole run")

    @property
    def sentence(self) -> str:
        """The change in words."""
        place = f" in {self.where}" if self.where else ""
        return f"{self.outcome} {self.action}{place}: {self.what}"
