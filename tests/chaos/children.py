"""gpucost commands in forked processes that are killed, cut off or starved at a chosen point."""

import itertools
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import cryptography.hazmat.primitives.asymmetric.ed25519
import cryptography.hazmat.primitives.serialization
import pydo
from urllib3.connectionpool import HTTPConnectionPool

from gpucost import cli
from gpucost.commands import provision
from gpucost.launch import state
from gpucost.launch.live_price import Live
from pricing.errors import MissingCredentialsError
from providers.aws import access, cloud
from providers.interface import Resource
from providers.lifecycle.journal import Journal
from providers.lifecycle.waiting import Clock
from providers.ssh.login import Status
from tests.providers.launches import HASTY

LOADED = (pydo, cryptography)
"""Imported before the first fork, so that no child has to."""

PATIENCE = replace(HASTY, running_rounds=6, gone_rounds=16, settle_rounds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What happens to a command.

    Attributes:
        kill_at: number of the point at which it is killed; None: never.
        skew_s: by how much its clock is wrong.
        file_limit: bytes that a file may have; None: any number.
    """

    kill_at: int | None = None
    skew_s: float = 0.0
    file_limit: int | None = None


class _Ready:
    """Machines that are ready at once."""

    def status(self, machine: Resource) -> Status:
        """Ready."""
        _ = machine
        return Status(state="ready")

    def deliver(self, machine: Resource) -> None:
        """Nothing to hand over."""


def _unread(offers: Any, _: str) -> Live:
    return Live(prices={}, before={}, read_at=datetime.now(UTC), failure=f"not read: {len(offers)}")


@contextmanager
def _points(reach: Callable[[], None]) -> Iterator[None]:
    """Call `reach` before and after every call of an API and every write of the journal."""
    urlopen, writing = HTTPConnectionPool.urlopen, Journal._writing  # noqa: SLF001 - where it writes

    def call(self: Any, *args: Any, **options: Any) -> Any:
        reach()
        answer = urlopen(self, *args, **options)
        reach()
        return answer

    @contextmanager
    def write(self: Any) -> Iterator[None]:
        reach()
        with writing(self):
            yield
        reach()

    with (
        mock.patch.object(HTTPConnectionPool, "urlopen", call),
        mock.patch.object(Journal, "_writing", write),
    ):
        yield


def run(arguments: tuple[str, ...], trouble: Trouble, log: Path) -> tuple[int, int]:
    """Run a command in a process of its own; its exit code (a signal is negative), its points."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(arguments, trouble, log, writing)
    os.close(writing)
    with os.fdopen(reading) as stream:
        told = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(told or 0)


def start(arguments: tuple[str, ...], log: Path) -> int:
    """Start a command and return its process; `wait` ends it."""
    child = os.fork()
    if child == 0:
        _be_child(arguments, Trouble(), log, os.open(os.devnull, os.O_WRONLY))
    return child


def wait(child: int) -> int:
    """The exit code of a started command."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _be_child(arguments: tuple[str, ...], trouble: Trouble, log: Path, told: int) -> None:
    """Run the command here, and never return."""
    code = 99
    try:
        with log.open("a") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        sys.stdout.write(f"$ {' '.join(arguments)} {trouble}\n")
        sys.stdout.flush()
        count = itertools.count()
        reached = [0]

        def reach() -> None:
            reached[0] = next(count) + 1
            if reached[0] - 1 == trouble.kill_at:
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)

        if trouble.file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (trouble.file_limit, trouble.file_limit))
        with _patched(trouble), _points(reach):
            code = cli.run(arguments)
        os.write(told, str(reached[0]).encode())
    except BaseException:  # noqa: BLE001 - a forked process must not return
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def _patched(trouble: Trouble) -> Iterator[None]:
    """Never wait; machines are ready; the live price is not read; clients are not built anew."""
    skew = timedelta(seconds=trouble.skew_s)
    clock = Clock(now=lambda: datetime.now(UTC) + skew, sleep=lambda _: None)
    with (
        mock.patch.object(state, "CLOCK", clock),
        mock.patch.object(state, "PATIENCE", PATIENCE),
        mock.patch.object(provision, "CLOCK", clock),
        mock.patch.object(provision, "open_login", return_value=_Ready()),
        mock.patch.object(provision, "read_live", _unread),
        mock.patch.object(cloud, "open_session", _session),
        mock.patch.object(access, "ATTEMPTS", 2),
    ):
        yield


_SESSIONS: list[Any] = []


class _Keeping:
    """A session of boto3 that keeps its clients, so that a fork finds them built."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._clients: dict[Any, Any] = {}

    def client(self, service: str, region_name: str, config: Any) -> Any:
        """The client, built once."""
        key = (service, region_name, str(config.retries))
        if key not in self._clients:
            self._clients[key] = self._session.client(
                service, region_name=region_name, config=config
            )
        return self._clients[key]

    def get_credentials(self) -> Any:
        """Those of the session."""
        return self._session.get_credentials()


def _session() -> Any:
    if not _SESSIONS:
        raise MissingCredentialsError("AWS has no credentials in this world.")
    return _SESSIONS[0]


def prepare_aws(regions: tuple[str, ...]) -> None:
    """Build the clients before the first fork; none connects."""
    keeping = _Keeping(access.open_session())
    _SESSIONS[:] = [keeping]
    for region in regions:
        for attempts in (access.ATTEMPTS, 1):
            access.client(keeping, "ec2", region, attempts=attempts)
    for region in regions:
        access.client(keeping, "service-quotas", region)
