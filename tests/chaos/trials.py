"""Trials: something goes wrong in some world, everything is ended, and what is left is told."""

import gc
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest import mock

from tests.chaos.accounts import ACCOUNTS, Account
from tests.chaos.computers import BOOT_S, LOOK_S, Boot
from tests.chaos.exchange import Answer, Call, exchange
from tests.chaos.job_machines import JobMachines
from tests.chaos.pool_accounts import POOL_ACCOUNTS
from tests.chaos.surroundings import forget_aws, load, prepare_aws, prepared
from tests.chaos.truth import Count, check_ledger, lies
from tests.chaos.wire import Command, Ended, Trouble, run, run_here
from tests.providers.fakes.aws_account import REGIONS
from tests.providers.fakes.driven_time import DrivenTime, driven_time
from tests.providers.fakes.world import World

TTL = timedelta(hours=2)
_PLAIN_LAUNCH = ("provision", "--ttl", "2h", "--yes", "--allow-stale")
_LAUNCH = (*_PLAIN_LAUNCH, "--ssh-from", "anywhere")
_POOL = ("--kubernetes", "prod-1", "--no-self-destroy")
_CLUSTER = (*_PLAIN_LAUNCH, "--kubernetes", "prod-1")
END_ROLE = "arn:aws:iam::123456789012:role/gpucost-end"
LAUNCHES: dict[str, dict[str, Command]] = {
    "digitalocean": {
        "1x GPU": (*_LAUNCH, "--type", "digitalocean/gpu-h100x1-80gb"),
        "8x GPU": (*_LAUNCH, "--type", "digitalocean/gpu-h100x8-640gb"),
        "two nodes": (*_LAUNCH, "--type", "digitalocean/gpu-h100x8-640gb", "--count", "2"),
    },
    "lambda": {
        "1x GPU": (*_LAUNCH, "--type", "lambda/gpu_1x_a10"),
        "8x GPU": (*_LAUNCH, "--type", "lambda/gpu_8x_h100_sxm5"),
        "two nodes": (*_LAUNCH, "--type", "lambda/gpu_1x_a10", "--count", "2"),
    },
    "doks": {
        "1x GPU": (*_CLUSTER, "--type", "digitalocean/gpu-h100x1-80gb"),
        "two nodes": (
            *_PLAIN_LAUNCH,
            *_POOL,
            "--type",
            "digitalocean/gpu-h100x8-640gb",
            "--count",
            "2",
        ),
    },
    "eks": {
        "1x GPU": (*_PLAIN_LAUNCH, *_POOL, "--type", "aws/g6.xlarge/us-east-1"),
        "two nodes": (*_PLAIN_LAUNCH, *_POOL, "--type", "aws/g6.xlarge/us-east-1", "--count", "2"),
        "end role": (*_CLUSTER, "--type", "aws/g6.xlarge/us-east-1", "--end-role", END_ROLE),
    },
    "aws": {
        "1x GPU": (*_LAUNCH, "--type", "aws/g6.xlarge/us-east-1"),
        "8x GPU": (*_LAUNCH, "--type", "aws/p5.48xlarge/us-east-1"),
        "two nodes": (*_LAUNCH, "--type", "aws/g6.xlarge/us-east-1", "--count", "2"),
        "spot": (*_LAUNCH, "--type", "aws/p5.48xlarge/us-east-1", "--purchase", "spot"),
        "end role": (*_LAUNCH, "--type", "aws/g6.xlarge/us-east-1", "--end-role", END_ROLE),
    },
}
DOWN: Command = ("down", "--all", "--yes")
REAP: Command = ("reap", "--yes")
LIST: Command = ("list", "--all")
_ROUNDS = 4
_SLACK = timedelta(seconds=BOOT_S + LOOK_S)  # its watch counts from boot, and looks now and then
_NONE_RUNS = ("no machines running", "no machine of this state folder running")
_BETWEEN_S = 600.0
"""The documented recovery: `down --all` and `reap`, and again ten minutes later."""


