"""The launch: intent, one create call, result; wait until ready; all machines or none."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial

from pricing.errors import GpucostError, InterruptedByUserError, PartialError, ProviderError
from pricing.money import EXACT, show
from providers.interface import (
    MACHINE,
    NODE,
    POOL,
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
from providers.lifecycle.end import duplicates, end_duplicates, end_run, in_order
from providers.lifecycle.presence import account_of, ask, evidence_of
from providers.lifecycle.readiness import MOST_SKEW, await_ready, check_time, runs
from providers.lifecycle.session import Session, Stopwatch
from providers.ssh.connection import Login

_NOTHING = Decimal(0)
_LONGEST_MINIMUM_S = Decimal(120)
"""Twice the minimum charge of AWS and DigitalOcean, 60 s, for clocks differ; ours."""


def launch(
    session: Session,
    spec: LaunchSpec,
    login: Login | None,
    prepare: Callable[[LaunchSpec], LaunchSpec] = lambda spec: spec,
) -> Deployment:
    """Make the machines of a launch and return the run once they are ready.

    Args:
        session: provider, journal, time.
        spec: what is launched, where the provider offers it (`Cloud.check`).
        login: how machines are reached to see whether they are ready; None: they are handed over
            once they run, not proved. Nodes of a pool are never logged in to.
        prepare: makes what must be here first, such as a key, once the journal knows the run.

    Raises:
        JournalError: the intent cannot be written down; nothing was made.
        ProviderError: no place had all machines, or one did not become ready; nothing is left.
        PartialError: something may be left; the message says how to end it.
        InterruptedByUserError: interrupted; the journal knows what there is.
    """
    run, journal = spec.marks.run, session.journal
    with journal.working_on(run):
        predicted = usd_for(spec.places[0].offer, spec.most_machines, spec.ttl_s, session.now())
        journal.open_run(spec, predicted, session.now(), account_of(session))
        try:
            _launch_somewhere(session, _prepared(session, spec, prepare), login)
            state = "not-proved" if login is None and spec.pool is None else "ready"
            journal.mark_run(run, state, session.now())
        except KeyboardInterrupt as error:
            raise InterruptedByUserError(
                f"interrupted while {run} was launched; what exists is written down. "
                f"`gpucost down {run}` ends it, `gpucost list` shows it."
            ) from error
    return session.deployment(run)


def _prepared(
    session: Session, spec: LaunchSpec, prepare: Callable[[LaunchSpec], LaunchSpec]
) -> LaunchSpec:
    try:
        return prepare(spec)
    except (GpucostError, OSError) as error:
        _close(session, spec, "ended", (str(error),))
        raise


def _launch_somewhere(session: Session, spec: LaunchSpec, login: Login | None) -> None:
    """Try each place in order; a place without capacity is cleaned up before the next."""
    reasons: list[str] = []
    for target in spec.places:
        if not _fits_cap(session, spec, target):
            reasons.append(f"{target.text}: {_over_cap(_spent(session, spec))}")
            continue
        try:
            session.journal.place_run(spec.marks.run, target.region, target.offer)
            _make_all(session, spec, target)
            machines = _await_running(session, spec) if spec.pool is None else ()
            if spec.pool is not None:
                await_nodes(session, spec)
            elif login is not None:
                await_ready(session, spec, machines, login)
            if spec.pool is None:
                _end_second_machines(session, spec)
        except NoCapacityError as error:
            reasons.append(f"{target.text}: {error.problems[0]}")
            session.say(f"no capacity: {reasons[-1]}")
            _undo(session, spec, target, error)
        except GpucostError as error:
            _undo(session, spec, target, error)
            _close(session, spec, "ended", error.problems)
            raise _with_outcome(spec, error) from error
        else:
            return
    _close(session, spec, "ended", reasons)
    raise NoCapacityError(
        (*reasons, "no place had all machines, so none is left. Try later, or another region/type.")
    )


def _fits_cap(session: Session, spec: LaunchSpec, target: Place) -> bool:
    """Return whether what was spent and what this place may cost lie within the cap.

    Machines that lived shorter than their minimum charge cost more than their time; as the deadline
    stays, that is made up for by waiting, if it takes no longer than `_LONGEST_MINIMUM_S`.
    """
    watch = Stopwatch(session.clock)
    while True:
        spent = _spent(session, spec)
        over_usd = EXACT.add(_usd_to_come(session, spec, target), spent) - spec.max_usd
        if over_usd <= 0:
            return True
        a_wait_usd = usd_for(target.offer, spec.most_machines, _LONGEST_MINIMUM_S, session.now())
        if not spent or over_usd > a_wait_usd or watch.elapsed_s >= _LONGEST_MINIMUM_S:
            return False
        watch.pause(session.patience.pause_s)


def _usd_to_come(session: Session, spec: LaunchSpec, target: Place) -> Decimal:
    """Return what all machines cost from now until their bill ends at worst, exact."""
    left_s = Decimal(str((spec.marks.deadline - session.now()).total_seconds()))
    lived_s = min(spec.ttl_s, max(Decimal(1), left_s)) + spec.end_s
    return usd_for(target.offer, spec.most_machines, lived_s, session.now())


def _spent(session: Session, spec: LaunchSpec) -> Decimal:
    """Return what machines at earlier places have cost, exact; each at its own place's price."""
    total = Decimal(0)
    for machine in session.deployment(spec.marks.run).machines:
        offers = [target.offer for target in spec.places if target.region == machine.region]
        bills = [bill_machine(machine, offer, session.now())[1] for offer in offers]
        total = EXACT.add(total, max((usd for usd in bills if usd is not None), default=_NOTHING))
    return total


