"""The end of a run: destroy until the provider says gone, machines first, then side resources.

What exists is what the provider lists with the run's marks, and what the journal knows by id; the
journal only adds. Destroying is asked for as often as needed, because that cannot do harm twice.
"""

from collections.abc import Iterable
from functools import partial

from pricing.errors import PartialError, ProviderError
from providers.interface import Deployment, Kept, Resource
from providers.lifecycle.journal import JournalError
from providers.lifecycle.session import Session
from providers.ownership_tags import Marks


def end_run(
    session: Session,
    marks: Marks,
    regions: tuple[str, ...] | None,
    *,
    doing: str = "asked to end",
) -> int:
    """Destroy everything of a run and return how many resources were destroyed.

    Args:
        session: provider, journal, time.
        marks: of the run.
        regions: where to look, where listing is by region; None: everywhere.
        doing: why, for the journal.

    Raises:
        PartialError: something is still there; the message names it.
    """
    run, patience = marks.run, session.patience
    session.try_writing(partial(session.journal.note, run, session.now(), doing))
    quiet, destroyed, trouble = 0, set[tuple[str, str]](), ""
    for _ in range(patience.gone_rounds):
        known = _known(session, run)
        left, failure = _left(session, marks, regions, known)
        trouble = failure or trouble
        if left is None:
            session.clock.sleep(patience.pause_s)
            continue
        if not left:
            quiet += 1
            if quiet >= _looks_needed(session, known):
                _all_gone(session, run, known)
                return len(destroyed)
            session.clock.sleep(patience.settle_pause_s)
            continue
        quiet = 0
        destroyed |= {(one.kind, one.id) for one in left}
        trouble = _destroy(session, left) or trouble
        _write_gone(session, run, known, left)
        session.clock.sleep(patience.pause_s)
    names = ", ".join(f"{one.kind} {one.name} ({one.id})" for one in left or ())
    raise PartialError(
        f"{run} is not gone: {names or 'the provider does not answer'}. "
        f"{trouble + ' ' if trouble else ''}It may still cost money; `gpucost down {run}` goes on."
    )


def _known(session: Session, run: str) -> tuple[Kept, ...]:
    """Resources that the journal believes to be there; none where it cannot be read."""
    try:
        found = session.journal.deployment(run)
    except JournalError:
        found = None
    return () if found is None else tuple(o for o in found.resources if o.state in _OPEN)


_OPEN = ("intended", "made")


def _left(
    session: Session, marks: Marks, regions: tuple[str, ...] | None, known: tuple[Kept, ...]
) -> tuple[list[Resource] | None, str]:
    """What is there of the run: listed by its marks, or alive under an id of the journal.

    None, with the reason, where the provider does not answer.
    """
    try:
        listed = [one for one in session.cloud.ours(regions) if one.marks.run == marks.run]
        ids = {(one.kind, one.id) for one in listed}
        unlisted = (one for one in known if one.id and (one.kind, one.id) not in ids)
        looked = [session.cloud.look(one, marks) for one in unlisted]
    except ProviderError as error:
        return None, error.problems[0]
    return listed + [one for one in looked if one is not None], ""


def _looks_needed(session: Session, known: Iterable[Kept]) -> int:
    """Looks that find nothing before nothing is believed: more where an answer may be on its way.

    An intent whose result nobody knows may still turn into a resource; an old one does not.
    """
    patience = session.patience
    settle_s = patience.settle_rounds * patience.settle_pause_s
    young = any(
        one.state == "intended" and (session.now() - one.intended_at).total_seconds() < settle_s
        for one in known
    )
    return patience.settle_rounds if young else 1


def _destroy(session: Session, left: list[Resource]) -> str:
    """Ask for the end of the machines, or, once there is none, of the side resources."""
    machines = [one for one in left if one.is_machine]
    wanted = [one for one in machines if one.state != "ending"] if machines else left
    trouble = ""
    for one in wanted:
        try:
            session.cloud.destroy(one)
            session.say(f"ending {one.kind} {one.name}")
        except ProviderError as error:
            trouble = error.problems[0]
    return trouble


def _write_gone(
    session: Session, run: str, known: Iterable[Kept], left: Iterable[Resource] = ()
) -> None:
    """Write down what is no longer there, and what was there without the journal knowing."""
    there = {(one.kind, one.name, one.region) for one in left}
    for one in known:
        if (one.kind, one.name, one.region) not in there and one.id:
            session.try_writing(partial(session.journal.gone, run, one, session.now()))
    for found in left:
        if found.is_machine and not _is_written(found, known):
            session.try_writing(partial(session.journal.record, found, session.now()))


def _is_written(found: Resource, known: Iterable[Kept]) -> bool:
    return any(one.id == found.id and one.kind == found.kind for one in known)


def _all_gone(session: Session, run: str, known: Iterable[Kept]) -> None:
    at = session.now()
    for one in known:
        session.try_writing(partial(session.journal.gone, run, one, at))
    session.try_writing(partial(session.journal.mark_run, run, "ended", at))


def regions_of(deployment: Deployment) -> tuple[str, ...] | None:
    """Where a run of the journal may have resources; None where it does not say."""
    regions = {one.region for one in deployment.resources} | {deployment.region}
    return tuple(sorted(regions)) if "" not in regions else None
