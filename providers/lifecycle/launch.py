"""The launch: intent, one create call, result; wait until ready; all machines or none."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial

from pricing.errors import GpucostError, LaunchInterruptedError, PartialError, ProviderError
from pricing.money import EXACT, show
from providers.deployment import NODE, POOL
from providers.interface import (
    Creation,
    Deployment,
    JournaledResource,
    LaunchSpec,
    NoCapacityError,
    Place,
    Resource,
    ThrottledError,
    UncertainError,
)
from providers.journal.ledger import bill_machine, usd_for
from providers.lifecycle.end import end_duplicates, end_run, in_order
from providers.lifecycle.presence import account_of, ask, evidence_of
from providers.lifecycle.readiness import MOST_SKEW, await_ready, check_time, runs
from providers.lifecycle.session import Session, Stopwatch
from providers.ssh.connection import Login

_NOTHING = Decimal(0)


def launch(session: Session, spec: LaunchSpec, login: Login | None) -> Deployment:
    """Make the machines of a launch and return the run once they are ready.

    Args:
        session: provider, journal, time.
        spec: what is launched, where the provider offers it (`Cloud.check`).
        login: how machines are reached to see whether they are ready; None: they are handed over
            once they run, not proved. Nodes of a pool are never logged in to.

    Raises:
        JournalError: the intent cannot be written down; nothing was made.
        ProviderError: no place had all machines, or one did not become ready; nothing is left.
        PartialError: something may be left; the message says how to end it.
        LaunchInterruptedError: interrupted; the journal knows what there is.
    """
    run, journal = spec.marks.run, session.journal
    with journal.working_on(run):
        predicted = usd_for(spec.places[0].offer, spec.most_machines, spec.ttl_s, session.now())
        journal.open_run(spec, predicted, session.now(), account_of(session))
        try:
            _launch_somewhere(session, spec, login)
            state = "not-proved" if login is None and spec.pool is None else "ready"
            journal.mark_run(run, state, session.now())
        except KeyboardInterrupt as error:
            raise LaunchInterruptedError(
                f"interrupted while {run} was launched; what exists is written down. "
                f"`gpucost down {run}` ends it, `gpucost list` shows it."
            ) from error
    found = journal.deployment(run)
    if found is None:
        raise PartialError(f"the journal lost {run}; `gpucost reap` finds it at the provider.")
    return found


def _launch_somewhere(session: Session, spec: LaunchSpec, login: Login | None) -> None:
    """Try each place in order; a place without capacity is cleaned up before the next."""
    reasons: list[str] = []
    for place in spec.places:
        spent = _spent(session, spec)
        if _usd_to_come(session, spec, place) + spent > spec.max_usd:
            reasons.append(f"{place.text}: {_over_cap(spent)}")
            continue
        try:
            session.journal.place_run(spec.marks.run, place.region, place.offer)
            _make_all(session, spec, place)
            machines = _await_running(session, spec) if spec.pool is None else ()
            if spec.pool is not None:
                await_nodes(session, spec)
            elif login is not None:
                await_ready(session, spec, machines, login)
        except NoCapacityError as error:
            reasons.append(f"{place.text}: {error.problems[0]}")
            session.say(f"no capacity: {reasons[-1]}")
            _undo(session, spec, place, error)
        except GpucostError as error:
            _undo(session, spec, place, error)
            _close(session, spec, "ended", error.problems)
            raise _told(spec, error) from error
        else:
            return
    _close(session, spec, "ended", reasons)
    raise NoCapacityError(
        (*reasons, "no place had all machines, so none is left. Try later, or another region/type.")
    )


def _usd_to_come(session: Session, spec: LaunchSpec, place: Place) -> Decimal:
    """Return what all machines cost from now until their bill ends at worst, exact."""
    left_s = Decimal(str((spec.marks.deadline - session.now()).total_seconds()))
    lived_s = min(spec.ttl_s, max(Decimal(1), left_s)) + spec.end_s
    return usd_for(place.offer, spec.most_machines, lived_s, session.now())


def _spent(session: Session, spec: LaunchSpec) -> Decimal:
    """Return what machines at earlier places have cost, exact; each at its own place's price."""
    found = session.journal.deployment(spec.marks.run)
    total = Decimal(0)
    for machine in () if found is None else found.machines:
        offers = [one.offer for one in spec.places if one.region == machine.region]
        bills = [bill_machine(machine, offer, session.now())[1] for offer in offers]
        total = EXACT.add(total, max((usd for usd in bills if usd is not None), default=_NOTHING))
    return total


