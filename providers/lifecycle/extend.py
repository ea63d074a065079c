"""A later deadline for a run: told to whoever ends it, then to its machines, and read back there.

Nothing is changed before every machine has answered and proved that it ends itself. Marks at the
provider come first and the machines last: dying in between leaves machines that end at the earlier
deadline, and nobody who ends them before it. Doing it again goes on; a deadline never gets earlier.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from msgspec import structs

from pricing.errors import PartialError, ProviderError, RefusedError
from pricing.money import EXACT
from providers.interface import OUTSIDE, Deployment, JournaledResource, Resource
from providers.journal.ledger import bill_run, usd_for
from providers.lifecycle.end import as_resource
from providers.lifecycle.presence import ask
from providers.lifecycle.session import Session
from providers.ssh.connection import Login, Proof

_STATES = ("ready", "not-proved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A later deadline that nothing speaks against so far.

    Attributes:
        run: as the journal knows it.
        machines: that are there.
        proofs: what each says of its end, by id; empty where machines need not end themselves.
        until: the later deadline.
        usd: what the run costs at most when its bill ends then, exact; None: its price is unknown.
    """

    run: Deployment
    machines: tuple[Resource, ...]
    proofs: Mapping[str, Proof]
    until: datetime
    usd: Decimal | None


def plan_extension(
    session: Session, run: Deployment, by_s: Decimal, end_s: Decimal, *, ends_itself: bool
) -> Extension:
    """Ask the provider and the machines of a run whether it may end later; changes nothing.

    Args:
        session: with its provider.
        run: of the journal.
        by_s: how much later, in seconds, > 0.
        end_s: most seconds from a deadline until the bill ends.
        ends_itself: whether its machines end themselves.

    Raises:
        RefusedError: it is not running, or over.
        ProviderError: a machine cannot be asked, or does not prove that it ends itself.
    """
    name, until = run.marks.run, run.marks.deadline + timedelta(seconds=float(by_s))
    if run.state not in _STATES:
        raise RefusedError(f"{name} is {run.state}: only a run that is ready can be extended.")
    machines = _machines(session, run)
    if session.now() >= run.marks.deadline:
        raise RefusedError(f"the deadline of {name}, {_text(run.marks.deadline)}, has passed.")
    proofs = _proofs(session, run, machines) if ends_itself else {}
    usd = worst_usd(run, until + timedelta(seconds=float(end_s)))
    return Extension(run=run, machines=machines, proofs=proofs, until=until, usd=usd)


def worst_usd(run: Deployment, ends_at: datetime) -> Decimal | None:
    """Return what a run costs if it is billed until then, at the highest price agreed to."""
    if run.offer is None:
        return None
    agreed_usd = None if run.terms is None else run.terms.most_usd_per_hour
    price = max(run.offer.usd_per_hour, agreed_usd or Decimal(0))
    offer = structs.replace(run.offer, usd_per_hour=price)
    bill = bill_run(replace(run, offer=offer), ends_at)
    if bill.usd is None or run.pool is None:
        return bill.usd
    # Its autoscaler may add nodes from the first moment on; the journal learns of them later.
    more = max(0, (run.pool.max_nodes or run.count) - bill.machines)
    lived_s = Decimal(str((ends_at - run.started_at).total_seconds()))
    return EXACT.add(bill.usd, usd_for(offer, more, lived_s, run.started_at) if more else 0)


def _machines(session: Session, run: Deployment) -> tuple[Resource, ...]:
    """Return the machines of a run that are there, and its pool.

    Raises:
        ProviderError: one cannot be asked about.
        RefusedError: none is there.
    """
    machines, doubts = list[Resource](), list[str]()
    for entry in run.computing:
        answer = ask(session, entry, run.marks) if entry.state == "made" else None
        ends = answer and answer.resource and answer.resource.state == "ending"
        if answer is None or answer.state == "gone" or ends:
            continue
        if answer.resource is None:
            doubts.append(f"{entry.name} ({entry.id}): {answer.why}")
        else:
            machines.append(_named(answer.resource, entry))
    if doubts:
        raise ProviderError((*doubts, _unchanged(run)))
    if not machines:
        raise RefusedError(f"no machine of {run.marks.run} is there to be extended.")
    return tuple(machines)