def _over_cap(spent: Decimal) -> str:
    before = f" with the ${show(spent)} that places before it have cost" if spent else ""
    return f"dearer by the end of its bill than the cap{before}"


def _make_all(session: Session, spec: LaunchSpec, target: Place) -> None:
    for creation in session.cloud.resources_to_create(spec, target):
        check_time(session, spec)
        resource = _make(session, spec, creation)
        if resource.is_machine:
            _end_from_outside(session, spec, resource)


def _end_from_outside(session: Session, spec: LaunchSpec, machine: Resource) -> None:
    """Make what ends a machine from outside; without it the launch goes on, with a warning."""
    run, journal = spec.marks.run, session.journal
    for creation in session.cloud.external_terminators(spec, machine):
        journal.intend(run, creation, session.now())
        try:
            schedule = session.cloud.create(creation)
        except ProviderError as error:
            journal.refuse(run, creation, session.now(), error.problems[0])
            session.say(
                f"warning: nothing outside {machine.name} ends it, should its system never start: "
                f"{error.problems[0]}"
            )
            continue
        journal.record(schedule, session.now())
        session.say(
            f"made {schedule.kind} {schedule.name}: it ends {machine.name} should it not itself"
        )


def _make(session: Session, spec: LaunchSpec, creation: Creation) -> Resource:
    run, journal, intended_at = spec.marks.run, session.journal, session.now()
    journal.intend(run, creation, intended_at)
    try:
        resource = _create(session, spec, creation)
    except ThrottledError:
        raise  # its intent stays open: what throttles may have done the work
    except UncertainError as error:
        session.say(f"the answer for {creation.name} is lost; looking whether it was made ...")
        resource = _reconcile(session, spec, creation, error)
    except ProviderError as error:
        journal.refuse(run, creation, session.now(), error.problems[0])
        raise
    resource = _dated(session, resource, intended_at)
    journal.record(resource, session.now())
    session.say(f"made {resource.kind} {resource.name} ({resource.id})")
    return resource