def _over_cap(spent: Decimal) -> str:
    before = f" with the ${show(spent)} that places before it have cost" if spent else ""
    return f"dearer by the end of its bill than the cap{before}"


def _make_all(session: Session, spec: LaunchSpec, place: Place) -> None:
    for creation in session.cloud.resources_to_create(spec, place):
        check_time(session, spec)
        made = _make(session, spec, creation)
        if made.is_machine:
            _end_from_outside(session, spec, made)


def _end_from_outside(session: Session, spec: LaunchSpec, machine: Resource) -> None:
    """Make what ends a machine from outside; without it the launch goes on, with a warning."""
    run, journal = spec.marks.run, session.journal
    for creation in session.cloud.external_terminators(spec, machine):
        journal.intend(run, creation, session.now())
        try:
            made = session.cloud.create(creation)
        except ProviderError as error:
            journal.refuse(run, creation, session.now(), error.problems[0])
            session.say(
                f"warning: nothing outside {machine.name} ends it, should its system never start: "
                f"{error.problems[0]}"
            )
            continue
        journal.record(made, session.now())
        session.say(f"made {made.kind} {made.name}: it ends {machine.name} should it not itself")


def _make(session: Session, spec: LaunchSpec, creation: Creation) -> Resource:
    run, journal, intended_at = spec.marks.run, session.journal, session.now()
    journal.intend(run, creation, intended_at)
    try:
        made = _create(session, spec, creation)
    except UncertainError as error:
        session.say(f"the answer for {creation.name} is lost; looking whether it was made ...")
        made = _reconcile(session, spec, creation, error)
    except ProviderError as error:
        journal.refuse(run, creation, session.now(), error.problems[0])
        raise
    made = _dated(session, made, intended_at)
    journal.record(made, session.now())
    session.say(f"made {made.kind} {made.name} ({made.id})")
    return made


def _dated(session: Session, made: Resource, intended_at: datetime) -> Resource:
    """Return what was made, dated by the provider's clock, which will tell its end.

    A time of creation that lies before the intent or in the future is by another clock than the
    provider's answers; then the intent's counts, which is never too late.
    """
    born, now = made.created_at, session.now()
    if born is None or intended_at - MOST_SKEW <= born <= now + MOST_SKEW:
        return made
    session.say(
        f"warning: {session.cloud.name} says that {made.name} was made at {born:%H:%M:%S} UTC, and "
        f"its own clock says {now:%H:%M:%S}; the bill is counted from {intended_at:%H:%M:%S}"
    )
    return replace(made, created_at=intended_at)


def _create(session: Session, spec: LaunchSpec, creation: Creation) -> Resource:
    """Make one call, and again only where the provider said that it did nothing."""
    patience = session.patience
    for _ in range(patience.calls - 1):
        try:
            return session.cloud.create(creation)
        except ThrottledError as error:
            session.clock.sleep(min(error.wait_s, patience.longest_wait_s))
            check_time(session, spec)
    return session.cloud.create(creation)


def _reconcile(
    session: Session, spec: LaunchSpec, creation: Creation, error: UncertainError
) -> Resource:
    """Return what a call whose answer was lost has made, found by its unique name.

    Of two machines of one name the older stays, and the others are ended, at once and by their id.

    Raises:
        UncertainError: nothing was found for as long as the provider's reads may lag.
    """
    watch, patience = Stopwatch(session.clock), session.patience
    known = {spec.marks.run: spec.marks}
    while True:
        seen = session.cloud.list_owned((creation.region,), (creation.kind,), known).resources
        same = [one for one in seen if (one.kind, one.name) == (creation.kind, creation.name)]
        if same:
            first, *more = in_order(same)
            end_duplicates(session, more)
            return first
        if watch.elapsed_s >= session.cloud.lag_s:
            raise error
        watch.pause(patience.pause_s)


def _await_running(session: Session, spec: LaunchSpec) -> tuple[Resource, ...]:
    """Wait until all machines of the run are running and have addresses; return them.

    A machine that is not shown, or cannot be asked about, is waited for: neither is its end.

    Raises:
        NoCapacityError: the provider ended one before it ran.
        ProviderError: they do not start.
    """
    watch, patience = Stopwatch(session.clock), session.patience
    waiting = [(one, evidence_of(session, one)) for one in _made(session, spec)]
    while True:
        check_time(session, spec)
        answers = [e.add(ask(session, one, spec.marks), watch.elapsed_s) for one, e in waiting]
        found = [one.resource for one in answers if one.resource is not None]
        ending = any(one.state == "ending" for one in found)
        if ending or any(one.state == "gone" for one in answers):
            raise NoCapacityError("the provider ended a machine before it ran")
        if len(found) == spec.count and all(o.state == "running" and o.address for o in found):
            for one in found:
                session.journal.record(one, session.now())
            return tuple(found)
        if watch.elapsed_s >= patience.running_s:
            break
        watch.pause(patience.pause_s)
    why = next((one.why for one in answers if one.why), "they do not run")
    raise ProviderError(f"the machines did not start within {patience.running_s:g} s: {why}.")


