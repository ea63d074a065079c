"""A pool and its nodes on their way to running: the provider makes the nodes, nobody logs in.

What a pool says of itself counts: one that failed never runs, and one that is ending is on its way
out.
"""

from pricing.errors import PartialError, ProviderError
from providers.errors import NoCapacityError
from providers.interface import JournaledResource, LaunchSpec, Resource
from providers.lifecycle.presence import ask, evidence_of
from providers.lifecycle.readiness import check_time
from providers.lifecycle.session import Session
from providers.lifecycle.waiting import Stopwatch
from providers.pools.node_pool import NODE, POOL
from providers.pools.pool_state import runs


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
        seen = session.cloud.ours((kept.region,), (NODE,), known)
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
