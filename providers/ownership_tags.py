"""The marks on everything we make: run, deadline, owner, plan and start, as tags or in a name.

Providers without tags for a kind of resource carry the same in its name. What has no complete
marks is not ours and is never touched.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pricing.errors import InputError

OWNER = "GPUCOST_OWNER"
PREFIX = "gpucost"
_FORMAT = "%Y%m%dT%H%M%SZ"
_FORBIDDEN = re.compile(r"[^A-Za-z0-9-]+")
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another
_RUN_LETTERS = 8
_LONGEST = 48
_FIELDS = ("run", "deadline", "owner", "plan")
_STARTED = "started"
_ID = "--"
"""Stands between the readable name of an owner and the id of the state folder; in neither."""

_OWNER_FILE = "owner"
_LONGEST_NAME = _LONGEST - len(_ID) - _RUN_LETTERS
_WHOLE_OWNER = re.compile(rf"[A-Za-z0-9-]+{_ID}[{_LETTERS}]{{{_RUN_LETTERS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipTags:
    """Whose a resource is, and until when.

    Attributes:
        run: the launch that made it; unique.
        deadline: when it must be gone, aware, whole seconds.
        owner: who launched it, letters, digits and dashes.
        plan: what it was launched for, letters, digits and dashes.
        started: when it was launched, aware, whole seconds; None where the marks do not say.
    """

    run: str
    deadline: datetime
    owner: str
    plan: str
    started: datetime | None = None

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
        """Return the marks as a word: "gpucost-run:k3f9xw2m:20261121T201500Z:ada--5hq2mzt8:...".

        The last field is when it was launched.
        """
        return separator.join((f"{PREFIX}-run", *self.tags().values()))

    def tags(self) -> dict[str, str]:
        """Return the marks by name."""
        fields = {
            "run": self.run,
            "deadline": _time(self.deadline),
            "owner": self.owner,
            "plan": self.plan,
        }
        return fields if self.started is None else fields | {_STARTED: _time(self.started)}

    def labels(self, separator: str) -> dict[str, str]:
        """Return the marks as labels: "gpucost:run" with `:`, "gpucost-run" with `-`."""
        return {f"{PREFIX}{separator}{name}": text for name, text in self.tags().items()}

    def name(self, suffix: str) -> str:
        """Return the name of a resource of the run that is unique for its kind."""
        return f"{PREFIX}-{self.run}-{suffix}"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime(_FORMAT)


def _read_time(text: str) -> datetime:
    return datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)


def read_marks(tags: Mapping[str, str]) -> OwnershipTags | None:
    """Return the marks among tags by name; None where they are not complete: it is not ours."""
    try:
        return OwnershipTags(
            deadline=_read_time(tags["deadline"]),
            started=_read_time(tags[_STARTED]) if _STARTED in tags else None,
            **{name: tags[name] for name in ("run", "owner", "plan")},
        )
    except (KeyError, ValueError, InputError):
        return None


def read_labels(labels: object, separator: str) -> OwnershipTags | None:
    """Return the marks among what a provider shows as labels; None where they are not complete."""
    if not isinstance(labels, Mapping):
        return None
    prefix = f"{PREFIX}{separator}"
    return read_marks(
        {str(k).removeprefix(prefix): str(v) for k, v in labels.items() if prefix in k}
    )


def read_text(text: str, separator: str) -> OwnershipTags | None:
    """Return the marks in a word that `OwnershipTags.text` made; None where it is none."""
    first, *fields = text.split(separator)
    names = (*_FIELDS, _STARTED)
    if first != f"{PREFIX}-run" or len(fields) not in (len(_FIELDS), len(names)):
        return None
    return read_marks(dict(zip(names, fields, strict=False)))


def latest(marks: Iterable[OwnershipTags]) -> OwnershipTags:
    """Return those with the latest deadline: one that was moved stands beside the first."""
    return max(marks, key=lambda tags: tags.deadline)


def until(marks: OwnershipTags, text: str) -> OwnershipTags:
    """Return marks with a deadline as `OwnershipTags.tags` writes it, where that is later."""
    try:
        return latest((marks, replace(marks, deadline=_read_time(text))))
    except ValueError:
        return marks


def new_run() -> str:
    """Return a name for a launch that no other launch has."""
    import secrets  # noqa: PLC0415 - `gpucost plan` names no run

    return "".join(secrets.choice(_LETTERS) for _ in range(_RUN_LETTERS))


def clean(text: str) -> str:
    """Return any text as an owner or plan: what tags do not hold becomes a dash."""
    return _FORBIDDEN.sub("-", text).strip("-")[:_LONGEST] or "unnamed"


def owner_of(environment: Mapping[str, str], state: Path) -> str:
    """Return who launches: a readable name and the state folder's id, "ada-laptop--5hq2mzt8".

    The name is GPUCOST_OWNER, else the user's and this machine's; two people of one name, or with
    names of which tags hold no letter, are two owners. GPUCOST_OWNER may be such an owner as a
    whole, to act for a folder that is lost or elsewhere. `keep_owner` makes the id, not this.
    """
    named = environment.get(OWNER, "").strip()
    if _WHOLE_OWNER.fullmatch(named):
        return named
    return f"{_short(clean(named) if named else _user())}{_ID}{_id_of(state) or 'new'}"


def _short(name: str) -> str:
    """Return it without the separator."""
    return re.sub("-+", "-", name).strip("-")[:_LONGEST_NAME].rstrip("-") or "unnamed"


def _user() -> str:
    import getpass  # noqa: PLC0415 - only where a run is named
    import socket  # noqa: PLC0415 - the same

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have
        user = "user"
    return clean(f"{user}-{socket.gethostname()}")


def _id_of(state: Path) -> str:
    """Return the id of a state folder; empty where it has none."""
    try:
        text = (state / _OWNER_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if len(text) == _RUN_LETTERS and set(text) <= set(_LETTERS) else ""


def keep_owner(state: Path, id_: str = "") -> None:
    """Give a state folder its id, once, a new one where none is named; it is made if need be.

    Raises:
        OSError: it cannot be written.
    """
    if _id_of(state):
        return
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, draft = state / _OWNER_FILE, state / f".{_OWNER_FILE}-{new_run()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(f"{id_ or new_run()}\n")
        stream.flush()
        os.fsync(handle)
    try:
        os.link(draft, path)  # of two processes at once the first wins
    except FileExistsError:
        if not _id_of(state):
            draft.replace(path)  # what was there is no id
    except OSError:  # a file system without links
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def restore_owner(state: Path, owner: str) -> None:
    """Give a state folder the id of an owner as marks have it, such as that of a lost folder.

    Raises:
        OSError: it cannot be written.
    """
    (state / _OWNER_FILE).unlink(missing_ok=True)
    keep_owner(state, owner.rpartition(_ID)[2])


def has_same_name(owner: str, tagged_owner: str) -> bool:
    """Return whether the owner in marks has this one's readable name, whatever its folder."""
    return owner.rpartition(_ID)[0] == tagged_owner.rpartition(_ID)[0] != ""


def owns(owner: str, tagged_owner: str) -> bool:
    """Return whether the owner in marks is this one; older versions' marks have the name alone."""
    return tagged_owner == owner or (
        tagged_owner != "unnamed" and tagged_owner == owner.rpartition(_ID)[0]
    )