def _made(session: Session, spec: LaunchSpec) -> Iterable[JournaledResource]:
    found = session.journal.deployment(spec.marks.run)
    return () if found is None else (one for one in found.machines if one.state == "made")


def _undo(session: Session, spec: LaunchSpec, place: Place, cause: GpucostError) -> None:
    """Remove everything of the run.

    Raises:
        PartialError: what is left, and how to end it.
    """
    try:
        why = f"undone: {cause.problems[0]}"
        end_run(session, spec.marks, (place.region,), doing=why, closes=False)
    except GpucostError as error:
        run = spec.marks.run
        _close(session, spec, "failed", (*cause.problems, *error.problems))
        more = f"`gpucost list` shows what is known of {run}; `gpucost down {run}` ends it."
        raise PartialError((*cause.problems, *error.problems, more)) from error


def _close(session: Session, spec: LaunchSpec, state: str, reasons: Iterable[str]) -> None:
    write = partial(session.journal.mark_run, spec.marks.run, state, session.now())
    session.try_writing(partial(write, "; ".join(reasons)))


def _told(spec: LaunchSpec, error: GpucostError) -> GpucostError:
    """Return the error, with what was done about it; a lost answer stays a maybe."""
    run = spec.marks.run
    if isinstance(error, UncertainError):
        lost = f"Nothing of {run} was found, but an answer was lost: `gpucost reap` looks again."
        return PartialError((*error.problems, lost))
    undone = f"Everything of {run} was removed again; nothing is left."
    return type(error)((*error.problems, undone))


def await_nodes(session: Session, spec: LaunchSpec) -> None:
    """Wait until the pool of a launch runs with as many nodes as were asked for.

    Each node is written down when it is first listed. What is not shown is waited for.

    Raises:
        NoCapacityError: the provider ended the pool before it ran.
        ProviderError: the pool failed, in the provider's words, or does not run in time.
        RefusedError: the deadline passed meanwhile.
    """
    watch, patience = Stopwatch(session.clock), session.patience
    kept = _pool_of(session, spec)
    evidence = evidence_of(session, kept)
    known = {spec.marks.run: spec.marks}
    written: set[tuple[str, str]] = set()
    while True:
        check_time(session, spec)
        pool = evidence.add(ask(session, kept, spec.marks), watch.elapsed_s)
        seen = session.cloud.list_owned((kept.region,), (NODE,), known)
        nodes = [one for one in seen.resources if one.marks.run == spec.marks.run]
        for one in nodes:
            if (one.id, one.state) not in written:
                session.journal.record(one, session.now())
                written.add((one.id, one.state))
        _refuse_ended(pool.resource, is_gone=pool.state == "gone")
        if pool.resource is not None and runs(pool.resource, nodes, spec.count):
            return
        if watch.elapsed_s >= patience.running_s:
            break
        watch.pause(patience.pause_s)
    running = sum(one.state == "running" for one in nodes)
    fault = pool.why if pool.resource is None else pool.resource.fault
    doubts = (fault, *(one.why for one in seen.unasked))
    why = next(filter(None, doubts), f"{running} of {spec.count} nodes run")
    raise ProviderError(f"the nodes did not start within {patience.running_s:g} s: {why}.")


def _pool_of(session: Session, spec: LaunchSpec) -> JournaledResource:
    """Return the pool that the launch has just made."""
    found = session.journal.deployment(spec.marks.run)
    pools = () if found is None else found.resources
    made = next((one for one in pools if (one.kind, one.state) == (POOL, "made")), None)
    if made is None:
        raise PartialError(
            f"the journal lost the pool of {spec.marks.run}; `gpucost reap` ends it."
        )
    return made


def _refuse_ended(pool: Resource | None, *, is_gone: bool) -> None:
    if is_gone or (pool is not None and pool.state == "ending"):
        raise NoCapacityError("the provider ended the pool before it ran")
    if pool is not None and pool.state == "failed":
        raise ProviderError(f"{pool.name} failed: {pool.fault or 'the provider does not say why'}.")
