"""Troubles of our own process, and calls that go wrong once: killed, cut off, starved, at once."""

from datetime import timedelta
from functools import partial
from typing import Any

from tests.chaos.trials import DOWN, LAUNCHES, LIST, REAP, Job, Stage
from tests.chaos.truth import Count, runs_of
from tests.chaos.wire import Command, Ended, Trouble
from tests.providers.fakes.world import World

_HOUR_S = 3600.0
_POSTS = ("/v2/tags", "/v2/account/keys", "/v2/firewalls", "/v2/droplets")
_LISTS = ("/v2/droplets", "/v2/tags", "/v2/sizes", "/v2/account")
_CALLS = tuple(
    f"/api/v1/{one}" for one in ("ssh-keys", "firewall-rulesets", "instance-operations/launch")
)
_TERMINATE = "/api/v1/instance-operations/terminate"
_READS = tuple(
    f"/api/v1/{one}" for one in ("instances", "ssh-keys", "instance-types", "audit-events")
)
_MAKES = ("ImportKeyPair", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "RunInstances")
_ENDS = ("TerminateInstances", "DeleteSecurityGroup", "DeleteKeyPair")
_FULL = b"instance-operations/launch/insufficient-capacity"
_FILES_B = (0, 40_000, 80_000, 120_000, 180_000, 240_000, 320_000)
Fault = dict[str, Any]


def faults_of(kind: str) -> dict[str, list[Fault]]:
    """Faults of single calls, by what they are."""
    made = {
        "digitalocean": _of_digitalocean,
        "aws": _of_aws,
        "lambda": _of_lambda,
        "doks": _of_doks,
        "eks": _of_eks,
    }
    return made[kind]()


def _of_doks() -> dict[str, list[Fault]]:
    path = "/v2/kubernetes/clusters"
    post: Fault = {"path": path, "method": "POST", "below": True}
    end: Fault = {"path": path, "method": "DELETE", "below": True}
    gets: list[Fault] = [{"path": path, "method": "GET"}, {"path": "/v2/droplets"}]
    body = b'{"id":"unprocessable_entity","message":"creating this will exceed your GPU limit"}'
    wait = (("Retry-After", "0"),)
    return {
        "lost answers": [{**one, "drop": True} for one in (post, end, *gets)],
        "5xx after the work": [
            {**one, "status": status, "after": True}
            for one in (post, end)
            for status in (500, 503, 504)
        ],
        "5xx without the work": [{**one, "status": 500} for one in (post, end, *gets)],
        "throttling": [
            {**one, "status": 429, "headers": wait, "times": n, "after": after}
            for one in (post, end)
            for n in (1, 9)
            for after in (False, True)
        ],
        "quota and capacity": [{**post, "status": 422, "body": body}],
    }


def _of_eks() -> dict[str, list[Fault]]:
    calls: list[Fault] = [{"action": one} for one in ("CreateNodegroup", "DeleteNodegroup")]
    reads: list[Fault] = [{"action": one} for one in ("ListNodegroups", "DescribeInstances")]
    return {
        "lost answers": [{**one, "drop": True} for one in (*calls, *reads)],
        "5xx after the work": [{**one, "after": True} for one in calls],
        "5xx without the work": [*calls, *reads],
        "throttling": [
            {**one, "status": 429, "code": "TooManyRequestsException", "times": n, "after": after}
            for one in calls
            for n in (1, 9)
            for after in (False, True)
        ],
        "quota and capacity": [
            {**calls[0], "status": 400, "code": "ResourceLimitExceededException"}
        ],
    }


def _of_lambda() -> dict[str, list[Fault]]:
    posts: list[Fault] = [{"path": path, "method": "POST"} for path in _CALLS]
    ends: list[Fault] = [{"path": path, "method": "DELETE", "below": True} for path in _CALLS[:2]]
    ends.append({"path": _TERMINATE, "method": "POST"})
    gets: list[Fault] = [{"path": path, "method": "GET"} for path in _READS]
    body = b'{"error": {"code": "%s", "message": "no"}}'
    codes = (b"global/quota-exceeded", _FULL)
    return {
        "lost answers": [{**one, "drop": True} for one in (*posts, *ends, *gets)],
        "5xx after the work": [
            {**one, "status": status, "after": True}
            for one in (*posts, *ends)
            for status in (500, 503, 504)
        ],
        "5xx without the work": [{**one, "status": 500} for one in (*posts, *ends, *gets)],
        "throttling": [
            {**one, "status": 429, "times": n, "after": after}
            for one in (*posts, *ends)
            for n in (1, 9)
            for after in (False, True)
        ],
        "quota and capacity": [{**posts[-1], "status": 400, "body": body % code} for code in codes],
    }


