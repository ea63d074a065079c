"""From running to ready: each machine is armed, which it proves, and then says that it is set up.

A machine counts as armed once it has said itself, after it was handed what it needs, that its watch
runs, that it goes by the run's deadline, and that what ends it works. A call that did not fail is
no proof. What is not armed is never ready.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from pricing.errors import ProviderError, RefusedError
from providers.interface import LaunchSpec, Resource
from providers.lifecycle.session import Session
from providers.lifecycle.waiting import Stopwatch
from providers.ssh.login import Login, Proof, Status

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
    faults = {one.id: "it does not answer yet" for one in machines if spec.self_destroy}
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
    """What else a machine needs, where it was not armed, and the note that it is ready."""
    if not armed:
        login.deliver(machine, machines)
    session.journal.note(machine.marks.run, session.now(), f"{machine.name} is ready")


def _not_ready(session: Session, waiting: list[Resource], faults: dict[str, str]) -> ProviderError:
    waited_s = session.patience.bootstrap_s
    unarmed = [f"{one.name}: {faults[one.id]}" for one in waiting if faults.get(one.id)]
    names = ", ".join(one.name for one in waiting)
    if unarmed:
        told = f"within {waited_s:g} s nothing proved that these machines end themselves at the "
        return ProviderError((f"{told}deadline: {'; '.join(unarmed)}.", _REACH))
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
    except ProviderError as error:
        return error.problems[0]
    if proof.fault:
        return proof.fault
    if proof.deadline != deadline:
        return f"its watch goes by {proof.deadline}, and the deadline is {deadline}"
    _tell_clock(session, machine, proof)
    told = f"{machine.name} is armed: it ends itself at {deadline:%Y-%m-%d %H:%M:%S} UTC"
    session.try_writing(partial(session.journal.note, machine.marks.run, session.now(), told))
    session.say(told)
    return ""


def finish(session: Session, machines: tuple[Resource, ...], deadline: datetime) -> Status:
    """Arm the machines of a launch that broke off, and say how far the slowest is.

    Failed, with its reason, is also what cannot be armed from here.
    """
    broke = "its launch broke off"
    login = session.login(machines[0].marks.run) if machines else None
    if login is None:
        told = f"{broke}, and its machines cannot be asked from here what ends them"
        return Status(state="failed", reason=told)
    ranked = tuple(sorted(machines, key=_rank))
    states = []
    for machine in ranked:
        fault = arm(session, machine, ranked, login, deadline)
        if fault:
            told = f"{broke}, and {machine.name} does not end itself: {fault}"
            return Status(state="failed", reason=told)
        status = login.status(machine)
        if status.state == "failed":
            return replace(status, reason=f"{machine.name} is not usable: {status.reason}")
        states.append(status.state)
    return Status(state="pending" if "pending" in states else "ready")


def _rank(machine: Resource) -> int:
    """The number of a machine in its run, the last part of its name."""
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
