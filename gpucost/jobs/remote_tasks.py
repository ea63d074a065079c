"""A machine of a job: its steps are started there once, and run on whoever is connected."""

import contextlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from pricing.errors import ProviderError
from providers.ssh.connection import ROOT
from providers.ssh.shell import RemoteShell, Transfer
from templates.job_scripts import prepare_script, task_script

_TASK = f'"{ROOT}/var/lib/gpucost/tasks/task"'


class StepFailedError(ProviderError):
    """A step of a job went wrong on its machine; trying again would not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """How far a step is on its machine.

    Attributes:
        word: absent; running; ended; lost: it ran, and the machine knows nothing of its end.
        code: exit status, where it ended.
    """

    word: str
    code: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether it ended well."""
        return self.code == 0


@dataclass(slots=True, kw_only=True)
class JobMachine:
    """A machine that a job runs on.

    Attributes:
        rank: 0 for the first.
        name: ours.
        shell: commands there.
        progress: whether a person looks on.
        facts: what it said of itself; empty before `prepare`.
    """

    rank: int
    name: str
    shell: RemoteShell
    progress: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the folders of the job there, and learn what there is.

        Raises:
            StepFailedError: they cannot be made.
            LostConnectionError: it may be tried again.
        """
        if self.facts:
            return
        done = self.shell.run(prepare_script(), task_script().encode())
        if done.code != 0:
            raise StepFailedError(f"{self.name}: its folders cannot be made: {done.err.strip()}")
        lines = done.out.decode("utf-8", "replace").splitlines()
        self.facts = dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def work(self) -> str:
        """Folder of the job there."""
        return self.facts["work"]

    @property
    def files(self) -> Transfer:
        """How files go there."""
        has_rsync = bool(self.facts.get("rsync"))
        return Transfer(shell=self.shell, rsync=has_rsync, progress=self.progress)

    def start(self, step: str, script: str, *, once: bool = False) -> None:
        """Start a step, unless it runs or has ended well; with `once`, unless it ever started.

        Raises:
            StepFailedError: it does not start.
            LostConnectionError: it may have started; asking again starts it once.
        """
        given = script.encode()
        words = f"{_TASK} start {shlex.quote(step)} {len(given)}{' once' if once else ''}"
        done = self.shell.run(words, given)
        if done.code != 0:
            raise StepFailedError(f"{self.name}: {step} does not start: {done.err.strip()}")

    def read(self, step: str, seen: int = 0, wait_s: int = 0) -> tuple[TaskState, bytes]:
        """Return how far a step is, and its log from a byte on, as far as one answer holds it.

        Args:
            step: its name.
            seen: bytes of the log that are known.
            wait_s: for how long the machine may wait for something new to tell.

        Raises:
            ProviderError: the machine has no steps of a job.
            LostConnectionError: it may be asked again.
        """
        done = self.shell.run(f"{_TASK} read {shlex.quote(step)} {seen} {wait_s}")
        if done.code != 0:
            raise ProviderError(f"{self.name}: no job is known there ({done.err.strip()}).")
        line, _, log = done.out.partition(b"\n")
        word, _, code = line.decode().partition(" ")
        return TaskState(word=word, code=int(code) if code.strip().isdecimal() else None), log

    def stop(self) -> None:
        """End all that runs of the job; a machine that cannot be reached is left."""
        with contextlib.suppress(ProviderError):
            self.shell.run(f"{_TASK} stop")
