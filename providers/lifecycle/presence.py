"""Whether something is there: told from positive answers about its id, and from nothing else.

A provider's reads lag behind its writes, its lists leave things out, a part of it may not answer.
So absence from a list says nothing. Gone is what the provider calls ended; what it let us end and
then knows no more; or what it knows no more, again and again, longer than its reads may lag.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pricing.errors import ProviderError
from providers.interface import (
    COMPUTING,
    NODE,
    Deployment,
    ExistenceCheck,
    JournaledResource,
    NotQueried,
    Regions,
    Resource,
    as_kept,
)
from providers.lifecycle.session import Session, Stopwatch
from providers.ownership_tags import OwnershipTags, latest

LOOKS = 3
"""Answers in a row that do not show a thing, before it counts as gone without an accepted end."""

SPAN_S = 10.0
"""Least seconds between the first and the last of them: one stale replica is not an end."""


@dataclass(kw_only=True)
class Evidence:
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
    last: ExistenceCheck = field(default=ExistenceCheck.not_asked("not asked yet"))
    _first_s: float = 0.0
    _latest_s: float = 0.0

    def add(self, answer: ExistenceCheck, at_s: float) -> ExistenceCheck:
        """Weigh an answer that came so many seconds after the watch was started."""
        if self.last.state == "gone":
            return self.last
        if answer.state == "not-shown":
            answer = self._missed(answer, at_s)
        elif answer.state != "not-asked":  # no answer takes nothing back
            self.looks = 0
        self.last = answer
        return answer

    def _missed(self, answer: ExistenceCheck, at_s: float) -> ExistenceCheck:
        """Count a look that did not show it, from when that begins to say something."""
        self._latest_s = at_s
        doubt = "" if self.accepted else self.doubt()
        if doubt:
            return ExistenceCheck.not_asked(doubt)
        if not (self.accepted or self._is_old):
            return answer
        self._first_s = self._first_s if self.looks else at_s
        self.looks += 1
        enough = self.looks >= LOOKS and at_s - self._first_s >= SPAN_S
        ended = self.accepted and self.looks >= LOOKS - 1
        return ExistenceCheck.ended(answer.why) if ended or enough else answer

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
    session: Session, entry: JournaledResource, doubt: Callable[[], str] = str
) -> Evidence:
    """Begin with no answers about a resource of the journal; `doubt` as in `Evidence`."""
    born = max(filter(None, (entry.intended_at, entry.billed_from)))
    age_s = (session.now() - born).total_seconds()
    return Evidence(lag_s=session.cloud.lag_s, age_s=age_s, doubt=doubt)


def ask(session: Session, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
    """Return what the provider answers about an id now."""
    try:
        return session.cloud.look(entry, marks)
    except ProviderError as error:
        return ExistenceCheck.not_asked(error.problems[0])


def settled(
    session: Session,
    questions: Iterable[tuple[JournaledResource, OwnershipTags, Callable[[], str]]],
) -> Mapping[str, ExistenceCheck]:
    """Return what is known about machines of the journal, by id; each is asked for by its id.

    With each come its run's marks, and its `doubt`, as in `Evidence`.

    One that is not shown although it is older than the provider's lag is asked for again until that
    proves its end, for some SPAN_S seconds; a young one stays not-shown.
    """
    watch = Stopwatch(session.clock)
    open_ = {
        entry.id: (entry, marks, evidence_of(session, entry, doubt))
        for entry, marks, doubt in questions
        if entry.id
    }
    answers: dict[str, ExistenceCheck] = {}
    while open_:
        for key, (entry, marks, evidence) in tuple(open_.items()):
            answers[key] = evidence.add(ask(session, entry, marks), watch.elapsed_s)
            if not evidence.may_settle_soon:
                del open_[key]
        if open_:
            watch.pause(SPAN_S / (LOOKS - 1))
    return answers


def account_of(session: Session) -> str:
    """Return the account of the credentials at hand; empty where the provider does not say it."""
    try:
        return session.cloud.account()
    except ProviderError:
        return ""


def why_unproved(session: Session, account: str) -> str:
    """Return why an id that the provider does not know may be there; empty: it may not.

    Args:
        session: with the provider.
        account: that the id is in, as the journal says; empty: it does not say.
    """
    if not account:
        return ""
    try:
        current = session.cloud.account()
    except ProviderError as error:
        return f"whose account the credentials are of could not be asked: {error.problems[0]}"
    return "" if current == account else _other_account(session, account, current)


def in_other_accounts(session: Session, runs: Iterable[Deployment]) -> Mapping[str, str]:
    """Return runs known to be in another account than the credentials are of, and what to say."""
    noted = {run.marks.run: run.account for run in runs if run.account}
    current = account_of(session) if noted else ""
    other_accounts = {
        run: account for run, account in noted.items() if current not in ("", account)
    }
    return {
        run: _other_account(session, account, current) for run, account in other_accounts.items()
    }


def _other_account(session: Session, account: str, current: str) -> str:
    return (
        f"it is in account {account} of {session.cloud.name}, and these credentials are of another "
        f"account, {current}; use those of {account}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What one provider has of ours.

    Attributes:
        resources: everything that is there, of every run and owner.
        machines: what is known of each machine of the journal's open runs, by id.
        unsure: run -> its machines that the provider neither shows nor proves gone, in words.
        gaps: parts of the provider of which nothing is known.
        strangers: what looks like ours and is not provably so, in words.
    """

    resources: tuple[Resource, ...]
    machines: Mapping[str, ExistenceCheck]
    unsure: Mapping[str, tuple[str, ...]]
    gaps: tuple[NotQueried, ...]
    strangers: tuple[str, ...]

    @property
    def machines_are_complete(self) -> bool:
        """Whether every machine of ours that the provider shows is in it."""
        return not any(gap.kind in ("", *COMPUTING) for gap in self.gaps)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Everything that it does not know, in words."""
        unsure = (text for several in self.unsure.values() for text in several)
        return (*unsure, *(gap.text for gap in self.gaps), *self.strangers)


def survey(session: Session, regions: Regions = None) -> Survey:
    """Ask a provider what there is.

    Raises:
        JournalError: the journal cannot be read.
    """
    journal, provider = session.journal, session.cloud.name
    open_ = [run for run in journal.open_deployments() if run.provider == provider]
    listing = session.cloud.list_owned(regions, None, {run.marks.run: run.marks for run in open_})
    _record_new(session, open_, listing.resources)
    checks = {resource.id: ExistenceCheck.present(resource) for resource in listing.resources}
    unlisted = [
        (machine, run)
        for run in open_
        for machine in run.computing
        if machine.state == "made" and machine.id not in checks
    ]
    answers = presence_of(session, unlisted)
    present = {resource.marks.run for resource in listing.resources}
    present |= {
        run.marks.run for machine, run in unlisted if answers[machine.id].state == "present"
    }
    other_accounts = in_other_accounts(session, [r for r in open_ if r.marks.run not in present])
    unsure = {run: (f"{run} is not known here: {why}",) for run, why in other_accounts.items()}
    for machine, run in unlisted:
        answer = answers[machine.id]
        if answer.state in _WORDS and run.marks.run not in other_accounts:
            word = _WORDS[answer.state] if answer.is_ours else "left alone"
            doubt = f"{machine.name} ({machine.id}) is {word}: {answer.why}"
            unsure[run.marks.run] = (*unsure.get(run.marks.run, ()), doubt)
    found_by_id = (answer.resource for answer in answers.values() if answer.resource is not None)
    checks |= answers
    nodes = {n.id: n for a in answers.values() if a.is_ours for n in a.nodes if n.id not in checks}
    _record_new(session, open_, nodes.values())
    checks |= {id_: ExistenceCheck.present(node) for id_, node in nodes.items()}
    return Survey(
        resources=(*listing.resources, *found_by_id, *nodes.values()),
        machines=checks,
        unsure=unsure,
        gaps=listing.gaps,
        strangers=listing.strangers,
    )


def _record_new(
    session: Session, runs: Iterable[Deployment], resources: Iterable[Resource]
) -> None:
    """Write down machines that no call of ours was answered with, for they cost.

    Those are nodes that a cluster's autoscaler added, and a second machine of one name.
    """
    machines = {run.marks.run: [o for o in run.machines if o.id] for run in runs}
    for resource in resources:
        run_machines = machines.get(resource.marks.run, [])
        is_more = resource.kind == NODE or resource.name in {o.name for o in run_machines}
        is_new = resource.is_machine and resource.id not in {o.id for o in run_machines}
        if resource.marks.run in machines and is_more and is_new:
            session.try_writing(partial(session.journal.record, resource, session.now()))


_WORDS = {"not-shown": "not shown, which does not prove its end", "not-asked": "not asked about"}


def presence_of(
    session: Session, questions: Collection[tuple[JournaledResource, Deployment]]
) -> Mapping[str, ExistenceCheck]:
    """Return what is known of machines of the journal, by id; write down what is proved gone."""
    answers = settled(
        session,
        (
            (machine, run.marks, partial(why_unproved, session, run.account))
            for machine, run in questions
        ),
    )
    for machine, run in questions:
        if answers[machine.id].state == "gone":
            write = partial(session.journal.mark_gone, run.marks.run, machine, session.now())
            session.try_writing(write)
    return answers


def unknown_runs(session: Session, resources: tuple[Resource, ...]) -> tuple[str, ...]:
    """Return runs that the provider lists and the journal does not know, or believes ended."""
    open_runs = {run.marks.run for run in session.journal.open_deployments()}
    return tuple(dict.fromkeys(o.marks.run for o in resources if o.marks.run not in open_runs))


def found_run(session: Session, resources: Iterable[Resource], run: str) -> Deployment:
    """Return a run that only the provider knows, as the journal would know it once adopted."""
    resources = [resource for resource in resources if resource.marks.run == run]
    machines = [resource for resource in resources if resource.is_machine]
    return Deployment(
        marks=latest(resource.marks for resource in resources),
        provider=session.cloud.name,
        offer=session.price(machines[0]) if machines else None,
        region=machines[0].region if machines else "",
        count=len(machines),
        state="unknown",
        started_at=min((o.created_at for o in machines if o.created_at), default=session.now()),
        ended_at=None,
        predicted_usd=None,
        resources=tuple(as_kept(resource, session.now()) for resource in resources),
        reason="not in the journal",
        account=account_of(session),
    )
