"""The journal, the providers and the machines of this computer's state folder."""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import click

from gpucost.arguments.parameters import today
from gpucost.arguments.settings import load_budgets
from gpucost.files.writing import state_folder
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output
from pricing.catalog.offer import Offer, parse_place
from pricing.errors import GpucostError, InputError, MissingCredentialsError, RefusedError
from pricing.message import Message
from pricing.money import show
from providers.budgets import Spending, names_of, over_budget, run_spending
from providers.interface import OWN, Cloud, Connection, Deployment, Resource
from providers.journal.journal import FILE, Journal, JournalError
from providers.journal.journal_file import DamagedJournalError, NewerJournalError, set_aside
from providers.lifecycle.session import Clock, Patience, Session
from providers.ownership_tags import keep_owner, owner_of
from providers.price_feed import fault_of, proxy_of
from providers.private_files import NotOursError
from providers.registry import CLOUDS, connect
from providers.ssh.connection import Login, SshAccess, key_file, known_hosts, own_door
from templates.strangers import printable


def new_door(provider: str, run: str, state: Path, host: str = "") -> SshAccess:
    """Return the way into machines of a run: its key, or the user's for a machine of theirs."""
    if provider == OWN:
        return own_door(host)
    return SshAccess(
        user=CLOUDS[provider].user, key=key_file(state, run), known_hosts=known_hosts(state, run)
    )


def door_of(run: Deployment, state: Path) -> SshAccess:
    """Return the way into the machines of a run of the journal."""
    host = next((machine.id for machine in run.machines), "")
    return new_door(run.provider, run.marks.run, state, host)


def login_to(
    provider: str, run: str, state: Path, host: str = "", *, self_destroy: bool = True
) -> Login:
    """Return the way into machines of a run, with their end token where they need one."""
    name = CLOUDS[provider].end.token if self_destroy else ""
    token = os.environ.get(name, "") if name else ""
    return Login(door=new_door(provider, run, state, host), token=token)


def login_again(provider: str, run: str, state: Path) -> Login | None:
    """Return the way into machines of a run that was launched from here.

    None where its key is gone.
    """
    if provider == OWN or not key_file(state, run).is_file():
        return None
    return login_to(provider, run, state)


Say = Callable[[str], None]
CLOCK = Clock()
_METADATA_S = 0.3
PATIENCE = Patience()


def job_request_file(run: str) -> Path:
    """Return where the request of a run's job is kept, as long as it has not ended."""
    return state_folder() / "jobs" / run / "request.json"


def this_owner() -> str:
    """Return who launches from here; the same as long as the state folder lives."""
    return owner_of(os.environ, state_folder())


@contextmanager
def open_journal(*, go_on: Say | None = None, mend: bool = False) -> Iterator[Journal]:
    """Open the journal.

    Args:
        go_on: where given, a journal that cannot be used ends nothing: this is told why, and an
            empty one in memory stands in (`Journal.lost` says why, too). One of a newer version is
            never worked around.
        mend: a damaged journal is set aside, and a new one made in its place.

    Raises:
        JournalError: it cannot be used.
    """
    journal = _journal(go_on, mend=mend)
    with suppress(OSError):  # a full disk must not keep a machine alive; `provision` insists
        keep_owner(state_folder())
    try:
        yield journal
    finally:
        journal.close()


def journal_spending(without: str = "") -> tuple[Spending, ...]:
    """Return what runs of the journal have cost, or may by their deadline; none: no journal.

    Args:
        without: a run that does not count.
    """
    if not (state_folder() / FILE).exists():
        return ()
    with open_journal() as journal:
        runs = [run for run in journal.deployments() if run.marks.run != without]
    return tuple(run_spending(run, CLOCK.at(0.0)) for run in runs)


def hold_budgets(
    owner: str, begins: datetime, ends: datetime, usd: Decimal, without: str = ""
) -> Iterator[Message]:
    """Yield which budgets of a team or owner a launch would exceed; without a budget.toml none.

    Args:
        owner: whose launch it is.
        begins: of its bill.
        ends: of its bill, at the latest.
        usd: what it costs at most.
        without: the run itself, where it is in the journal.
    """
    if budgets := load_budgets():
        launch = Spending(names=names_of(owner), begins=begins, ends=ends, usd=usd)
        yield from over_budget(budgets, journal_spending(without), launch)