def _of_digitalocean() -> dict[str, list[Fault]]:
    posts: list[Fault] = [{"path": path, "method": "POST"} for path in _POSTS]
    ends: list[Fault] = [{"path": path, "method": "DELETE", "below": True} for path in _POSTS]
    gets: list[Fault] = [{"path": path, "method": "GET"} for path in _LISTS]
    body = b'{"id":"unprocessable_entity","message":"%s"}'
    refusals = (b"creating this will exceed your GPU limit", b"Region is not available")
    wait = (("Retry-After", "0"),)
    return {
        "lost answers": [{**one, "drop": True} for one in (*posts, *ends, *gets)],
        "5xx after the work": [
            {**one, "status": status, "after": True}
            for one in (*posts, *ends)
            for status in (500, 503, 504)
        ],
        "5xx without the work": [{**one, "status": 500} for one in (*posts, *ends, *gets)],
        "throttling": [
            {**one, "status": 429, "headers": wait, "times": n, "after": after}
            for one in (*posts, *ends)
            for n in (1, 9)
            for after in (False, True)
        ],
        "quota and capacity": [
            {**posts[-1], "status": 422, "body": body % text} for text in refusals
        ],
    }


def _of_aws() -> dict[str, list[Fault]]:
    calls: list[Fault] = [{"action": action} for action in (*_MAKES, *_ENDS)]
    reads: list[Fault] = [{"action": name} for name in ("DescribeInstances", "DescribeTags")]
    codes = ("InsufficientInstanceCapacity", "VcpuLimitExceeded", "Unsupported")
    return {
        "lost answers": [{**one, "drop": True} for one in (*calls, *reads)],
        "5xx after the work": [{**one, "after": True} for one in calls],
        "5xx without the work": [*calls, *reads],
        "throttling": [
            {**one, "status": 503, "code": "RequestLimitExceeded", "times": n, "after": after}
            for one in calls
            for n in (1, 9)
            for after in (False, True)
        ],
        "quota and capacity": [
            {"action": "RunInstances", "status": 500 if "Capacity" in code else 400, "code": code}
            | {"times": n}
            for code in codes
            for n in (1, 99)
        ],
    }


def faults(here: Stage, command: Command, told: list[Fault]) -> Count:
    """Let each of the faults happen to a command, each in a trial of its own."""
    count = Count()
    for fault in told:
        with here.trial(World()):
            here.account.fault(**fault)
            _run(here, count, command)
    return count


_SECOND: dict[str, Fault] = {
    "digitalocean": {
        "path": "/v2/droplets",
        "method": "POST",
        "status": 422,
        "body": b'{"id":"unprocessable_entity","message":"Region is not available"}',
        "skip": 1,
    },
    "lambda": {
        "path": _CALLS[-1],
        "method": "POST",
        "status": 400,
        "body": b'{"error": {"code": "%s", "message": "no"}}' % _FULL,
        "skip": 1,
    },
    "aws": {"action": "RunInstances", "code": "InsufficientInstanceCapacity", "skip": 1},
}
"""The first place has a machine, and none for the second node."""


def falls_back(here: Stage, command: Command) -> Count:
    """Launch two nodes, of which the first place has one: they come at the next, within the cap."""
    count = Count()
    with here.trial(World()):
        here.account.fault(**_SECOND[here.kind])
        ended = here.run(command)
        count.trials += 1
        here.look(ended, count)
        if ended.code != 0 or len(here.account.left()[0]) != 2:
            count.refused += 1
            count.told.append(f"no place had both: {ended.code}: {here.log}")
        here.nobody(count, may_stay=False)
        here.hold_cap(count, machines=2)
        here.recover(count)
    return count


def kills(here: Stage, command: Command, *, step: int, first: Command) -> Count:
    """Kill a command, after another one has ended, at every `step`-th of its points."""
    count = Count()
    at, points = -step, 1
    while at < points:
        with here.trial(World()):
            here.run(first)
            if command == REAP:
                here.time.sleep(3 * _HOUR_S)
            points = max(points, _run(here, count, command, _killed_at(at)).points)
        at += step
    return count


