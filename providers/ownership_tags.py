"""The marks on everything we make: run, deadline, owner and plan, as tags or inside a name.

Providers without tags for a kind of resource carry the same four in its name. What has no complete
marks is not ours and is never touched.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pricing.errors import InputError

OWNER = "GPUCOST_OWNER"
PREFIX = "gpucost"
_FORMAT = "%Y%m%dT%H%M%SZ"
_FORBIDDEN = re.compile(r"[^A-Za-z0-9-]+")
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another
_RUN_LETTERS = 8
_LONGEST = 48
_FIELDS = ("run", "deadline", "owner", "plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Whose a resource is, and until when.

    Attributes:
        run: the launch that made it; unique.
        deadline: when it must be gone, aware, whole seconds.
        owner: who launched it, letters, digits and dashes.
        plan: what it was launched for, letters, digits and dashes.
    """

    run: str
    deadline: datetime
    owner: str
    plan: str

    def __post_init__(self) -> None:
        problems = [
            f"{name} is {value!r}; letters, digits and dashes, at most {_LONGEST}"
            for name, value in (("run", self.run), ("owner", self.owner), ("plan", self.plan))
            if not value or _FORBIDDEN.search(value) or len(value) > _LONGEST
        ]
        if self.deadline.tzinfo is None:
            problems.append(f"deadline is {self.deadline}, without a time zone")
        if problems:
            raise InputError(f"marks: {problem}" for problem in problems)

    def text(self, separator: str) -> str:
        """The marks as one word, such as "gpucost-run:k3f9xw2m:20261121T201500Z:ada:plan"."""
        told = self.tags()
        return separator.join((f"{PREFIX}-run", *(told[name] for name in _FIELDS)))

    def tags(self) -> dict[str, str]:
        """The marks by name."""
        return {
            "run": self.run,
            "deadline": self.deadline.astimezone(UTC).strftime(_FORMAT),
            "owner": self.owner,
            "plan": self.plan,
        }

    def name(self, what: str) -> str:
        """The name of a resource of the run that is unique for its kind."""
        return f"{PREFIX}-{self.run}-{what}"


def read_marks(tags: Mapping[str, str]) -> Marks | None:
    """The marks among tags by name; None where they are not complete: it is not ours."""
    try:
        deadline = datetime.strptime(tags["deadline"], _FORMAT).replace(tzinfo=UTC)
        return Marks(deadline=deadline, **{name: tags[name] for name in ("run", "owner", "plan")})
    except (KeyError, ValueError, InputError):
        return None


def read_text(text: str, separator: str) -> Marks | None:
    """The marks in a word that `Marks.text` made; None where it is none."""
    first, *fields = text.split(separator)
    if first != f"{PREFIX}-run" or len(fields) != len(_FIELDS):
        return None
    return read_marks(dict(zip(_FIELDS, fields, strict=True)))


def new_run() -> str:
    """A name for a launch that no other launch has."""
    import secrets  # noqa: PLC0415 - `gpucost plan` names no run

    return "".join(secrets.choice(_LETTERS) for _ in range(_RUN_LETTERS))


def clean(text: str) -> str:
    """Any text as an owner or plan: what tags do not hold becomes a dash."""
    return _FORBIDDEN.sub("-", text).strip("-")[:_LONGEST] or "unnamed"


def owner_of(environment: Mapping[str, str]) -> str:
    """Who launches: GPUCOST_OWNER, else the user's name and this machine's."""
    named = environment.get(OWNER, "").strip()
    if named:
        return clean(named)
    import getpass  # noqa: PLC0415 - only where a run is named
    import socket  # noqa: PLC0415 - the same

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have
        user = "user"
    return clean(f"{user}-{socket.gethostname()}")