@dataclass(kw_only=True)
class Stage:
    """An account to play with, and a folder for the journals and the logs of its trials."""

    kind: str
    account: Account
    time: DrivenTime
    folder: Path
    state: Path = field(default_factory=Path)
    log: Path = field(default_factory=Path)
    machines: JobMachines = field(init=False)
    number: int = 0
    before: set[str] = field(default_factory=set)
    deadline: datetime = field(default_factory=lambda: datetime.now(UTC))
    told: bool = False
    answers: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machines = JobMachines(folder=self.folder / "machines")

    @contextmanager
    def trial(self, world: World, boot: Boot | None = None, **more: str) -> Iterator[None]:
        """An account without anything of ours, in a world, and no journal."""
        self.number += 1
        self.time.reset()
        self.state = self.folder / f"trial-{self.number}"
        self.log = self.folder / f"trial-{self.number}.log"
        self.account.reset(world)
        self.account.computers.reset(boot or Boot())
        self.before = self.account.foreign()
        self.answers.clear()
        self.deadline = datetime.now(UTC) + TTL
        told = self.account.environment() | _PLAIN | {"GPUCOST_STATE_DIR": str(self.state)}
        with mock.patch.dict("os.environ", told | more):
            yield
        shutil.rmtree(self.state, ignore_errors=True)
        self.machines.clear()

    def run(self, command: Command, trouble: Trouble | None = None) -> Ended:
        """Run a command; where nothing happens to it, in this process, which is much quicker."""
        if trouble is None:
            return run_here(command, self.answer, self.time, self.log)
        return self.run_all(((command, trouble),))[0]

    def run_all(self, commands: tuple[tuple[Command, Trouble], ...]) -> list[Ended]:
        """Run commands at the same time; what one that was killed was answered is forgotten."""
        heard = len(self.answers)
        ended = run(commands, self.answer, self.time, self.log)
        if any(one.was_killed for one in ended):
            del self.answers[heard:]
        return ended

    def answer(self, message: tuple[Any, ...]) -> Any:
        """What the account, or one of its machines, says."""
        machines = self.account.computers.now()
        if message[0] == "call":
            return self._call(message[1:]) if message[2] == self.account.host else None
        if message[0] == "shell":
            there = [one for one in machines.values() if one.seen.run == message[1]]
            reached = any(one.boot.starts and one.boot.reachable for one in there)
            return self.machines.run(*message[2:]) if reached else None
        if message[0] == "reached":
            return not self.account.app.world.cut
        machine = machines.get(message[1])
        if machine is None or not (machine.boot.starts and machine.boot.reachable):
            return _UNREACHED[message[0]]
        if message[0] == "status":
            return machine.status(datetime.now(UTC))
        if message[0] == "deadline":
            machine.moved = (message[2], float(message[3]))
            return ""
        if message[0] == "deliver":
            machine.token = message[2]
            return ""
        return machine.proof(datetime.now(UTC))

    def _call(self, call: Call) -> Answer:
        """What the account answers, which is kept."""
        world = self.account.app.world
        if world.cut:
            return None
        if world.doubled and _is_doubled(call, world.doubled):
            exchange(self.account.app, call)
        answer = exchange(self.account.app, call)
        if answer is not None and answer[0] < HTTPStatus.BAD_REQUEST:
            self.answers.append(answer[2])
        return answer

    def happens(self, what: str) -> None:
        """Let others do something, by its name here or in the account; what is theirs is noted."""
        (getattr(self, what, None) or getattr(self.account, what))()
        self.before = self.account.foreign()

    def cut(self) -> None:
        """From here on there is no network."""
        self.account.app.world = replace(self.account.app.world, cut=True)

    def lose_state(self) -> None:
        """The state folder is lost, with its owner's id and keys, and rebuilt from the marks."""
        shutil.rmtree(self.state, ignore_errors=True)
        self.run(("list", "--recover"))

    def warm(self) -> None:
        """Run every command once, so that a forked one finds all that it imports."""
        with self.trial(World()):
            for command in (LAUNCHES[self.kind]["1x GPU"], LIST, DOWN, REAP, LIST):
                ended = self.run(command)
                if ended.code != 0:
                    raise RuntimeError(f"{' '.join(command)} ends with {ended.code}: {self.log}")
        gc.collect()
        gc.freeze()

    def look(self, ended: Ended, count: Count) -> None:
        """Hold what a command said against what there is."""
        for told in lies(ended, self.account, self.state):
            count.lies += 1
            count.told.append(f"lie: {told}: {self.log}")
        if "Traceback" in ended.output or ended.code in (1, 99):
            count.bugs += 1
            count.told.append(f"bug: exit {ended.code}: {self.log}")

    def recover(self, count: Count, *, heals: bool = False, has_journal: bool = True) -> None:
        """End everything as the documents say, and count what is left.

        Args:
            count: gets the counts.
            heals: the provider answers again once the first try is over; machines are gone then.
            has_journal: the journal is whole, so that its bills are held against the account's.
        """
        for at in range(_ROUNDS):
            if at == 1 and heals:
                world = self.account.app.world
                if not (world.elsewhere or world.cut):
                    self.count_left(count, side=False)  # what is broken keeps no machine
                self.account.heal()
                self.before &= self.account.foreign()
            ends = [self.run(DOWN), self.run(REAP)]
            for ended in ends:
                self.look(ended, count)
            if all(ended.code == 0 for ended in ends):
                break
            self.time.sleep(_BETWEEN_S)
        else:
            count.refused += 1
            count.told.append(f"the recovery ends with {[e.code for e in ends]}: {self.log}")
        listed = self.run(LIST)
        self.look(listed, count)
        if has_journal and not any(state in listed.output for state in _NONE_RUNS):
            count.lies += 1
            count.told.append(f"lie: machines are said to burn after the recovery: {self.log}")
        self.count_left(count)
        if has_journal:
            check_ledger(self.account, self.state, count, self.log, self.answers)

    def count_left(self, count: Count, *, side: bool = True) -> None:
        """Count what is left of ours and gone of others."""
        self.told = self.told or bool(count.told)  # its logs stay
        machines, rest = self.account.left()
        gone = self.before - self.account.foreign()
        count.machines += len(machines)
        keys = (f"private key of {path.name}" for path in self.state.glob("keys/*"))
        rest = [*rest, *keys] if side else []
        count.side_resources += len(rest)
        count.foreign += len(gone)
        for what, names in (("left: machines", machines), ("left", rest), ("foreign", gone)):
            if names:
                count.told.append(f"{what}: {sorted(names)}: {self.log}")

    def nobody(self, count: Count, *, may_stay: bool) -> None:
        """Nobody comes: what is billed an hour after the deadline."""
        wait_s = (self.deadline - datetime.now(UTC)).total_seconds() + 3600.0
        self.time.sleep(max(0.0, wait_s))
        machines, _ = self.account.left()
        if machines and not may_stay:
            count.late += len(machines)
            count.told.append(f"after the deadline: {machines}: {self.log}")
        count.may_stay += len(machines) if may_stay else 0

    def hold_cap(self, count: Count, machines: int) -> None:
        """Hold the life of all machines, up to now or their deadline, against what was confirmed.

        The cap of these launches is the price of so many machines for the TTL, and every place has
        one price; so dollars over the cap are hours over it.
        """
        lived = timedelta()
        lives = self.account.lives()
        for born, died in (life for key, life in lives.items() if key not in self.account.taken):
            lived += (died or self.account.app.world.now()) - born
        if lived > (TTL + _SLACK) * machines:
            count.cap += 1
            count.told.append(f"cap: {lived} of {TTL * machines}: {self.log}")


