"""Whether something is there: told from positive answers about its id, and from nothing else.

A provider's reads lag behind its writes, its lists leave things out, a part of it may not answer.
So absence from a list says nothing. Gone is what the provider calls ended; what it let us end and
then knows no more; or what it knows no more, again and again, longer than its reads may lag.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pricing.errors import ProviderError
from providers.interface import JournaledResource, Resource
from providers.lifecycle.waiting import Stopwatch

if TYPE_CHECKING:  # which needs `providers.interface`, which names the values of this module
    from providers.lifecycle.session import Session
    from providers.ownership_tags import OwnershipTags

State = Literal["present", "gone", "not-shown", "not-asked"]

LOOKS = 3
"""Answers in a row that do not show a thing, before it counts as gone without an accepted end."""

SPAN_S = 10.0
"""Least seconds between the first and the last of them: one stale replica is not an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """What is known about one resource.

    Attributes:
        state: present: the provider shows it; gone: positively; not-shown: it is not shown, which
            proves nothing yet; not-asked: the provider could not be asked.
        resource: as the provider shows it, where it is present.
        why: for people, where it is not.
    """

    state: State
    resource: Resource | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """A part of a provider that could not be asked.

    Attributes:
        provider, kind, region: which part; an empty kind is every kind, an empty region every one.
        why: in a sentence.
    """

    provider: str
    kind: str
    region: str
    why: str

    @property
    def text(self) -> str:
        """The part and the reason, for people."""
        what = " ".join(filter(None, (self.provider, self.kind)))
        return f"{what}{f' in {self.region}' if self.region else ''} could not be asked: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a provider lists of ours, as far as it could be asked.

    Attributes:
        resources: what carries our marks, or is a machine named as one of ours.
        unasked: parts of which nothing is known.
        strangers: what looks like ours and is not provably so; it is told and never touched.
    """

    resources: tuple[Resource, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    strangers: tuple[str, ...] = ()


@dataclass(kw_only=True)
class AnswersSoFar:
    """The answers about one resource over time.

    Attributes:
        lag_s: how long after a write the provider's reads may not show it.
        age_s: of the resource, when the watch was started.
        looks: answers in a row that did not show it, of those that say something.
        accepted: whether the provider accepted its end.
        last: the newest answer.
        doubt: why an id that is not shown may be there all the same, as in another account; asked
            only when one is not shown. Empty: it may not.
    """

    lag_s: float
    age_s: float
    doubt: Callable[[], str] = str
    looks: int = 0
    accepted: bool = False
    last: Presence = field(default=Presence(state="not-asked", why="not asked yet"))
    _first_s: float = 0.0
    _latest_s: float = 0.0

    def add(self, answer: Presence, at_s: float) -> Presence:
        """Weigh an answer that came so many seconds after the watch was started."""
        if self.last.state == "gone":
            return self.last
        if answer.state == "not-shown":
            answer = self._missed(answer, at_s)
        elif answer.state != "not-asked":  # no answer takes nothing back
            self.looks = 0
        self.last = answer
        return answer

    def _missed(self, answer: Presence, at_s: float) -> Presence:
        """Count a look that did not show it, from when that begins to say something."""
        self._latest_s = at_s
        doubt = "" if self.accepted else self.doubt()
        if doubt:
            return Presence(state="not-asked", why=doubt)
        if not (self.accepted or self._is_old):
            return answer
        self._first_s = self._first_s if self.looks else at_s
        self.looks += 1
        enough = self.looks >= LOOKS and at_s - self._first_s >= SPAN_S
        ended = self.accepted and self.looks >= LOOKS - 1
        return Presence(state="gone", why=answer.why) if ended or enough else answer

    @property
    def _is_old(self) -> bool:
        return self.age_s + self._latest_s >= self.lag_s

    @property
    def is_gone(self) -> bool:
        """Whether it is proved."""
        return self.last.state == "gone"

    @property
    def may_settle_soon(self) -> bool:
        """Whether a few more looks can prove it: it is not shown, and old enough."""
        return self.last.state == "not-shown" and self._is_old


def evidence_of(
    session: "Session", one: JournaledResource, doubt: Callable[[], str] = str
) -> AnswersSoFar:
    """Begin with no answers about a resource of the journal; `doubt` as in `AnswersSoFar`."""
    born = max(filter(None, (one.intended_at, one.billed_from)))
    age_s = (session.now() - born).total_seconds()
    return AnswersSoFar(lag_s=session.cloud.lag_s, age_s=age_s, doubt=doubt)


def as_kept(one: Resource, now: datetime) -> JournaledResource:
    """Return what the journal would say of a resource that was found."""
    return JournaledResource(
        kind=one.kind,
        name=one.name,
        region=one.region,
        id=one.id,
        state="made",
        intended_at=one.created_at or now,
        billed_from=one.created_at,
        address=one.address,
    )


def ask(session: "Session", one: JournaledResource, marks: "OwnershipTags") -> Presence:
    """Return what the provider answers about an id now."""
    try:
        return session.cloud.look(one, marks)
    except ProviderError as error:
        return Presence(state="not-asked", why=error.problems[0])


def settled(
    session: "Session",
    wanted: Iterable[tuple[JournaledResource, "OwnershipTags", Callable[[], str]]],
) -> Mapping[str, Presence]:
    """Return what is known about machines of the journal, by id; each is asked for by its id.

    With each come its run's marks, and its `doubt`, as in `AnswersSoFar`.

    One that is not shown although it is older than the provider's lag is asked for again until that
    proves its end, for some SPAN_S seconds; a young one stays not-shown.
    """
    watch = Stopwatch(session.clock)
    open_ = {
        one.id: (one, marks, evidence_of(session, one, doubt))
        for one, marks, doubt in wanted
        if one.id
    }
    known: dict[str, Presence] = {}
    while open_:
        for key, (one, marks, evidence) in tuple(open_.items()):
            known[key] = evidence.add(ask(session, one, marks), watch.elapsed_s)
            if not evidence.may_settle_soon:
                del open_[key]
        if open_:
            watch.pause(SPAN_S / (LOOKS - 1))
    return known
