"""Orphans: compares what the provider lists with our marks to the journal, and removes or adopts.

Removed are intents without a result, machines past the deadline in their marks, leftovers of an
end or of a failed launch, and side resources without a machine. Kept are live machines inside their
deadline, everything of other owners unless asked, and whatever another process is working on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from providers.interface import Deployment, Resource
from providers.lifecycle.end import end_run, regions_of
from providers.lifecycle.session import Session
from providers.ownership_tags import Marks

Action = Literal["remove", "keep", "adopt", "finish", "close"]
_OTHERS: Action = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to happen to a run, and why.

    Attributes:
        marks: of the run.
        provider: where it is.
        action: remove it; keep it; adopt it into the journal; finish its launch; close its entry,
            because nothing of it is there.
        why: in words.
        resources: what is there of it.
        regions: where to look for it; None: everywhere.
    """

    marks: Marks
    provider: str
    action: Action
    why: str
    resources: tuple[Resource, ...]
    regions: tuple[str, ...] | None


def judge(session: Session, owner: str, *, all_owners: bool) -> tuple[Verdict, ...]:
    """What a reap would do at one provider; changes nothing.

    Raises:
        ProviderError: the provider cannot be asked.
        JournalError: the journal cannot be read.
    """
    listed: dict[str, list[Resource]] = {}
    for one in session.cloud.ours(None):
        listed.setdefault(one.marks.run, []).append(one)
    journaled = {
        one.marks.run: one
        for one in session.journal.deployments()
        if one.provider == session.cloud.name
    }
    runs = dict.fromkeys((*(r for r, d in journaled.items() if d.state != "ended"), *listed))
    verdicts = []
    for run in runs:
        there, known = tuple(listed.get(run, ())), journaled.get(run)
        marks = there[0].marks if there else journaled[run].marks
        if marks.owner != owner and not all_owners:
            action, why = _OTHERS, f"belongs to {marks.owner}"
        else:
            action, why = _decide(session, marks, there, known)
        if action == "adopt" and marks.owner != owner:
            action, why = _OTHERS, f"belongs to {marks.owner}, live inside its deadline"
        regions = _regions(there, known)
        verdicts.append(
            Verdict(
                marks=marks,
                provider=session.cloud.name,
                action=action,
                why=why,
                resources=there,
                regions=regions,
            )
        )
    return tuple(verdicts)


def _regions(there: tuple[Resource, ...], known: Deployment | None) -> tuple[str, ...] | None:
    listed = {one.region for one in there}
    if known is None:
        return tuple(sorted(listed)) if "" not in listed else None
    here = regions_of(known)
    return None if here is None else tuple(sorted({*here, *listed}))


def _decide(
    session: Session,
    marks: Marks,
    there: tuple[Resource, ...],
    known: Deployment | None,
) -> tuple[Action, str]:
    """The rules, in order; the first that fits decides."""
    machines = [one for one in there if one.is_machine]
    lacks = known is not None and any(one.state == "intended" for one in known.resources)
    state = "" if known is None else known.state
    late = session.now() > marks.deadline
    whole = known is not None and len(machines) >= known.count
    rules: tuple[tuple[bool, Action, str], ...] = (
        (_is_held(session, marks.run), "keep", "another process is working on it"),
        (not there and not lacks, "close", "nothing of it is at the provider"),
        (state in ("ending", "failed", "ended"), "remove", "left over from its end"),
        (lacks, "remove", "an intent without a result"),
        (late, "remove", f"past its deadline, {marks.deadline:%Y-%m-%d %H:%M} UTC"),
        (not machines, "remove", "side resources without a machine"),
        (known is None, "adopt", "live inside its deadline, and not in the journal"),
        (state == "launching" and whole, "finish", "all its machines are there"),
        (state == "launching", "remove", "its launch broke off before all machines were there"),
    )
    return next(
        ((action, why) for holds, action, why in rules if holds),
        ("keep", "live inside its deadline"),
    )


def _is_held(session: Session, run: str) -> bool:
    with session.journal.working_on(run) as mine:
        return not mine


def carry_out(session: Session, verdict: Verdict) -> int:
    """Do what was judged and return how many resources were destroyed.

    Raises:
        PartialError: something is still there.
    """
    with session.journal.working_on(verdict.marks.run) as mine:
        if not mine:
            return 0
        return _STEPS[verdict.action](session, verdict)


def _remove(session: Session, verdict: Verdict) -> int:
    adopt(session, verdict.marks, verdict.resources)
    return end_run(session, verdict.marks, verdict.regions, doing=f"reaped: {verdict.why}")


def _close(session: Session, verdict: Verdict) -> int:
    return end_run(session, verdict.marks, verdict.regions, doing=verdict.why)


def _adopt(session: Session, verdict: Verdict) -> int:
    adopt(session, verdict.marks, verdict.resources)
    return 0


def _finish(session: Session, verdict: Verdict) -> int:
    adopt(session, verdict.marks, verdict.resources)
    run, at = verdict.marks.run, session.now()
    session.try_writing(partial(session.journal.mark_run, run, "ready", at))
    return 0


def _keep(session: Session, verdict: Verdict) -> int:
    """Leave it; machines that went by themselves are noted."""
    known = session.journal.deployment(verdict.marks.run)
    if known is not None:
        _note(session, known, verdict.resources)
    return 0


def _note(session: Session, known: Deployment, there: tuple[Resource, ...]) -> None:
    ids = {one.id for one in there}
    for one in known.machines:
        missing = one.state == "made" and one.id not in ids
        if missing and session.cloud.look(one, known.marks) is None:
            session.try_writing(partial(session.journal.gone, known.marks.run, one, session.now()))


def note_gone(session: Session, there: tuple[Resource, ...]) -> None:
    """Write down which machines of open runs are no longer there; they are no longer billed."""
    for known in session.journal.deployments():
        if known.provider == session.cloud.name and known.state == "ready":
            _note(session, known, there)


def unknown_runs(session: Session, there: tuple[Resource, ...]) -> tuple[str, ...]:
    """Runs that the provider lists and the journal does not know."""
    known = {one.marks.run for one in session.journal.deployments()}
    return tuple(dict.fromkeys(o.marks.run for o in there if o.marks.run not in known))


_STEPS: Mapping[str, Callable[[Session, Verdict], int]] = {
    "remove": _remove,
    "close": _close,
    "adopt": _adopt,
    "finish": _finish,
    "keep": _keep,
}


def adopt(session: Session, marks: Marks, resources: tuple[Resource, ...]) -> None:
    """Write down a run and what is there of it, as far as the journal does not know it."""

    def write() -> None:
        at = session.now()
        machines = [one for one in resources if one.is_machine]
        if session.journal.deployment(marks.run) is None:
            offer = session.price(machines[0]) if machines else None
            session.journal.adopt_run(marks, session.cloud.name, at, len(machines), offer)
        for one in resources:
            session.journal.record(one, at)

    session.try_writing(write)