def _dated(session: Session, resource: Resource, intended_at: datetime) -> Resource:
    """Return what was made, dated by the provider's clock, which will tell its end.

    A time of creation that lies before the intent or in the future is by another clock than the
    provider's answers; then the intent's counts, which is never too late.
    """
    born, now = resource.created_at, session.now()
    if born is None or intended_at - MOST_SKEW <= born <= now + MOST_SKEW:
        return resource
    session.say(
        f"warning: {session.cloud.name} says that {resource.name} was made at {born:%H:%M:%S} UTC, "
        f"and its own clock says {now:%H:%M:%S}; the bill is counted from {intended_at:%H:%M:%S}"
    )
    return replace(resource, created_at=intended_at)


def _create(session: Session, spec: LaunchSpec, creation: Creation) -> Resource:
    """Make one call, and again only where it was throttled and nothing of that name is there."""
    patience = session.patience
    for _ in range(patience.calls - 1):
        try:
            return session.cloud.create(creation)
        except ThrottledError as error:
            session.clock.sleep(min(error.wait_s, patience.longest_wait_s))
            check_time(session, spec)
            if (resource := _find(session, spec, creation)) is not None:
                return resource
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
    while True:
        if (resource := _find(session, spec, creation)) is not None:
            return resource
        if watch.elapsed_s >= session.cloud.lag_s:
            raise error
        watch.pause(patience.pause_s)


def _find(session: Session, spec: LaunchSpec, creation: Creation) -> Resource | None:
    """Return what is listed under the name of a call; the younger of two machines are ended."""
    run, names = spec.marks.run, (creation.kind, creation.name)
    listing = session.cloud.list_owned((creation.region,), (creation.kind,), {run: spec.marks})
    same = in_order(o for o in listing.resources if (o.kind, o.name) == names)
    end_duplicates(session, same[1:])
    return same[0] if same else None


def _end_second_machines(session: Session, spec: LaunchSpec) -> None:
    """End what repeated calls have made beside the machines that the journal knows."""
    run = spec.marks.run
    regions = tuple(dict.fromkeys(target.region for target in spec.places))
    listing = session.cloud.list_owned(regions, (MACHINE,), {run: spec.marks})
    owned = [resource for resource in listing.resources if resource.marks.run == run]
    end_duplicates(session, duplicates(owned, session.deployment(run)))


def _await_running(session: Session, spec: LaunchSpec) -> tuple[Resource, ...]:
    """Wait until all machines of the run are running and have addresses; return them.

    A machine that is not shown, or cannot be asked about, is waited for: neither is its end.

    Raises:
        NoCapacityError: the provider ended one before it ran.
        ProviderError: they do not start.
    """
    watch, patience = Stopwatch(session.clock), session.patience
    waiting = [(entry, evidence_of(session, entry)) for entry in _made_machines(session, spec)]
    while True:
        check_time(session, spec)
        answers = [e.add(ask(session, entry, spec.marks), watch.elapsed_s) for entry, e in waiting]
        shown = [entry.resource for entry in answers if entry.resource is not None]
        ending = any(entry.state == "ending" for entry in shown)
        if ending or any(entry.state == "gone" for entry in answers):
            raise NoCapacityError("the provider ended a machine before it ran")
        if len(shown) == spec.count and all(o.state == "running" and o.address for o in shown):
            for entry in shown:
                session.journal.record(entry, session.now())
            return tuple(shown)
        if watch.elapsed_s >= patience.running_s:
            break
        watch.pause(patience.pause_after(watch.elapsed_s))
    why = next((entry.why for entry in answers if entry.why), "they do not run")
    raise ProviderError(f"the machines did not start within {patience.running_s:g} s: {why}.")


def _made_machines(session: Session, spec: LaunchSpec) -> Iterable[JournaledResource]:
    machines = session.deployment(spec.marks.run).machines
    return (machine for machine in machines if machine.state == "made")


