"""Two machines of one name: a launch makes one of each, so only the first is kept.

An SDK that repeats a call, or a call that two answers belong to, makes them. Each has its own id,
so the second is ended by it, and both are written down: both have a bill.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from pricing.errors import ProviderError
from providers.interface import MACHINE, Resource
from providers.lifecycle.session import Session
from providers.pools.node_pool import POOL

_OLDEST = datetime.min.replace(tzinfo=UTC)


def in_order(resources: Iterable[Resource]) -> list[Resource]:
    """Sort by age, the oldest first; ids decide among those of one second."""
    return sorted(resources, key=lambda o: (o.created_at or _OLDEST, len(o.id), o.id))


def duplicates(resources: Iterable[Resource]) -> list[Resource]:
    """Return machines and pools whose name an older one of the same run has."""
    named: dict[tuple[str, str], list[Resource]] = defaultdict(list)
    for one in resources:
        if one.kind in (MACHINE, POOL) and one.state != "ending":
            named[one.marks.run, one.name].append(one)
    return [more for same in named.values() for more in in_order(same)[1:]]


def end_duplicates(session: Session, more: Iterable[Resource]) -> None:
    """Say and write down that they are there, and ask for their end; what is left is `down`'s."""
    for one in more:
        session.say(f"warning: {one.name} was made twice; ending the second, {one.id}")
        session.try_writing(partial(session.journal.record, one, session.now()))
        try:
            session.cloud.destroy(one)
        except ProviderError as error:
            session.say(f"warning: {one.id} is not ended yet: {error.problems[0]}")
