"""Orphans: compares what the provider lists with our marks to the journal, and removes or adopts.

Removed are intents without a result, machines past the deadline in their marks, leftovers of an
end or of a failed launch, and side resources without a machine. Kept are live machines inside their
deadline, everything of other owners unless asked, and whatever another process is working on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Literal

from providers.interface import Deployment, Regions, Resource
from providers.lifecycle.end import duplicates, end_duplicates, end_run, regions_of
from providers.lifecycle.presence import Survey, found_run
from providers.lifecycle.readiness import ask_again, finish, is_given_up, pool_fault
from providers.lifecycle.session import Session
from providers.ownership_tags import OwnershipTags, latest, owns

YOUNG = timedelta(hours=1)
"""Longer than a launch goes from place to place; no run's side resources go before."""

Action = Literal["remove", "keep", "adopt", "finish", "prove", "close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to happen to a run, and why.

    Attributes:
        marks: of the run.
        provider: where it is.
        action: remove it; keep it; adopt it into the journal; finish its launch, where its machines
            prove that they end themselves; ask them for that proof; close its entry, because
            nothing of it is there.
        why: in words.
        resources: what is there of it.
        regions: where to look for it; None: everywhere.
        is_ours: whether the owner who asks launched it.
    """

    marks: OwnershipTags
    provider: str
    action: Action
    why: str
    resources: tuple[Resource, ...]
    regions: Regions
    is_ours: bool


def judge(session: Session, survey: Survey, owner: str, *, all_owners: bool) -> tuple[Verdict, ...]:
    """Return what a reap would do about what a survey of the provider found; change nothing.

    Raises:
        JournalError: the journal cannot be read.
    """
    journal, provider = session.journal, session.cloud.name
    journaled: dict[str, Deployment | None] = {
        run.marks.run: run for run in journal.open_deployments() if run.provider == provider
    }
    listed: dict[str, list[Resource]] = {}
    for resource in survey.resources:
        listed.setdefault(resource.marks.run, []).append(resource)
    for run in listed:  # one that ended may have left something
        journaled.setdefault(run, journal.deployment(run))
    verdicts = []
    action: Action
    for run, deployment in journaled.items():
        resources = tuple(listed.get(run, ()))
        own = () if deployment is None else (deployment.marks,)
        marks = latest((*(resource.marks for resource in resources), *own))
        is_ours = owns(owner, marks.owner)
        if not is_ours and not all_owners:
            action, why = "keep", f"belongs to {marks.owner}"
        else:
            action, why = _decide(session, marks, resources, deployment, survey)
        if action in ("adopt", "prove") and not is_ours:
            action, why = "keep", f"belongs to {marks.owner}, live inside its deadline"
        verdicts.append(
            Verdict(
                marks=marks,
                provider=session.cloud.name,
                action=action,
                why=why,
                resources=resources,
                regions=_regions(resources, deployment),
                is_ours=is_ours,
            )
        )
    return tuple(verdicts)


def _regions(
    resources: tuple[Resource, ...], deployment: Deployment | None
) -> tuple[str, ...] | None:
    listed = {resource.region for resource in resources} - {""}
    if deployment is None:
        return tuple(sorted(listed)) or None
    regions = regions_of(deployment)
    return None if regions is None else tuple(sorted({*regions, *listed}))


def _decide(
    session: Session,
    marks: OwnershipTags,
    resources: tuple[Resource, ...],
    deployment: Deployment | None,
    survey: Survey,
) -> tuple[Action, str]:
    """Apply the rules in order; the first that fits decides."""
    machines = {resource.name for resource in resources if resource.computes}
    broken = next((pool_fault(resource) for resource in resources if pool_fault(resource)), "")
    unsure = "; ".join(survey.unsure.get(marks.run, ()))
    lacks = deployment is not None and any(
        resource.state == "intended" for resource in deployment.resources
    )
    state = "" if deployment is None else deployment.state
    late = session.now() > marks.deadline
    is_complete = deployment is not None and (
        deployment.pool is not None or len(machines) >= deployment.count
    )
    blind = not survey.machines_are_complete
    rules: tuple[tuple[bool, Action, str], ...] = (
        (_is_held(session, marks.run), "keep", "another process is working on it"),
        (not resources and not lacks and not unsure, "close", "nothing of it is at the provider"),
        (state in ("ending", "failed", "ended"), "remove", "left over from its end"),
        (lacks, "remove", "an intent without a result"),
        (bool(broken), "remove", broken),
        (late, "remove", f"past its deadline, {marks.deadline:%Y-%m-%d %H:%M} UTC"),
        (bool(unsure), "keep", unsure),
        (not machines and blind, "keep", "its machines could not be asked about"),
        (not machines and _is_young(session, marks), "keep", "its launch may still be going on"),
        (not machines, "remove", "side resources without a machine"),
        (deployment is None, "adopt", "live inside its deadline, and not in the journal"),
        (state == "launching" and is_complete, "finish", "all its machines are there"),
        (state == "launching", "remove", "its launch broke off before all machines were there"),
        (state == "not-proved", "prove", "nothing proves yet that its machines end themselves"),
    )
    return next(
        ((action, why) for holds, action, why in rules if holds),
        ("keep", "live inside its deadline"),
    )


def _is_young(session: Session, marks: OwnershipTags) -> bool:
    """Return whether a launch from elsewhere may be making machines that no list shows yet."""
    return marks.started is not None and session.now() - marks.started < YOUNG


def _is_held(session: Session, run: str) -> bool:
    with session.journal.working_on(run) as is_free:
        return not is_free


def carry_out(session: Session, verdict: Verdict) -> int:
    """Do what was judged and return how many resources were destroyed.

    Raises:
        PartialError: something is still there.
    """
    with session.journal.working_on(verdict.marks.run) as is_free:
        if not is_free:
            return 0
        return _STEPS[verdict.action](session, verdict)


def _remove(session: Session, verdict: Verdict) -> int:
    adopt(session, verdict.marks, verdict.resources)
    return end_run(session, verdict.marks, verdict.regions, doing=f"reaped: {verdict.why}")


def _prove(session: Session, verdict: Verdict) -> int:
    """Ask its machines what ends them; one that says "nothing" for as long as a launch waits ends.

    What was not launched from here never ends before its deadline: nobody promised its proof.
    """
    adopt(session, verdict.marks, verdict.resources)
    run = session.journal.deployment(verdict.marks.run)
    if run is not None:
        status = ask_again(session, run, _computing(verdict))
        if is_given_up(session, run, status):
            why = f"reaped: {status.reason}"
            return end_run(session, verdict.marks, verdict.regions, doing=why)
    return _keep(session, verdict)


def _finish(session: Session, verdict: Verdict) -> int:
    """Arm the machines of a launch that broke off; what does not prove that it is armed ends."""
    adopt(session, verdict.marks, verdict.resources)
    marks, at = verdict.marks, session.now()
    run = session.journal.deployment(marks.run)
    if run is None:
        return _keep(session, verdict)
    status = finish(session, run, _computing(verdict))
    if status.state == "failed":
        session.say(f"{marks.run} is ended: {status.reason}")
        return end_run(session, marks, verdict.regions, doing=f"reaped: {status.reason}")
    if status.state == "pending":
        is_ = "" if run.self_destroy is False else "is armed, and "
        session.say(f"{marks.run} {is_}is not set up yet: `gpucost reap` looks again.")
        return _keep(session, verdict)
    session.try_writing(partial(session.journal.mark_run, marks.run, "ready", at))
    return _keep(session, verdict)


def _computing(verdict: Verdict) -> tuple[Resource, ...]:
    return tuple(resource for resource in verdict.resources if resource.computes)


def _keep(session: Session, verdict: Verdict) -> int:
    """Leave it; of two machines of one name the second goes."""
    if not verdict.is_ours:
        return 0
    more = duplicates(verdict.resources, session.journal.deployment(verdict.marks.run))
    end_duplicates(session, more)
    return len(more)


_STEPS: Mapping[str, Callable[[Session, Verdict], int]] = {
    "remove": _remove,
    "close": lambda session, v: end_run(session, v.marks, v.regions, doing=v.why),
    "adopt": _prove,
    "finish": _finish,
    "prove": _prove,
    "keep": _keep,
}


def adopt(session: Session, marks: OwnershipTags, resources: tuple[Resource, ...]) -> None:
    """Write down a run and what is there of it, as far as the journal does not know it."""

    def write() -> None:
        at = session.now()
        if resources and session.journal.deployment(marks.run) is None:
            run = found_run(session, resources, marks.run)
            run = replace(run, state="not-proved", started_at=at, resources=(), reason="")
            session.journal.adopt_run(replace(run, marks=marks))
        for resource in resources:
            session.journal.record(resource, at)

    session.try_writing(write)
