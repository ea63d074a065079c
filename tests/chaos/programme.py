"""Which trials there are: all of them for `make chaos`, some of them for every test run."""

from collections.abc import Iterator
from typing import Any

from tests.chaos.trials import (
    DOWN,
    LAUNCHES,
    REAP,
    Count,
    Stage,
    faults,
    full_disk,
    kills,
    skews,
    two_at_once,
    unreadable,
)

_HOUR_S = 3600.0
_POSTS = ("/v2/tags", "/v2/account/keys", "/v2/firewalls", "/v2/droplets")
_FILES_B = (0, 40_000, *range(80_000, 400_000, 20_000))  # a launch writes some 300 kB of log
_STEPS = {"8x GPU": 8, "two nodes": 2}  # the same calls as for one GPU, or twice them
_LISTS = ("/v2/droplets", "/v2/tags", "/v2/sizes", "/v2/account")
_MAKES = ("ImportKeyPair", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "RunInstances")
_ENDS = ("TerminateInstances", "DeleteSecurityGroup", "DeleteKeyPair")
Fault = dict[str, Any]


def faults_of(kind: str) -> dict[str, list[Fault]]:
    """Faults by what they are."""
    if kind == "digitalocean":
        posts: list[Fault] = [{"path": path, "method": "POST"} for path in _POSTS]
        ends: list[Fault] = [{"path": path, "method": "DELETE", "below": True} for path in _POSTS]
        gets: list[Fault] = [{"path": path, "method": "GET"} for path in _LISTS]
        body = b'{"id":"unprocessable_entity","message":"%s"}'
        quota = body % b"creating this will exceed your GPU limit"
        region = body % b"Region is not available"
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
                {**one, "status": 429, "headers": wait, "times": n}
                for one in (*posts, *ends)
                for n in (1, 9)
            ],
            "quota and capacity": [
                {**posts[-1], "status": 422, "body": text} for text in (quota, region)
            ],
        }
    calls: list[Fault] = [{"action": action} for action in (*_MAKES, *_ENDS)]
    reads: list[Fault] = [{"action": name} for name in ("DescribeInstances", "DescribeTags")]
    codes = ("InsufficientInstanceCapacity", "VcpuLimitExceeded", "Unsupported")
    return {
        "lost answers": [{**one, "drop": True} for one in (*calls, *reads)],
        "5xx after the work": [{**one, "after": True} for one in calls],
        "5xx without the work": [*calls, *reads],
        "throttling": [
            {**one, "status": 503, "code": "RequestLimitExceeded", "times": n}
            for one in calls
            for n in (1, 9)
        ],
        "quota and capacity": [
            {"action": "RunInstances", "status": 500 if "Capacity" in code else 400, "code": code}
            | {"times": n}
            for code in codes
            for n in (1, 99)
        ],
    }


def everything(here: Stage) -> Iterator[tuple[str, Count]]:
    """All trials at one provider, with what they are."""
    launches = LAUNCHES[here.remote.kind]
    one, two = launches["1x GPU"], launches["two nodes"]
    for name, launch in launches.items():
        yield f"kill -9 in a launch, {name}", kills(here, launch, step=_STEPS.get(name, 1))
    yield "kill -9 in down", kills(here, DOWN, step=3, first=one)
    yield "kill -9 in reap", kills(here, REAP, step=4, first=(*one[:2], "1s", *one[3:]))
    yield "no answer to a list for a while, then kill", _late_list(here, one)
    for name, told in faults_of(here.remote.kind).items():
        yield name, faults(here, two, told)
    yield "clock skew", skews(here, one, (-26 * _HOUR_S, -_HOUR_S, _HOUR_S, 26 * _HOUR_S))
    yield "two processes at once", two_at_once(here, _pairs(one) * 3)
    yield "full disk", full_disk(here, one, _FILES_B)
    yield "unreadable journal", unreadable(here, one, (*range(2, 34, 4), None))


def _pairs(one: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(one, one), (one, DOWN), (one, REAP), (DOWN, REAP)]


def _late_list(here: Stage, launch: tuple[str, ...]) -> Count:
    """A new machine is missing from lists at first, while its launch was killed."""
    if here.remote.kind != "digitalocean":
        return Count()
    count = Count()
    for lag in (1, 3):
        here.remote.ask("lag", lists=lag)
        count.add(kills(here, launch, step=6))
    here.remote.ask("lag", lists=0)
    return count


def some(here: Stage) -> Iterator[tuple[str, Count]]:
    """A few trials of the kinds that have found something, for every test run."""
    one = LAUNCHES[here.remote.kind]["1x GPU"]
    many = here.remote.kind == "digitalocean"  # its calls are quicker
    yield "kill -9 in a launch", kills(here, one, step=11 if many else 17)
    if many:
        yield "kill -9 in down", kills(here, DOWN, step=29, first=one)
        yield "two processes at once", two_at_once(here, _pairs(one)[1:2])
        yield "full disk", full_disk(here, one, (40_000, 200_000))
    yield "lost answers", faults(here, one, faults_of(here.remote.kind)["lost answers"][3:4])
    yield "unreadable journal", unreadable(here, one, (20,))