_MACHINES = ("/v2/droplets", "/instance-operations/launch", "/node_pools", "/node-groups")


def _is_doubled(call: Call, which: str) -> bool:
    """Whether a proxy sends a call twice; of AWS, where every call is a POST, what makes."""
    method, _, url, _, body = call
    form = body.decode() if isinstance(body, bytes) else str(body or "")
    makes = "Action=RunInstances" in form or url.partition("?")[0].endswith(_MACHINES)
    every = which == "every" and url != "/" and "scheduler" not in url
    return method == "POST" and (makes or every)


Job = Callable[[Stage], Count]
"""Trials of one kind."""

_UNREACHED = {"status": ("pending", ""), "deliver": None, "deadline": None, "proof": None}
_PLAIN = {
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
    "GPUCOST_OWNER": "ada",
}


@contextmanager
def stage(kind: str) -> Iterator[Stage]:
    """An account of a provider, in a time of its own, in a folder that goes away."""
    load()
    memory = Path("/dev/shm")  # noqa: S108 - every write of a journal is synced, and disks are slow
    folder = Path(
        tempfile.mkdtemp(prefix="gpucost-chaos-", dir=memory if memory.is_dir() else None)
    )
    account = (ACCOUNTS | POOL_ACCOUNTS)[kind]()
    forget_aws()
    with prepared(), mock.patch.dict("os.environ", account.environment() | _PLAIN):
        if kind in ("aws", "eks"):
            prepare_aws(REGIONS)
        with driven_time() as time:
            here = Stage(kind=kind, account=account, time=time, folder=folder)
            try:
                here.warm()
                yield here
            finally:
                if not here.told:
                    shutil.rmtree(folder)
