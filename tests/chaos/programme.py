"""Which trials there are: worlds x kill points for `make chaos`, some of them for every run."""

from dataclasses import dataclass, field
from functools import partial

from tests.chaos.computers import Boot
from tests.chaos.jobs import jobs_killed
from tests.chaos.trials import DOWN, LAUNCHES, LIST, REAP, Job, Stage
from tests.chaos.troubles import (
    endless,
    extends,
    falls_back,
    full_disk,
    kills,
    troubles,
    unreadable,
)
from tests.chaos.truth import Count
from tests.chaos.wire import Command, Trouble
from tests.providers.fakes.world import NEVER, Denied, World

_HOUR_S = 3600.0
POOLS = ("doks", "eks")
_MACHINES = ("digitalocean", "aws", "lambda")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A world that launches are killed in.

    Attributes:
        world: how the provider misbehaves.
        boot: how machines do.
        heals: whether the provider must answer again before everything can be ended.
        kinds: providers that have it.
        before: happens when the launch is over: done by others to the account, or to this computer.
    """

    world: World = field(default_factory=World)
    boot: Boot = field(default_factory=Boot)
    heals: bool = False
    kinds: tuple[str, ...] = ("digitalocean", "aws", "lambda", *POOLS)
    before: str = ""


Killed = tuple[Command, int, bool]
"""A launch, the point at which it is killed, and whether nobody comes until the deadline."""

_AWS = ("aws",)
_TAKEN = ("digitalocean", "aws", "doks")
"""Where names and marks of what runs can be changed: not at Lambda, and not of groups of EKS."""

_DOUBLED = ("digitalocean", "aws", "lambda", "doks")
"""EKS takes one call of a name and token, however often it comes."""

CASES: dict[str, Case] = {
    "plain": Case(),
    "lists 10 s late": Case(world=World(list_lag_s=10)),
    "lists 60 s late": Case(world=World(list_lag_s=60)),
    "lists 120 s late": Case(world=World(list_lag_s=120)),
    "every read 60 s late": Case(world=World(list_lag_s=60, read_lag_s=60)),
    "every read 120 s late": Case(world=World(list_lag_s=120, read_lag_s=120)),
    "the end is shown 90 s late": Case(world=World(end_lag_s=90)),
    "tags 60 s late": Case(world=World(tag_lag_s=60)),
    "tags never": Case(world=World(tag_lag_s=NEVER)),
    "tags deleted by somebody": Case(before="untag"),
    "tags copied to a snapshot": Case(before="copy_tags", kinds=_MACHINES),
    "a machine copied by somebody": Case(before="copy_machine", heals=True, kinds=_AWS),
    "renamed and retagged by somebody": Case(before="take_over", heals=True, kinds=_TAKEN),
    "creates doubled by a proxy": Case(world=World(doubled="machines"), kinds=_DOUBLED),
    "every POST doubled by a proxy": Case(world=World(doubled="every"), kinds=_DOUBLED),
    "the state folder lost": Case(before="lose_state", kinds=(*_MACHINES, *POOLS)),
    "no network for down": Case(before="cut", heals=True),
    "credentials of another account": Case(before="leave", heals=True),
    "a page of each list lost": Case(world=World(page_size=1, lost_page=2)),
    "the first page lost": Case(world=World(page_size=1, lost_page=1)),
    "its clock 3 h ahead": Case(world=World(skew_s=3 * _HOUR_S)),
    "its clock 3 h behind": Case(world=World(skew_s=-3 * _HOUR_S)),
    "volumes denied": Case(world=World(denied=(Denied(kind="volume"),)), heals=True),
    "snapshots fail": Case(
        world=World(denied=(Denied(kind="snapshot", status=500, code="InternalError"),)), heals=True
    ),
    "firewalls denied": Case(
        world=World(denied=(Denied(kind="firewall"), Denied(kind="security-group"))), heals=True
    ),
    "tags denied": Case(world=World(denied=(Denied(kind="tag"),)), heals=True),
    "another region denied": Case(
        world=World(denied=(Denied(region="eu-west-1", calls="all"),)), heals=True, kinds=_AWS
    ),
    "cloud-init stuck": Case(boot=Boot(bootstraps=False), kinds=_MACHINES),
    "the bootstrap fails": Case(boot=Boot(fails=True), kinds=_MACHINES),
    "not reachable over SSH": Case(boot=Boot(reachable=False), kinds=_MACHINES),
    "pools denied": Case(
        world=World(denied=(Denied(kind="pool", calls="change"),)), heals=True, kinds=POOLS
    ),
    "calls take 10 s": Case(world=World(latency_s=10)),
    **{f"{k} reads lost": Case(world=World(lost_answers=k)) for k in (1, 2, 3, 5, 8, 13, 20)},
    **{
        f"{k} changing answers lost": Case(world=World(lost_answers=k, lost_calls="change"))
        for k in (1, 2, 5)
    },
    **{f"{k} answers lost": Case(world=World(lost_answers=k, lost_calls="all")) for k in (3, 20)},
}
"""Every world, by what it is."""


def in_world(
    here: Stage, case: Case, *, step: int, first: int = 0, launch: str = "1x GPU"
) -> Count:
    """Kill a launch at its points in a world; then nobody comes, or the recovery does."""
    count = Count()
    command = LAUNCHES[here.kind][launch]
    points = _whole(here, case, command, count)
    for number, at in enumerate(range(first, points, step)):
        _killed(here, case, count, (command, at, bool(number % 2)))
    return count


def _whole(here: Stage, case: Case, launch: Command, count: Count) -> int:
    """The launch without a kill, looked at, ended; its points."""
    with here.trial(case.world, case.boot):
        count.trials += 1
        ended = here.run(launch)
        here.look(ended, count)
        if case.before:
            here.happens(case.before)
        here.look(here.run(LIST), count)
        here.recover(count, heals=case.heals)
    return ended.points


def _killed(here: Stage, case: Case, count: Count, killed: Killed) -> None:
    launch, at, alone = killed
    with here.trial(case.world, case.boot):
        count.trials += 1
        ended = here.run(launch, Trouble(kill_at=at))
        count.kills += ended.was_killed
        if case.before:
            here.happens(case.before)
        here.look(here.run(LIST), count)
        if alone:
            here.nobody(count, may_stay=here.kind != "aws")
            if here.kind == "aws":
                here.hold_cap(count, machines=2 if "--count" in launch else 1)
        here.recover(count, heals=case.heals)


_STEP = 3
"""Of the points of a launch every third is tried; in the next world those beside them.

