"""An AWS account: moto's EC2 with what moto lacks, and with faults, for launches.

Added are ClientToken idempotency, states that take time, quotas, images by parameter, zones without
capacity, groups that cannot go while they are used, and a record of what was billed. `world` says
how it misbehaves for as long as it is set, `faults` what goes wrong once.
"""

import io
import json
import re
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlencode

from moto.cloudwatch.models import cloudwatch_backends
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.scheduler.models import scheduler_backends
from werkzeug.wrappers import Response

from tests.providers.fakes.aws import Aws, error_response, identity, moto_cloudwatch
from tests.providers.fakes.eks import ACTIONS as EKS_ACTIONS
from tests.providers.fakes.eks import Eks, eks_action
from tests.providers.fakes.sight import Sight, by_id, is_change, kind_of, names, things
from tests.providers.fakes.world import World

REGIONS = ("eu-west-1", "us-east-1", "us-west-2")
IMAGE = "ami-12c6146b"  # the one of images.json


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsFault:
    """What goes wrong with the next calls that it fits.

    Attributes:
        action: such as RunInstances.
        status: of the answer.
        code: of the answer.
        after: do the work first.
        drop: do the work and cut the connection.
        zone: only for this zone.
        times: how many calls it spoils.
        skip: how many calls that it fits come through before.
    """

    action: str
    status: int = 500
    code: str = "InternalError"
    after: bool = False
    drop: bool = False
    zone: str = ""
    times: int = 1
    skip: int = 0