def offer_here(machine: str | None, *, metadata: bool) -> Offer | None:
    """Return how this machine is sold, as stated or as it says itself; None where neither is."""
    from telemetry.measure.identity import MachineIdentityReader  # noqa: PLC0415 - lazy

    catalog = load_catalog(today())
    if machine is not None:
        return catalog.find(*parse_place(machine))
    identity = MachineIdentityReader(metadata=metadata)
    identity.wait(_METADATA_S)
    facts = identity.facts()
    if "provider" not in facts or "instance_type" not in facts:
        return None
    with suppress(InputError):
        return catalog.find(facts["provider"], facts["instance_type"], facts.get("region"))
    return None


def _journal(go_on: Say | None, *, mend: bool) -> Journal:
    folder = state_folder()
    try:
        return _checked(folder)
    except NewerJournalError:
        raise
    except (JournalError, NotOursError) as error:
        if go_on is None:
            raise
        go_on(f"warning: {error.problems[0]}")
        if mend and isinstance(error, DamagedJournalError):
            with suppress(JournalError, OSError):
                damaged = set_aside(folder, datetime.now(UTC))
                go_on(f"warning: set aside as {damaged}; what exists is read from the providers.")
                return _checked(folder)
        go_on("warning: going on without the journal: what exists is read from the providers.")
        return Journal(folder, lost=error.problems[0])


def _checked(folder: Path) -> Journal:
    """Return the journal, once every open run in it could be read."""
    journal = Journal(folder)
    try:
        journal.open_deployments()
    except JournalError:
        journal.close()
        raise
    return journal


def open_cloud(provider: str) -> Cloud:
    """Return the provider with the credentials of the environment.

    Raises:
        MissingCredentialsError: names the variable.
    """
    connection = Connection(environment=os.environ, state=str(state_folder()))
    return connect(provider, connection)


def session_with(cloud: Cloud, journal: Journal, output: Output) -> Session:
    """Return a session that tells the user what happens."""
    return Session(
        cloud=cloud,
        journal=journal,
        clock=CLOCK,
        patience=PATIENCE,
        say=output.say,
        price=_price,
        login=lambda run: login_again(cloud.name, run, state_folder()),
        may_end=_may_end,
    )


def _may_end(machine: str) -> bool:
    """Ask whether what somebody has renamed ends; nobody at the terminal, or --yes, is a no."""
    context = click.get_current_context(silent=True)
    if not sys.stdin.isatty() or (context is not None and context.params.get("yes")):
        return False
    return click.confirm(f"{printable(machine)}. End it all the same?", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreachableProvider:
    """A provider that cannot be asked at all.

    Attributes:
        provider: its name.
        why: in a sentence.
        is_set_up: whether the environment names credentials, and wrongly; else it names none.
    """

    provider: str
    why: str
    is_set_up: bool

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.provider} is not asked: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableProviders:
    """Providers, each on its own: one that cannot be opened is in nobody's way.

    Attributes:
        sessions: with those that can be asked.
        unreached: the others.
        open_at: providers at which the journal has an open run.
    """

    sessions: tuple[Session, ...]
    unreached: tuple[UnreachableProvider, ...]
    open_at: frozenset[str] = frozenset()

    @property
    def queried(self) -> tuple[str, ...]:
        """Names of providers whose machines cost money, and which can be asked."""
        names = (session.cloud.name for session in self.sessions)
        return tuple(name for name in names if self._costs(name))

    def _costs(self, name: str) -> bool:
        row = CLOUDS[name]
        return row.offered or (bool(row.pools_of) and (row.is_named or name in self.open_at))

    def missed(self, open_runs: Iterable[Deployment]) -> tuple[UnreachableProvider, ...]:
        """Return those that matter: with runs of ours, or whose credentials are named wrongly."""
        providers = {run.provider for run in open_runs}
        return tuple(
            provider
            for provider in self.unreached
            if provider.is_set_up or provider.provider in providers
        )


_SAID_S = 1.5  # ours: it is said within 3 s of the command, which has to start, too
_WAITED_S = 10.0  # ours: the longest that a network may take to answer a command that only looks