In a world that must heal, where a recovery waits until its patience is over, every sixth.
"""

_BAD_DAY = Case(
    world=World(
        list_lag_s=60, read_lag_s=60, lost_answers=5, denied=(Denied(kind="volume"),), tag_lag_s=60
    ),
    before="untag",
    heals=True,
)
"""The worlds that have found most, in one."""

_SAMPLE = {
    "digitalocean": "creates doubled by a proxy",
    "aws": "renamed and retagged by somebody",
    "lambda": "the state folder lost",
    "doks": "renamed and retagged by somebody",
    "eks": "no network for down",
}
"""Of the others one at each provider."""


def everything(kind: str, *, step: int = _STEP) -> dict[str, Job]:
    """All trials at one provider, by what they are."""
    jobs: dict[str, Job] = {
        name: partial(
            in_world, case=case, step=step * (2 if case.heals else 1), first=number % step
        )
        for number, (name, case) in enumerate(CASES.items())
        if kind in case.kinds
    }
    jobs |= {
        f"plain, {name}": partial(in_world, case=Case(), step=step + 1, launch=name)
        for name in ("8x GPU", "two nodes", "spot", "end role")
        if name in LAUNCHES[kind]
    }
    return (
        jobs | troubles(kind, step=max(1, step // 3)) | ({} if kind in POOLS else _with_jobs(step))
    )


def _with_jobs(step: int) -> dict[str, Job]:
    """Launches with `--run`: at the step of `make chaos` killed at each of their own points."""
    worlds = ("every read 60 s late", "tags 60 s late", "5 changing answers lost", "3 answers lost")
    jobs: dict[str, Job] = {"a job": partial(jobs_killed, world=World(), step=max(1, step // 3))}
    jobs |= {
        f"a job, {name}": partial(jobs_killed, world=CASES[name].world, step=3 * step, first=number)
        for number, name in enumerate(worlds)
    }
    two = partial(jobs_killed, world=World(), step=2 * step, launch="two nodes")
    return jobs | {"a job, two nodes": two}


def some(kind: str) -> dict[str, Job]:
    """A few trials for every test run; what no provider has a part in is tried at the quickest."""
    one, sample = LAUNCHES[kind]["1x GPU"], _SAMPLE[kind]
    jobs: dict[str, Job] = {
        "plain": partial(in_world, case=Case(), step=23, first=3),
        "a bad day": partial(in_world, case=_BAD_DAY, step=29, first=7),
        sample: partial(in_world, case=CASES[sample], step=41, first=17),
    }
    if kind != "lambda":
        return jobs
    return jobs | {
        "kill -9 in extend": partial(extends, launch=one, step=9),
        "kill -9 in down": partial(kills, command=DOWN, step=13, first=one),
        "kill -9 in reap": partial(kills, command=REAP, step=13, first=endless(one)),
        "two nodes at the second place": partial(falls_back, command=LAUNCHES[kind]["two nodes"]),
        "unreadable journal": partial(unreadable, command=one, points=(20,)),
        "full disk": partial(full_disk, command=one, limits=(40_000,)),
        "a job": partial(jobs_killed, world=World(), step=16, first=5),
    }
