"""Where the journal is, and sessions with the providers whose credentials are there."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gpucost.arguments.parameters import today
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output
from pricing.catalog.offer import Offer
from pricing.errors import GpucostError, MissingCredentialsError
from providers.interface import Cloud, Connection, Resource
from providers.lifecycle.journal import Journal, JournalError, set_aside
from providers.lifecycle.session import Session
from providers.lifecycle.waiting import Clock, Patience
from providers.registry import CLOUDS, connect

STATE = "GPUCOST_STATE_DIR"
CLOCK = Clock()
PATIENCE = Patience()


def state_folder() -> Path:
    """Return the folder of the journal: GPUCOST_STATE_DIR, else the user's state folder."""
    named = os.environ.get(STATE)
    if named:
        return Path(named)
    from platformdirs import user_state_path  # noqa: PLC0415 - only without GPUCOST_STATE_DIR

    return user_state_path("gpucost")


@contextmanager
def open_journal(*, mend: Callable[[str], None] | None = None) -> Iterator[Journal]:
    """The journal.

    Args:
        mend: where given, an unreadable journal is set aside, an empty one made, and this is told.

    Raises:
        JournalError: it cannot be used.
    """
    folder = state_folder()
    try:
        journal = Journal(folder)
        journal.deployments()
    except JournalError as error:
        if mend is None:
            raise
        aside = set_aside(folder, datetime.now(UTC))
        mend(f"warning: {error.problems[0]}")
        mend(f"warning: set aside as {aside}; what exists is read from the providers.")
        journal = Journal(folder)
    try:
        yield journal
    finally:
        journal.close()


def open_cloud(provider: str) -> Cloud:
    """The provider with the credentials of the environment.

    Raises:
        MissingCredentialsError: names the variable.
    """
    connection = Connection(environment=os.environ, state=str(state_folder()))
    return connect(provider, connection)


def session_with(cloud: Cloud, journal: Journal, output: Output) -> Session:
    """A session that tells the user what happens."""
    return Session(
        cloud=cloud,
        journal=journal,
        clock=CLOCK,
        patience=PATIENCE,
        say=output.say,
        price=_price,
    )


def sessions(journal: Journal, output: Output) -> tuple[list[Session], list[str], set[str]]:
    """A session with every provider that can be asked.

    Returns:
        The sessions, what to say about providers that were left out, and their names.
    """
    found: list[Session] = []
    skipped: list[str] = []
    names: set[str] = set()
    for provider in CLOUDS:
        try:
            found.append(session_with(open_cloud(provider), journal, output))
        except MissingCredentialsError as error:
            skipped.append(f"{provider} is not asked: {error.problems[0]}")
            names.add(provider)
    return found, skipped, names


def _price(machine: Resource) -> Offer | None:
    """The offer of a machine that was found, from the catalog."""
    catalog = load_catalog(today())
    providers = [p for p, row in CLOUDS.items() if row.offered]
    for provider in providers:
        for region in (machine.region, None):
            try:
                return catalog.find(provider, machine.instance_type, region, machine.purchase)
            except GpucostError:
                continue
    return None