def _killed_at(point: int) -> Trouble | None:
    return Trouble(kill_at=point) if point >= 0 else None


def extends(here: Stage, launch: Command, *, step: int) -> Count:
    """Kill an `extend` at every `step`-th of its points; then nobody comes, or the recovery does.

    However far it came, the machine ends by the later deadline, and is not reaped before the first.
    """
    count = Count()
    points = 1
    at = -step
    while at < points:
        with here.trial(World()):
            here.run(launch)
            (run,) = runs_of(here.state)
            command: Command = ("extend", run.marks.run, "2h", "--yes")
            ended = here.run(command, _killed_at(at))
            points = max(points, ended.points)
            count.trials += 1
            count.kills += ended.was_killed
            here.look(ended, count)
            if at < 0 and ended.code != 0:
                count.refused += 1
                count.told.append(f"extend ends with {ended.code}: {here.log}")
            here.look(here.run(REAP), count)
            if not here.account.left()[0]:
                count.cap += 1
                count.told.append(f"reaped before its deadline: {here.log}")
            here.deadline += timedelta(hours=2)
            here.nobody(count, may_stay="--no-self-destroy" in launch)
            here.recover(count)
        at += step
    return count


def skews(here: Stage, command: Command, hours: tuple[int, ...]) -> Count:
    """Run a command on a computer whose clock is wrong."""
    count = Count()
    for hour in hours:
        with here.trial(World()):
            _run(here, count, command, Trouble(skew_s=hour * _HOUR_S))
    return count


def full_disk(here: Stage, command: Command, limits: tuple[int, ...]) -> Count:
    """Run a command whose files cannot grow beyond so many bytes."""
    count = Count()
    for limit in limits:
        with here.trial(World()):
            _run(here, count, command, Trouble(file_limit=limit))
    return count


def unreadable(here: Stage, command: Command, points: tuple[int | None, ...]) -> Count:
    """Damage the journal of a launch that was killed, or that was finished."""
    count = Count()
    for at in points:
        with here.trial(World()):
            count.trials += 1
            count.kills += here.run(command, Trouble(kill_at=at)).was_killed
            for path in here.state.glob("journal.sqlite*"):
                path.write_bytes(b"no database" * 2000)
            here.recover(count, has_journal=False)
    return count


def two_at_once(here: Stage, pairs: list[tuple[Command, Command]]) -> Count:
    """Run two commands at the same time."""
    count = Count()
    for pair in pairs:
        with here.trial(World()):
            count.trials += 1
            for ended in here.run_all(tuple((command, Trouble()) for command in pair)):
                count.bugs += ended.code in (1, 99)
            here.recover(count)
    return count


def _run(here: Stage, count: Count, command: Command, trouble: Trouble | None = None) -> Ended:
    count.trials += 1
    ended = here.run(command, trouble)
    count.kills += ended.was_killed
    here.look(ended, count)
    here.recover(count, has_journal="not written down" not in ended.output)
    return ended


def troubles(kind: str, *, step: int = 1) -> dict[str, Job]:
    """All of them at one provider, by what they are."""
    one, two = LAUNCHES[kind]["1x GPU"], LAUNCHES[kind]["two nodes"]
    pairs = [(one, one), (one, DOWN), (one, REAP), (DOWN, REAP), (one, LIST)]
    jobs: dict[str, Job] = {
        "kill -9 in down": partial(kills, command=DOWN, step=step, first=one),
        "kill -9 in reap": partial(kills, command=REAP, step=step, first=endless(one)),
    }
    if kind in _SECOND:
        jobs["two nodes at the second place"] = partial(falls_back, command=two)
    jobs |= {
        name: partial(faults, command=two, told=told) for name, told in faults_of(kind).items()
    }
    return jobs | {
        "kill -9 in extend": partial(extends, launch=one, step=2),
        "our clock is wrong": partial(skews, command=one, hours=(-26, -3, 3, 26)),
        "two processes at once": partial(two_at_once, pairs=pairs),
        "full disk": partial(full_disk, command=one, limits=_FILES_B),
        "unreadable journal": partial(unreadable, command=one, points=(*range(2, 34, 6), None)),
    }


def endless(launch: Command) -> Command:
    """A launch whose machines do not end themselves: a reap past the deadline finds them."""
    return launch if "--no-self-destroy" in launch else (*launch, "--no-self-destroy")
