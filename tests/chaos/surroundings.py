"""What a command of a trial finds around it: the time, its machines, the SDKs built before."""

import importlib
import io
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from unittest import mock

import gpucost
import pricing
import providers
import templates
from gpucost.jobs import steps
from gpucost.launch import provisioning
from gpucost.machines import state
from gpucost.prices import cache as price_cache
from pricing.errors import MissingCredentialsError, ProviderError
from providers.aws import access
from providers.interface import Resource
from providers.lifecycle.session import Clock, Patience
from providers.ssh import connection, shell
from providers.ssh.connection import Proof, Status
from providers.ssh.shell import Answered, LostConnectionError, RemoteShell
from tests.providers.fakes.driven_time import DrivenTime
from tests.providers.launches import PUBLIC_KEY

Ask = Callable[..., Any]
PAUSE_S = 45.0
"""Between two looks: long, because every look costs the trial its time."""

GONE_S = 420.0
"""Until an end is given up: longer than reads lag anywhere, and short for the same reason."""


class _Login:
    """The way into the machines of a trial, with the token that the launch would hand over."""

    def __init__(self, ask: Ask, reach: Callable[[str], None], token: str) -> None:
        self._ask, self._reach, self._token = ask, reach, token

    def _over_ssh(self, *message: Any) -> Any:
        self._reach(f"before {message[0]} over SSH")
        answer = self._ask(*message)
        self._reach(f"after {message[0]} over SSH")
        return answer

    def status(self, machine: Resource) -> Status:
        """As its bootstrap says."""
        state_, reason = self._over_ssh("status", machine.id)
        return Status(state=state_, reason=reason)

    def deliver(self, machine: Resource, *_: Any) -> None:
        """Hand the token over."""
        if self._over_ssh("deliver", machine.id, self._token) is None:
            raise ProviderError(f"{machine.address} cannot be reached over SSH")

    def proof(self, machine: Resource) -> Any:
        """As the machine says."""
        answer = self._over_ssh("proof", machine.id)
        deadline, fault, life_s = answer or (None, "it cannot be reached over SSH", None)
        answered = answer is not None
        return Proof(deadline=deadline, clock=None, fault=fault, answered=answered, life_s=life_s)

    def set_deadline(self, machine: Resource, deadline: Any, life_s: int) -> None:
        """Tell it a later deadline."""
        if self._over_ssh("deadline", machine.id, deadline, life_s) is None:
            raise ProviderError(f"{machine.address} cannot be reached over SSH")


def _first_look(ask: Ask, names: Any, *_: Any, must_ask: bool) -> dict[str, str]:
    """Who does not answer: no socket is opened, and nobody waits."""
    opened = tuple(names)
    return {} if must_ask or ask("reached") else dict.fromkeys(opened, "no network")


def _shell(ask: Ask, reach: Callable[[str], None]) -> Callable[..., Answered]:
    """Commands on the machines of jobs."""

    def run(self: RemoteShell, command: str, given: Any = b"") -> Answered:
        sent = io.BytesIO(given if isinstance(given, bytes) else b"")
        if callable(given):
            given(sent)
        what = _what(command)
        reach(f"before {what} over SSH")
        run = self.door.key.parent.name if self.door.key is not None else ""
        answer = ask("shell", run, self.address, command, sent.getvalue())
        reach(f"after {what} over SSH")
        if answer is None:
            raise LostConnectionError(f"{self.address} cannot be reached over SSH.")
        code, out, err = answer
        return Answered(code=code, out=out, err=err)

    return run


def _read_from(self: RemoteShell, command: str, take: Callable[[io.BytesIO], None]) -> Answered:
    """As RemoteShell's, through its `run`."""
    done = self.run(command)
    take(io.BytesIO(done.out))
    return done


def _what(command: str) -> str:
    """A command for people: "start code", "read job", "tar"."""
    found = re.search(r'tasks/task" (start|read) (\S+)|tasks/task" stop', command)
    if found is not None:
        return f"{found[1]} {found[2]}" if found[1] else "stop"
    words = [word for word in ("tar -x", "tar -c", "cat >", "ls -1") if word in command]
    return words[0] if command.count("\n") == 0 and words else "prepare"