def _named(resource: Resource, entry: JournaledResource) -> Resource:
    return resource if resource.address else replace(resource, address=entry.address)


def _proofs(
    session: Session, run: Deployment, machines: tuple[Resource, ...]
) -> Mapping[str, Proof]:
    """Return what each machine says of its end.

    Raises:
        ProviderError: one does not answer, or does not end itself.
    """
    login = session.login(run.marks.run)
    if login is None:
        problem = f"the key of {run.marks.run} is not here, so its machines cannot be told."
        raise ProviderError((problem, _unchanged(run)))
    proofs = {machine.id: login.proof(machine) for machine in machines}
    problems = [
        f"{machine.name}: {why}" for machine in machines if (why := _trouble(proofs[machine.id]))
    ]
    if problems:
        raise ProviderError((*problems, _unchanged(run)))
    return proofs


def _trouble(proof: Proof) -> str:
    """Return why a machine cannot be told a later deadline; empty: it can."""
    if proof.fault or proof.deadline is None or proof.life_s is None:
        return proof.fault or "it does not say when it ends"
    return ""


def _unchanged(run: Deployment) -> str:
    return f"Nothing was changed: {run.marks.run} ends at {_text(run.marks.deadline)}."


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def extend(session: Session, extension: Extension, max_usd: Decimal | None) -> None:
    """Move the deadline of a run and see that each machine has taken it.

    Args:
        session: with its provider.
        extension: what was confirmed.
        max_usd: a cap that was named for it; None: that of the launch stays.

    Raises:
        ProviderError: the provider refused; no machine was told.
        PartialError: some machines end at the earlier deadline.
        JournalError: the intent cannot be written down; nothing was changed.
    """
    run, journal = extension.run.marks.run, session.journal
    later = replace(extension.run.marks, deadline=extension.until)
    journal.note(run, session.now(), f"about to move its deadline to {_text(extension.until)}")
    outside = (
        resource
        for resource in extension.run.resources
        if resource.kind == OUTSIDE and resource.state == "made"
    )
    for resource in (*extension.machines, *(as_resource(entry, later) for entry in outside)):
        for new_resource in session.cloud.mark(resource, later):
            journal.record(new_resource, session.now())
    late = list(_tell(session, extension))
    if late:
        early = "; ".join(late)
        raise PartialError(
            f"{run} was not extended as a whole: {early}. The same command goes on; "
            f"what was not told ends at the earlier deadline."
        )
    journal.extend_run(run, extension.until, extension.usd, max_usd, session.now())


def _tell(session: Session, extension: Extension) -> Iterator[str]:
    """Tell the machines; yields those that have not taken it, in words."""
    login = session.login(extension.run.marks.run) if extension.proofs else None
    if login is None:
        return
    for machine in extension.machines:
        fault = _tell_one(login, machine, extension.proofs[machine.id], extension.until)
        if fault:
            yield f"{machine.name}: {fault}"
            continue
        message = f"{machine.name} is armed: it ends itself at {_text(extension.until)}"
        note = partial(session.journal.note, extension.run.marks.run, session.now(), message)
        session.try_writing(note)
        session.say(message)


def _tell_one(login: Login, machine: Resource, before: Proof, until: datetime) -> str:
    """Return why a machine does not keep the deadline, as it says once told; empty: it does."""
    if before.deadline is None or before.life_s is None:
        return before.fault
    later_s = max(0, round((until - before.deadline).total_seconds()))
    until, life_s = max(until, before.deadline), before.life_s + later_s
    try:
        login.set_deadline(machine, until, life_s)
        proof = login.proof(machine)
    except ProviderError as error:
        return error.problems[0]
    if proof.fault:
        return proof.fault
    if (proof.deadline, proof.life_s) != (until, life_s):
        return f"it goes by {proof.deadline} and a life of {proof.life_s} s"
    return ""