def _undo(session: Session, spec: LaunchSpec, target: Place, cause: GpucostError) -> None:
    """Remove everything of the run.

    Raises:
        PartialError: what is left, and how to end it.
    """
    try:
        why = f"undone: {cause.problems[0]}"
        end_run(session, spec.marks, (target.region,), doing=why, closes=False)
    except GpucostError as error:
        run = spec.marks.run
        _close(session, spec, "failed", (*cause.problems, *error.problems))
        more = f"`gpucost list` shows what is known of {run}; `gpucost down {run}` ends it."
        raise PartialError((*cause.problems, *error.problems, more)) from error


def _close(session: Session, spec: LaunchSpec, state: str, reasons: Iterable[str]) -> None:
    write = partial(session.journal.mark_run, spec.marks.run, state, session.now())
    session.try_writing(partial(write, "; ".join(reasons)))


def _with_outcome(spec: LaunchSpec, error: GpucostError) -> GpucostError:
    """Return the error, with what was done about it; a lost answer stays a maybe."""
    run = spec.marks.run
    if isinstance(error, UncertainError):
        lost = f"Nothing of {run} was found, but an answer was lost: `gpucost reap` looks again."
        return PartialError((*error.problems, lost))
    undone = f"Everything of {run} was removed again; nothing is left."
    return type(error)((*error.problems, undone))


_UNSEEN_S = 180.0
"""How long a pool whose nodes run may wait for what ends it, which looks each minute."""


def await_nodes(session: Session, spec: LaunchSpec) -> None:
    """Wait until the pool of a launch runs with as many nodes as were asked for.

    Each node is written down when it is first listed. What is not shown is waited for.

    Raises:
        NoCapacityError: the provider ended the pool before it ran.
        ProviderError: the pool failed, in the provider's words, or does not run in time.
        RefusedError: the deadline passed meanwhile.
    """
    watch, patience = Stopwatch(session.clock), session.patience
    pool_entry = _pool_of(session, spec)
    evidence = evidence_of(session, pool_entry)
    marks_by_run = {spec.marks.run: spec.marks}
    written: set[tuple[str, str]] = set()
    unseen: Stopwatch | None = None
    while True:
        check_time(session, spec)
        pool = evidence.add(ask(session, pool_entry, spec.marks), watch.elapsed_s)
        listing = session.cloud.list_owned((pool_entry.region,), (NODE,), marks_by_run)
        nodes = [node for node in listing.resources if node.marks.run == spec.marks.run]
        for node in nodes:
            if (node.id, node.state) not in written:
                session.journal.record(node, session.now())
                written.add((node.id, node.state))
        _refuse_ended(pool.resource, is_gone=pool.state == "gone")
        if pool.resource is not None and runs(pool.resource, nodes, spec.count):
            endless = session.cloud.self_termination_problem(pool.resource)
            if not (endless and spec.self_destroy):
                return
            unseen = unseen or Stopwatch(session.clock)
            if unseen.elapsed_s >= _UNSEEN_S:
                raise ProviderError(f"{pool.resource.name} was not handed over: {endless}.")
        if watch.elapsed_s >= patience.running_s:
            break
        watch.pause(patience.pause_after(watch.elapsed_s))
    running = sum(node.state == "running" for node in nodes)
    fault = pool.why if pool.resource is None else pool.resource.fault
    doubts = (fault, *(node.why for node in listing.gaps))
    why = next(filter(None, doubts), f"{running} of {spec.count} nodes run")
    raise ProviderError(f"the nodes did not start within {patience.running_s:g} s: {why}.")


def _pool_of(session: Session, spec: LaunchSpec) -> JournaledResource:
    """Return the pool that the launch has just made."""
    entries = session.deployment(spec.marks.run).resources
    return next(entry for entry in entries if (entry.kind, entry.state) == (POOL, "made"))


def _refuse_ended(pool: Resource | None, *, is_gone: bool) -> None:
    if is_gone or (pool is not None and pool.state == "ending"):
        raise NoCapacityError("the provider ended the pool before it ran")
    if pool is not None and pool.state == "failed":
        raise ProviderError(f"{pool.name} failed: {pool.fault or 'the provider does not say why'}.")