def load() -> None:
    """Import everything before the first fork, so that no child has to."""
    for package in (gpucost, pricing, providers, templates):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    importlib.import_module("pydo")
    importlib.import_module("paramiko")


def _replaced(stack: ExitStack, old: Any, new: Any) -> None:
    """Put something else under a name in every module of ours that has imported it."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("gpucost", "providers"):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    stack.enter_context(mock.patch.object(module, attribute, new))


@contextmanager
def prepared() -> Iterator[None]:
    """Spare every trial what is the same in all: reading the catalog, making a key, SDK clients."""
    with ExitStack() as stack:
        _replaced(stack, price_cache.load_catalog, cache(price_cache.load_catalog))
        _replaced(stack, connection.make_key, _make_key)
        _replaced(stack, access.open_session, _session)
        _replaced(stack, steps.own_wheel, cache(steps.own_wheel))
        _replaced(stack, shell.has_rsync, lambda: False)
        stack.enter_context(mock.patch.object(access, "ATTEMPTS", 2))
        yield


_MAKE_KEY = connection.make_key
_OPEN_SESSION = access.open_session
_SESSIONS: list[Any] = []


def _make_key(folder: Any, run: str) -> str:
    """The same key for every run: making one takes time, and is tried elsewhere."""
    path = connection.key_file(folder, run)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text("a key", encoding="utf-8")
    return PUBLIC_KEY


class _Keeping:
    """A session of boto3 that keeps its clients, so that a fork finds them built."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._clients: dict[Any, Any] = {}

    def client(self, service: str, region_name: str, config: Any) -> Any:
        """The client, built once."""
        key = (service, region_name, str(config.retries))
        if key not in self._clients:
            made = self._session.client(service, region_name=region_name, config=config)
            self._clients[key] = made
        return self._clients[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _session() -> Any:
    if not _SESSIONS:
        raise MissingCredentialsError("AWS has no credentials in this trial.")
    return _SESSIONS[0]


def prepare_aws(regions: tuple[str, ...]) -> None:
    """Build the clients before the first fork; none connects."""
    keeping = _Keeping(_OPEN_SESSION())
    _SESSIONS[:] = [keeping]
    for region in regions:
        for attempts in (access.ATTEMPTS, 1):
            for service in ("ec2", "scheduler"):
                access.client(keeping, service, region, attempts=attempts)
        access.client(keeping, "service-quotas", region)
    access.client(keeping, "sts", regions[1])


def forget_aws() -> None:
    """The account has no credentials from here on."""
    _SESSIONS.clear()


@contextmanager
def patched(time: DrivenTime, ask: Ask, reach: Callable[[str], None]) -> Iterator[None]:
    """The surroundings of one command."""
    clock = Clock(now=lambda: datetime.now(UTC), sleep=time.sleep)
    patience = replace(Patience(), pause_s=PAUSE_S, gone_s=GONE_S)

    def open_login(spec: Any) -> _Login:
        token = "" if not spec.self_destroy else "token"
        return _Login(ask, reach, token)

    def login_again(*_: Any) -> _Login:
        return _Login(ask, reach, "token")

    def unread(offers: Any, _: str) -> provisioning.LivePrices:
        told = f"not read: {len(offers)}"
        return provisioning.LivePrices(
            prices={}, before={}, read_at=datetime.now(UTC), failure=told
        )

    with ExitStack() as stack:
        look = partial(_first_look, ask)
        stack.enter_context(mock.patch.object(state, "tell_unreached", look))
        stack.enter_context(mock.patch.object(state, "CLOCK", clock))
        stack.enter_context(mock.patch.object(state, "PATIENCE", patience))
        stack.enter_context(mock.patch.object(provisioning, "CLOCK", clock))
        stack.enter_context(mock.patch.object(provisioning, "open_login", open_login))
        stack.enter_context(mock.patch.object(state, "login_again", login_again))
        stack.enter_context(mock.patch.object(provisioning, "read_live", unread))
        stack.enter_context(mock.patch.object(RemoteShell, "run", _shell(ask, reach)))
        stack.enter_context(mock.patch.object(RemoteShell, "read_from", _read_from))
        yield