@dataclass(kw_only=True)
class AwsAccount:
    """The fake.

    Attributes:
        prices: answers what is not EC2's launching: Price List and spot prices.
        quota: vCPUs of every family; None: the service denies access.
        faults: what goes wrong next, first come first served.
        requests: actions in order.
        tokens: ClientToken -> answer of the launch.
        ended: when the end of an instance was asked for.
        world: how it misbehaves.
        lost: answers that each world has lost.
        eks: its clusters.
        shutdown: what instances do when they power off, whatever they were asked for; empty: that.
    """

    prices: Aws = field(default_factory=lambda: Aws(on_demand=[], spot=[]))
    quota: float | None = 1000.0
    faults: list[AwsFault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    tokens: dict[str, bytes] = field(default_factory=dict)
    ended: dict[str, datetime] = field(default_factory=dict)
    world: World = field(default_factory=World)
    lost: Counter[World] = field(default_factory=Counter)
    shutdown: str = ""
    eks: Eks = field(init=False)
    _sight: Sight = field(default_factory=Sight)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Empty the account."""
        for backends in (ec2_backends, scheduler_backends, cloudwatch_backends):
            for backend in backends[DEFAULT_ACCOUNT_ID].values():
                backend.reset()
        for log in (self.faults, self.requests):
            log.clear()
        self.tokens.clear()
        self.ended.clear()
        self.world = World()
        self.lost.clear()
        self._sight = Sight(ended=self.ended)
        self.eks = Eks(account=self)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request: the WSGI entry."""
        if "/monitoring/aws4_request" in environ.get("HTTP_AUTHORIZATION", ""):
            return self._watched(environ)(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2] or form.get("Action", "")
        action = action or _rest_action(environ)
        self.requests.append(action)
        self.run_schedules()
        self.eks.settle()
        if self.world.latency_s:
            time.sleep(self.world.latency_s)
        region = _region(environ)
        fault = self._fault(action, form) or self._denied(action, region)
        if fault is not None and not (fault.after or fault.drop):
            told = _error(action, fault.status, fault.code)
            return self._dated(told)(environ, start_response)
        with self._lock:
            answer = self._seen(action, form, body, environ)
        if fault is None:
            fault = self._loses(action)
        if fault is not None:
            if fault.drop:
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            answer = _error(action, fault.status, fault.code)
        return self._dated(answer)(environ, start_response)

    def _watched(self, environ: dict[str, Any]) -> Response:
        """CloudWatch's answer: moto's, one call after the other."""
        target = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        action = target or environ["PATH_INFO"].rpartition("/")[2]
        self.requests.append(action)
        if self.world.latency_s:
            time.sleep(self.world.latency_s)
        denied = self._denied(action, _region(environ))
        if denied is not None:
            told = json.dumps({"__type": denied.code, "message": "told by the fake"})
            return Response(told, denied.status, content_type="application/x-amz-json-1.0")
        with self._lock:
            return Response.from_app(moto_cloudwatch(), environ)

    def _dated(self, answer: Response) -> Response:
        """The answer by the provider's clock."""
        answer.headers["Date"] = format_datetime(self.world.now(), usegmt=True)
        return answer

    def _denied(self, action: str, region: str) -> AwsFault | None:
        """What the world refuses for ever."""
        if action == "DescribeRegions":
            return None
        denied = self.world.refuses(kind_of(action), region, changes=is_change(action))
        return denied and AwsFault(action=action, status=denied.status, code=denied.code)

    def _loses(self, action: str) -> AwsFault | None:
        """Whether the world cuts off the answer, once a machine was asked for."""
        asked = not {"RunInstances", "CreateNodegroup"}.isdisjoint(self.requests)
        if not asked or not self.world.loses(self.lost[self.world], changes=is_change(action)):
            return None
        self.lost[self.world] += 1
        return AwsFault(action=action, drop=True)

    def _seen(
        self, action: str, form: dict[str, str], body: bytes, environ: dict[str, Any]
    ) -> Response:
        """Do the work, as far as the world shows what it is about."""
        region = _region(environ)
        backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
        if action.startswith(_MAKES) and not self.world.elsewhere:
            seen, named = World(), True
        else:
            seen, named = self.world, by_id(form)
        with self._sight.of(seen, region, backend, named=named):
            answer = self._work(action, form, body, environ)
        self._sight.note(region, backend)
        if self.world.skew_s and answer.mimetype == "text/xml":
            answer.set_data(_LAUNCHED.sub(self._skewed, answer.get_data(as_text=True)))
        return answer

    def _skewed(self, found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[2]) + timedelta(seconds=self.world.skew_s)
        return f"{found[1]}{at:%Y-%m-%dT%H:%M:%S.000Z}"

    def _fault(self, action: str, form: dict[str, str]) -> AwsFault | None:
        zone = form.get("Placement.AvailabilityZone", "")
        for place, fault in enumerate(self.faults):
            if fault.action == action and fault.zone in ("", zone):
                left = replace(fault, skip=fault.skip - 1) if fault.skip else None
                if fault.times > 1 and left is None:
                    left = replace(fault, times=fault.times - 1)
                self.faults[place : place + 1] = [] if left is None else [left]
                return None if fault.skip else fault
        return None

    def _work(
        self, action: str, form: dict[str, str], body: bytes, environ: dict[str, Any]
    ) -> Response:
        if action == "GetServiceQuota":
            return self._quota()
        if action in EKS_ACTIONS:
            return self.eks.answer(action, environ["PATH_INFO"], body, _region(environ))
        if action == "DescribeRegions":
            return _regions()
        if action == "GetCallerIdentity":
            return identity("999999999999" if self.world.elsewhere else DEFAULT_ACCOUNT_ID)
        token = form.get("ClientToken", "")
        if token in self.tokens:
            return Response(self.tokens[token], HTTPStatus.OK, content_type="text/xml")
        if action == "DeleteSecurityGroup" and self._is_used(form["GroupId"]):
            return error_response(HTTPStatus.BAD_REQUEST, "DependencyViolation")
        changed = _as_moto_takes_it(form, self.backend(_region(environ)))
        if changed:
            body = urlencode(form | changed).encode()
            environ["CONTENT_LENGTH"] = str(len(body))
        answer = self._ask_moto(body, environ)
        self._note(action, form)
        if token and answer.status_code == HTTPStatus.OK:
            self.tokens[token] = answer.get_data()
        return answer

    def _note(self, action: str, form: dict[str, str]) -> None:
        """Take down what was ended, and how instances would end."""
        if action == "RunInstances" and self.shutdown:
            for instance in self.instances():
                instance.instance_initiated_shutdown_behavior = self.shutdown
        if action == "TerminateInstances":
            now = datetime.now(UTC)
            named = (value for key, value in form.items() if key.startswith("InstanceId."))
            self.ended |= {one: now for one in named if one not in self.ended}

    def _ask_moto(self, body: bytes, environ: dict[str, Any]) -> Response:
        environ = {**environ, "wsgi.input": io.BytesIO(body)}
        return Response.from_app(self.prices, environ)

    def _quota(self) -> Response:
        if self.quota is None:
            told = json.dumps({"__type": "AccessDeniedException", "message": "told by the fake"})
            return Response(told, HTTPStatus.BAD_REQUEST, content_type="application/x-amz-json-1.1")
        told = json.dumps({"Quota": {"Value": self.quota, "QuotaCode": "L-DB2E81BA"}})
        return Response(told, HTTPStatus.OK, content_type="application/x-amz-json-1.1")

    def _is_used(self, group_id: str) -> bool:
        return any(
            group.id == group_id
            for instance in self.instances()
            if instance.state != "terminated"
            for group in instance.security_groups
        )

    def instances(self) -> list[Any]:
        """Every instance of every region, terminated ones included."""
        return [
            instance
            for backend in ec2_backends[DEFAULT_ACCOUNT_ID].values()
            for reservation in backend.reservations.values()
            for instance in reservation.instances
        ]

    def alive_ids(self) -> list[str]:
        """Instances that are billed."""
        return [instance.id for instance in self.instances() if instance.state != "terminated"]

    def side_resources(self) -> list[str]:
        """Key pairs, groups, volumes and schedules, but for AWS' own."""
        found: list[str] = []
        for backend in ec2_backends[DEFAULT_ACCOUNT_ID].values():
            found += backend.key_pairs
            found += [g.name for v in backend.groups.values() for g in v.values()]
            found += [volume.id for volume in backend.volumes.values()]
        found += [one.name for one in self.schedules()]
        return [name for name in found if name != "default"]

    def run_schedules(self) -> None:
        """What is due happens: the instances of a schedule are terminated, and it is deleted."""
        now = self.world.now()
        for backend in scheduler_backends[DEFAULT_ACCOUNT_ID].values():
            for group in backend.schedule_groups.values():
                for one in list(group.schedules.values()):
                    at = datetime.strptime(f"{one.schedule_expression}Z", "at(%Y-%m-%dT%H:%M:%S)%z")
                    if at <= now:
                        del group.schedules[one.name]
                        told = json.loads(one.target["Input"])
                        self._terminate(told.get("InstanceIds", []), at)
                        self.eks.end_group(told.get("NodegroupName", ""), at)

    def _terminate(self, keys: list[str], at: datetime) -> None:
        ahead = timedelta(seconds=self.world.skew_s)
        for instance in self.instances():
            if instance.id in keys and instance.state != "terminated":
                instance.terminate()
                self.ended.setdefault(instance.id, at - ahead)

    def schedules(self) -> list[Any]:
        """Every schedule of every region, by moto."""
        return [
            one
            for backend in scheduler_backends[DEFAULT_ACCOUNT_ID].values()
            for group in backend.schedule_groups.values()
            for one in group.schedules.values()
        ]

    def bills(self) -> dict[str, tuple[datetime, datetime | None]]:
        """When each instance was made, and when its end was asked for, by its own clock."""
        ahead = timedelta(seconds=self.world.skew_s)
        ended = {key: at + ahead for key, at in self.ended.items()}
        return {
            one.id: (one.launch_time.replace(tzinfo=UTC) + ahead, ended.get(one.id))
            for one in self.instances()
        }

    def end_itself(self, key: str, at: datetime) -> None:
        """An instance has powered off by itself at that time: it stops, or is terminated."""
        (instance,) = (one for one in self.instances() if one.id == key)
        if instance.instance_initiated_shutdown_behavior == "terminate":
            instance.terminate()
            self.ended.setdefault(key, at)
        else:
            instance.stop()

    def forget(self, kept: frozenset[str]) -> None:
        """Take away everything but what is named, and what was logged, faults and world with it."""
        for backend in ec2_backends[DEFAULT_ACCOUNT_ID].values():
            for table in things(backend):
                ours = [place for place in table if not (kept | {"default"}) & names(table[place])]
                for place in ours:
                    thing = table.pop(place)
                    backend.tags.pop(getattr(thing, "id", ""), None)
            backend.snapshots.clear()
        for backend in scheduler_backends[DEFAULT_ACCOUNT_ID].values():
            backend.reset()
        for log in (self.faults, self.requests, self.tokens, self.ended, self.lost):
            log.clear()
        self.world = World()
        self._sight = Sight(ended=self.ended)
        self.eks = Eks(account=self)

    def backend(self, region: str) -> Any:
        """Moto's own view of a region."""
        return ec2_backends[DEFAULT_ACCOUNT_ID][region]


_MAKES = ("Run", "Create", "Import", "Authorize", "Request")
"""Calls that make something see what was made just before; reads and ends may be too early."""

_LAUNCHED = re.compile("(<launchTime>)([^<]+)")


_SCHEDULES = "/schedules"


def _rest_action(environ: dict[str, Any]) -> str:
    """The action of a call that names it by method and path; empty: none that is known."""
    method, path = environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")
    if not path.startswith(_SCHEDULES):
        return eks_action(method, path)
    if method == "GET" and path.rstrip("/") == _SCHEDULES:
        return "ListSchedules"
    verbs = {"POST": "Create", "GET": "Get", "PUT": "Update", "DELETE": "Delete"}
    return f"{verbs[method]}Schedule"


def _error(action: str, status: int, code: str) -> Response:
    """An error in the form of the action's service."""
    if "Schedule" not in action and action not in EKS_ACTIONS:
        return error_response(status, code)
    told = Response(json.dumps({"Message": "told by the fake"}), status)
    told.headers["x-amzn-ErrorType"] = code
    told.headers["Content-Type"] = "application/json"
    return told


def _region(environ: dict[str, Any]) -> str:
    """The region that a call was signed for."""
    signed = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split("/")
    return signed[2] if len(signed) > 2 else REGIONS[1]


def _as_moto_takes_it(form: dict[str, str], backend: Any) -> dict[str, str]:
    """What moto needs in another form: an image's id, sizes of its volumes, names for a pattern.

    EC2 takes patterns in every filter, moto not in that of instances by group.
    """
    if form.get("ImageId", "").startswith("resolve:ssm:"):
        return {"ImageId": IMAGE}
    mapped = [key for key in form if key.endswith(".Ebs.DeleteOnTermination")]
    if mapped:
        return {key.replace("DeleteOnTermination", "VolumeSize"): "15" for key in mapped}
    found = (key for key, value in form.items() if value == "instance.group-name")
    prefix = next((key.removesuffix("Name") for key in found), "")
    pattern = form.get(f"{prefix}Value.1", "")
    if not prefix or "*" not in pattern:
        return {}
    named = {group.name for groups in backend.groups.values() for group in groups.values()}
    fits = sorted(name for name in named if fnmatchcase(name, pattern))
    return {f"{prefix}Value.{at + 1}": name for at, name in enumerate(fits)}


def _regions() -> Response:
    """Few regions, so that looking through all of them takes no minutes."""
    items = "".join(
        f"<item><regionName>{name}</regionName><regionEndpoint>e</regionEndpoint>"
        "<optInStatus>opt-in-not-required</optInStatus></item>"
        for name in REGIONS
    )
    text = (
        '<DescribeRegionsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<regionInfo>{items}</regionInfo></DescribeRegionsResponse>"
    )
    return Response(text, HTTPStatus.OK, content_type="text/xml")
