"""From running to ready: each machine is armed, which it proves, and then says that it is set up.

A machine counts as armed once it has said itself, after it was handed what it needs, that its watch
runs, that it goes by the run's deadline, and that what ends it works. A call that did not fail is
no proof. What is not armed is never ready.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from pricing.errors import ProviderError, RefusedError
from providers.interface import NODE, OUTSIDE, POOL, Deployment, LaunchSpec, Resource
from providers.lifecycle.session import Session, Stopwatch
from providers.ownership_tags import OwnershipTags
from providers.ssh.connection import Login, Proof, Status


def runs(pool: Resource, nodes: Iterable[Resource], count: int) -> bool:
    """Return whether a pool runs with that many nodes."""
    running = sum(node.state == "running" for node in nodes)
    return pool.state == "running" and running >= count


def is_pool(resources: Iterable[Resource]) -> bool:
    """Return whether what is there of a run is a pool and its nodes."""
    return any(resource.kind in (POOL, NODE) for resource in resources)


def pool_fault(resource: Resource) -> str:
    """Return why a pool is good for nothing: it failed, or is being deleted; empty: it may run."""
    if resource.kind != POOL or resource.state not in ("failed", "ending"):
        return ""
    fault = "it is being deleted" if resource.state == "ending" else resource.fault or "it failed"
    return f"{resource.name}: {fault}"


def pool_status(run: Deployment, resources: tuple[Resource, ...]) -> Status:
    """Return how far the pool of a run is, of which everything that is there was listed.

    Pending where it runs with fewer nodes than it was launched with, which may be still starting.
    """
    pools = [resource for resource in resources if resource.kind == POOL]
    broken = next(filter(None, map(pool_fault, pools)), "")
    if broken:
        return Status(state="failed", reason=broken)
    nodes = [resource for resource in resources if resource.kind == NODE]
    min_nodes = run.count if run.pool is None or run.pool.min_nodes is None else run.pool.min_nodes
    if any(runs(resource, nodes, min_nodes) for resource in pools):
        return Status(state="ready")
    return Status(state="pending")


_LEAST_S = 60.0  # a launch may take so long, however short the life of its machines

MOST_SKEW = timedelta(minutes=1)
"""Clocks that are further apart are told."""


def await_ready(
    session: Session, spec: LaunchSpec, machines: tuple[Resource, ...], login: Login
) -> None:
    """Wait until every machine is armed and set up.

    Raises:
        ProviderError: one failed, with its reason, is not armed, or says nothing.
        RefusedError: the deadline passed meanwhile.
    """
    faults = {machine.id: "it does not answer yet" for machine in machines if spec.self_destroy}
    waiting, watch, patience = list(machines), Stopwatch(session.clock), session.patience
    while watch.elapsed_s < patience.bootstrap_s:
        check_time(session, spec)
        for machine in tuple(waiting):
            if faults.get(machine.id):
                faults[machine.id] = arm(session, machine, machines, login, spec.marks.deadline)
            status = login.status(machine)
            if status.state == "failed":
                raise ProviderError(f"{machine.name} is not usable: {status.reason}")
            if status.state == "ready" and not faults.get(machine.id):
                _hand_over(session, machine, machines, login, armed=machine.id in faults)
                waiting.remove(machine)
        if not waiting:
            return
        watch.pause(patience.pause_s)
    check_time(session, spec)
    raise _not_ready(session, waiting, faults)


def _hand_over(
    session: Session,
    machine: Resource,
    machines: tuple[Resource, ...],
    login: Login,
    *,
    armed: bool,
) -> None:
    """Do what else a machine needs, where it was not armed, and note that it is ready."""
    if not armed:
        login.deliver(machine, machines)
    session.journal.note(machine.marks.run, session.now(), f"{machine.name} is ready")


def _not_ready(session: Session, waiting: list[Resource], faults: dict[str, str]) -> ProviderError:
    waited_s = session.patience.bootstrap_s
    unarmed = [
        f"{machine.name}: {faults[machine.id]}" for machine in waiting if faults.get(machine.id)
    ]
    names = ", ".join(machine.name for machine in waiting)
    if unarmed:
        problem = f"within {waited_s:g} s nothing proved that these machines end themselves at the "
        return ProviderError((f"{problem}deadline: {'; '.join(unarmed)}.", _REACH))
    return ProviderError((f"{names}: no word from the bootstrap within {waited_s:g} s.", _REACH))


_REACH = (
    "Is port 22 of the machine reachable from here (--ssh-from, --subnet)? `--no-wait` hands "
    "machines over as soon as they run, unproved."
)


def check_time(session: Session, spec: LaunchSpec) -> None:
    """Refuse to go on after the deadline, as a computer that slept would.

    Raises:
        RefusedError: it has passed.
    """
    now, deadline = session.now(), spec.marks.deadline
    short = timedelta(seconds=max(0.0, _LEAST_S - float(spec.ttl_s)))
    if now >= deadline + short:
        raise RefusedError(
            f"the deadline of {spec.marks.run}, {deadline:%Y-%m-%d %H:%M:%S} UTC, passed while it "
            f"was launched (it is {now:%H:%M:%S}; did this computer sleep?)."
        )


def arm(
    session: Session,
    machine: Resource,
    machines: tuple[Resource, ...],
    login: Login,
    deadline: datetime,
) -> str:
    """Hand over what a machine ends itself with, ask it, and write its proof down.

    Args:
        session: journal and time.
        machine: who is armed.
        machines: of its run, in the order of their ranks.
        login: the way into it.
        deadline: when it must end.

    Returns:
        Why it does not end itself; empty: it was seen that it will.
    """
    try:
        login.deliver(machine, machines)
        proof = login.proof(machine)
        fault = proof.fault or session.cloud.self_termination_problem(machine)
    except ProviderError as error:
        return error.problems[0]
    if fault:
        return fault
    if proof.deadline != deadline:
        return f"its watch goes by {proof.deadline}, and the deadline is {deadline}"
    _tell_clock(session, machine, proof)
    message = f"{machine.name} is armed: it ends itself at {deadline:%Y-%m-%d %H:%M:%S} UTC"
    session.try_writing(partial(session.journal.note, machine.marks.run, session.now(), message))
    session.say(message)
    return ""


def prove(
    session: Session, marks: OwnershipTags, machines: tuple[Resource, ...], *, ends_itself: bool
) -> Status:
    """Ask the machines of a run what ends them, after handing over what they need for it.

    Args:
        session: journal and time.
        marks: of the run.
        machines: of it, as the provider shows them.
        ends_itself: whether they are to; else only how far they are is asked.

    Returns:
        failed where one answers that it does not end itself, or that it is of no use; pending with
        a reason where one cannot be asked, without where all are armed and one is not set up yet.
    """
    login = session.login(marks.run) if machines else None
    if login is None:
        return Status(state="pending", reason="its machines cannot be asked from here")
    ranked = tuple(sorted(machines, key=_rank))
    deadline = marks.deadline if ends_itself else None
    statuses = [_prove_one(session, machine, ranked, login, deadline) for machine in ranked]
    return min(statuses, key=lambda status: (_ORDER.index(status.state), not status.reason))


_ORDER = ("failed", "pending", "ready")


def _prove_one(
    session: Session,
    machine: Resource,
    machines: tuple[Resource, ...],
    login: Login,
    deadline: datetime | None,
) -> Status:
    if deadline is not None:
        proof = login.proof(machine)
        if not proof.answered:
            return Status(state="pending", reason=f"{machine.name}: {proof.fault}")
        fault = arm(session, machine, machines, login, deadline)
        if fault:
            reason = f"{machine.name} does not end itself: {fault}"
            return Status(state="failed", reason=reason)
    status = login.status(machine)
    if status.state == "failed":
        return replace(status, reason=f"{machine.name} is not usable: {status.reason}")
    return status


def _status(session: Session, run: Deployment, machines: tuple[Resource, ...]) -> Status:
    """Ask the machines of a run; of a pool, what its provider shows is all that there is."""
    if is_pool(machines):
        scheduled = any(resource.kind == OUTSIDE for resource in run.resources)
        if run.terms is None and OUTSIDE in session.cloud.kinds and not scheduled:
            return Status(state="pending", reason="it was found again, and no schedule ends it")
        return pool_status(run, machines)
    return prove(session, run.marks, machines, ends_itself=run.self_destroy is not False)


def finish(session: Session, run: Deployment, machines: tuple[Resource, ...]) -> Status:
    """Arm the machines of a launch that broke off, and say how far the slowest is.

    Failed, with its reason, is also what cannot be armed from here.
    """
    status = _status(session, run, machines)
    if status.state == "ready" or not status.reason:
        return status
    return Status(state="failed", reason=f"its launch broke off, and {status.reason}")


def ask_again(session: Session, run: Deployment, machines: tuple[Resource, ...]) -> Status:
    """Ask the machines of a run of which nothing is proved yet; it is ready once they prove it."""
    name = run.marks.run
    status = _status(session, run, machines)
    if status.state == "ready":
        session.try_writing(partial(session.journal.mark_run, name, "ready", session.now()))
        how = "its nodes run" if is_pool(machines) else "its machines proved it just now"
        session.say(f"{name} is ready: {how}")
    elif status.reason:
        session.say(
            f"note: nothing proves that {name} ends itself: {status.reason}. `gpucost reap` ends "
            f"it after {_end_without_proof(session, run, status):%Y-%m-%d %H:%M} UTC."
        )
    return status


def _end_without_proof(session: Session, run: Deployment, status: Status) -> datetime:
    """Return when a reap ends a run of which nothing is proved; if it cannot know, the deadline."""
    gives_up = status.state == "failed" and run.self_destroy
    return _given_up_at(session, run) if gives_up else run.marks.deadline


def is_given_up(session: Session, run: Deployment, status: Status) -> bool:
    """Return whether a launch that promised self-ending machines has had its time to prove it."""
    late = session.now() >= _given_up_at(session, run)
    return status.state == "failed" and bool(run.self_destroy) and late


def _given_up_at(session: Session, run: Deployment) -> datetime:
    """Return when a launch that waits would give up."""
    return run.started_at + timedelta(seconds=session.patience.bootstrap_s)


def _rank(machine: Resource) -> int:
    """Return the number of a machine in its run, the last part of its name."""
    number = machine.name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _tell_clock(session: Session, machine: Resource, proof: Proof) -> None:
    """Say so where a machine's clock is not the provider's; its length of life is counted, too."""
    ahead = timedelta() if proof.clock is None else proof.clock - session.now()
    if abs(ahead) > MOST_SKEW:
        way = "ahead of" if ahead > timedelta() else "behind"
        session.say(
            f"note: the clock of {machine.name} is {abs(ahead)} {way} the provider's; it ends at "
            "whichever comes first, the deadline by its clock or the length of its life"
        )