def tell_unreached(
    providers: Iterable[str], journal: Journal, output: Output, *, must_ask: bool
) -> dict[str, str]:
    """Say within 3 s that a provider cannot be reached, and what burns there by the last record.

    Args:
        providers: their names; each is looked for at once, while the next one is told.
        journal: with the last record.
        output: where it is said.
        must_ask: whether they are asked all the same: a slow network must not keep a machine alive.

    Returns:
        without `must_ask`: the providers that did not answer in ten seconds, and why.
    """
    began = time.monotonic()
    names: dict[str, list[str]] = {}
    faults: dict[str, str] = {}
    threads: dict[str, Thread] = {}
    for name in providers:
        url = os.environ.get(CLOUDS[name].endpoint) or CLOUDS[name].address
        if url and url not in names:
            faults[url] = "no answer yet"
            threads[url] = Thread(target=_look, args=(url, faults), daemon=True)
            threads[url].start()
        if url:
            names.setdefault(url, []).append(name)
    _wait(threads.values(), began + _SAID_S)
    for url, fault in faults.items():
        if not fault:
            continue
        proxy = urlsplit(proxy_of(url)).netloc.rpartition("@")[2]
        way, check = (f" through the proxy {proxy}", "HTTPS_PROXY and ") if proxy else ("", "")
        on = "; trying on ..." if must_ask or threads[url].is_alive() else "."
        at = f"{', '.join(names[url])} cannot be reached at {urlsplit(url).hostname}{way}"
        output.say(f"{at}: {fault}. Check {check}the network{on}")
        runs = [run for run in journal.open_deployments() if run.provider in names[url]]
        if runs:
            output.say(f"by the last record {', '.join(map(_burning, runs))} may still be there.")
    if must_ask:
        return {}
    _wait(threads.values(), began + _WAITED_S)
    return {name: fault for url, fault in faults.items() for name in names[url] if fault}


def _look(url: str, faults: dict[str, str]) -> None:
    faults[url] = fault_of(url, _WAITED_S)


def _wait(threads: Iterable[Thread], until: float) -> None:
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def _searches(provider: str) -> bool:
    """Return whether no key of a provider is in the environment.

    An SDK may then look for one on the network, for seconds where nobody answers there.
    """
    secrets = (variable.name for variable in CLOUDS[provider].variables if variable.secret)
    return not any(map(os.environ.get, secrets))


def _burning(run: Deployment) -> str:
    usd = "" if run.offer is None else f"${show(run.offer.usd_per_hour * run.count)} an hour "
    return f"{run.marks.run} ({usd}until {run.marks.deadline:%Y-%m-%d %H:%M} UTC)"


def sessions(
    journal: Journal,
    output: Output,
    providers: Collection[str] = tuple(CLOUDS),
    *,
    forgotten: bool = False,
    must_ask: bool = False,
) -> ReachableProviders:
    """Return a session with each of these providers that can be asked.

    Where nothing of ours may be, nobody is asked: pools of clusters that were never named here,
    unless what was named here may be `forgotten`. One that does not answer is tried on only where
    something is to be ended (`must_ask`).
    """
    open_at, state = frozenset(run.provider for run in journal.open_deployments()), state_folder()
    is_used = {name: CLOUDS[name].is_used(os.environ, state) for name in providers}
    used = [name for name in providers if forgotten or name in open_at or is_used[name]]
    opened: list[Session] = []
    unreached: list[UnreachableProvider] = []

    def open_each() -> Iterator[str]:
        for provider in sorted(used, key=_searches):
            try:
                session = session_with(open_cloud(provider), journal, output)
            except GpucostError as error:
                is_known = not isinstance(error, MissingCredentialsError)
                why = error.problems[0]
                reason = UnreachableProvider(provider=provider, why=why, is_set_up=is_known)
                unreached.append(reason)
            else:
                opened.append(session)
                yield session.cloud.name

    silent = tell_unreached(open_each(), journal, output, must_ask=must_ask)
    for name, why in silent.items():
        unreached.append(UnreachableProvider(provider=name, why=why, is_set_up=True))
    answering = tuple(session for session in opened if session.cloud.name not in silent)
    return ReachableProviders(sessions=answering, unreached=tuple(unreached), open_at=open_at)


def _price(machine: Resource) -> Offer | None:
    """Return the offer of a machine that was found, from the catalog."""
    catalog = load_catalog(today())
    providers = [p for p, row in CLOUDS.items() if row.offered]
    for provider in providers:
        for region in (machine.region, None):
            try:
                return catalog.find(provider, machine.instance_type, region, machine.purchase)
            except GpucostError:
                continue
    return None


def confirm(question: str, *, yes: bool) -> None:
    """Return when the answer is yes.

    Args:
        question: what is about to happen.
        yes: the user said so already.

    Raises:
        InputError: nobody can be asked.
        RefusedError: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(Message("machine.no-terminal", question=question))
    if not click.confirm(question, default=False, err=True):
        raise RefusedError("Not confirmed; nothing was done.")
