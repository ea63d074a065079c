"""Amazon EKS in front of moto's EC2: clusters, managed node groups, and the instances they make.

moto knows node groups, too, and makes no instances of them. Requests are checked by the SDK's own
model of the service; what a group shows over time is our own reading of EKS' user guide: CREATING,
then ACTIVE or CREATE_FAILED with health issues; DELETING while its nodes are drained, then gone.
"""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from providers.interface import run_of_pool

if TYPE_CHECKING:
    from tests.providers.fakes.aws_account import AwsAccount

Document = dict[str, Any]
NAME, REGION = "prod-1", "us-east-1"
DRAIN = timedelta(seconds=60)
"""A group is gone after so long, whether anybody reads or not."""

ACTIONS = {
    "ListClusters",
    "DescribeCluster",
    "ListNodegroups",
    "DescribeNodegroup",
    "CreateNodegroup",
    "DeleteNodegroup",
    "TagResource",
}


def eks_action(method: str, path: str) -> str:
    """The action of a call of EKS, which has its method and path alone; empty: of another."""
    words = path.strip("/").split("/")
    if words[0] == "tags" and "eks" in path:
        return "TagResource"
    if words[0] != "clusters":
        return ""
    made = {1: "ListClusters", 2: "DescribeCluster", 3: "ListNodegroups", 4: "DescribeNodegroup"}
    if method == "POST":
        return "CreateNodegroup"
    return "DeleteNodegroup" if method == "DELETE" else made[len(words)]


@dataclass(kw_only=True)
class Group:
    """A node group, as the API prints it, and its instances."""

    region: str
    told: Document
    born: datetime
    nodes: list[str] = field(default_factory=list)
    ended: datetime | None = None
    reads: int = 0


@dataclass(kw_only=True)
class Eks:
    """The clusters of an account; there is one, with a node group of somebody else's.

    Attributes:
        account: holds the instances.
        groups: by ARN.
        boot_reads: looks at a group until it is active; None: it never is.
        end_reads: requests for which a group that was ended is still shown.
        issues: of a group that cannot be made, as EKS tells them; empty: it can.
        lone: the cluster has no node group but ours.
    """

    account: "AwsAccount"
    groups: dict[str, Group] = field(default_factory=dict)
    boot_reads: int | None = 2
    end_reads: int = 2
    issues: tuple[Document, ...] = ()
    lone: bool = False

    @property
    def ours(self) -> dict[str, Group]:
        """Groups that were made through the API and are not ended, by ARN."""
        return {key: one for key, one in self.groups.items() if one.ended is None}

    def answer(self, action: str, path: str, body: bytes, region: str) -> Response:
        """The answer to a call."""
        words = path.strip("/").split("/")
        world = self.account.world
        if action == "TagResource":
            group = self.groups.get("/".join(words[1:]))
            if group is None or world.elsewhere:
                return _missing("NotFoundException")
            group.told["tags"] |= json.loads(body)["tags"]
            return _json({})
        there = region == REGION and not world.elsewhere
        if action == "ListClusters":
            return _json({"clusters": [NAME] if there else []})
        if not there or words[1] != NAME:
            return _missing()
        if action == "DescribeCluster":
            return _json({"cluster": {"name": NAME, "status": "ACTIVE", "version": "1.34"}})
        if action == "CreateNodegroup":
            return self._make(json.loads(body), region)
        if action == "ListNodegroups":
            lag = timedelta(seconds=world.list_lag_s)
            mine = [o.told["nodegroupName"] for o in self.groups.values() if o.born + lag <= _now()]
            return _json({"nodegroups": [*mine, *([] if self.lone else ["web"])]})
        return self._one(action, words[3])

    def _one(self, action: str, name: str) -> Response:
        """The answer to a call about one group."""
        if name == "web" and action == "DescribeNodegroup" and not self.lone:
            return _json({"nodegroup": self._web()})
        found = (o for o in self.groups.values() if o.told["nodegroupName"] == name)
        group = next(found, None)
        if group is None:
            return _missing()
        if action == "DeleteNodegroup":
            if group.ended is None:
                group.ended, group.reads = _now(), 0
                group.told["status"] = "DELETING"
            return _json({"nodegroup": group.told})
        if group.born + timedelta(seconds=self.account.world.read_lag_s) > _now():
            return _missing()
        self._boot(group)
        late = group.born + timedelta(seconds=min(self.account.world.tag_lag_s, 9e8)) > _now()
        return _json({"nodegroup": {**group.told, "tags": {}} if late else group.told})

    def _web(self) -> Document:
        subnets = self.account.backend(REGION).subnets.values()
        return {
            "nodegroupName": "web",
            "nodegroupArn": f"arn:aws:eks:{REGION}:123456789012:nodegroup/{NAME}/web/1",
            "clusterName": NAME,
            "status": "ACTIVE",
            "nodeRole": "arn:aws:iam::123456789012:role/nodes",
            "subnets": sorted(key for zone in subnets for key in zone),
            "instanceTypes": ["m5.large"],
            "tags": {},
        }

    def _make(self, body: Document, region: str) -> Response:
        for one in self.groups.values():
            if one.told["nodegroupName"] == body["nodegroupName"]:
                if one.told["clientRequestToken"] == body["clientRequestToken"]:
                    return _json({"nodegroup": one.told})
                return _error(HTTPStatus.CONFLICT, "ResourceInUseException")
        words = f"{NAME}/{body['nodegroupName']}/{uuid.uuid4()}"
        arn = f"arn:aws:eks:{region}:123456789012:nodegroup/{words}"
        told = {**body, "nodegroupArn": arn, "clusterName": NAME, "status": "CREATING"}
        group = Group(region=region, told=told, born=_now())
        self.groups[arn] = group
        if not self.issues:
            self.scale(group, body["scalingConfig"]["desiredSize"])
        return _json({"nodegroup": told})

    def scale(self, group: Group, count: int) -> None:
        """Add or take nodes, as an autoscaler does."""
        name = group.told["nodegroupName"]
        more = count - len(group.nodes)
        if more > 0:
            marked = {"eks:nodegroup-name": name, "eks:cluster-name": NAME}
            made = self.account.backend(group.region).run_instances(
                "ami-12c6146b",  # the one of images.json
                more,
                f"# a node for run {run_of_pool(name)}".encode(),
                [],
                instance_type=group.told["instanceTypes"][0],
                is_instance_type_default=False,
                key_name=None,
                tags={"instance": marked},
                client_token=uuid.uuid4().hex,
                instance_initiated_shutdown_behavior="terminate",
            )
            group.nodes += [one.id for one in made.instances]
        for key in group.nodes[count:]:
            self.account.end_itself(key, _now())
        del group.nodes[count:]

    def _boot(self, group: Group) -> None:
        """A look at a group brings it on."""
        group.reads += 1
        ready = self.boot_reads is not None and group.reads >= self.boot_reads
        if ready and group.told["status"] == "CREATING":
            group.told["status"] = "CREATE_FAILED" if self.issues else "ACTIVE"
            group.told["health"] = {"issues": list(self.issues)}

    def end_group(self, name: str, at: datetime) -> None:
        """A schedule asks for the end of a group at that time."""
        for group in self.groups.values():
            if group.told["nodegroupName"] == name and group.ended is None:
                group.ended, group.told["status"] = at, "DELETING"

    def settle(self) -> None:
        """A group that was ended goes after some requests, and not before its time."""
        for key, group in list(self.groups.items()):
            if group.ended is None:
                continue
            group.reads += 1
            least = timedelta(seconds=self.account.world.end_lag_s)
            past = _now() - group.ended
            if past < least or (group.reads <= self.end_reads and past < least + DRAIN):
                continue
            at = _now() - max(timedelta(), past - least - DRAIN)
            for node in group.nodes:
                if node in self.account.alive_ids():
                    self.account.end_itself(node, at)
            del self.groups[key]


def _now() -> datetime:
    return datetime.now(UTC)


def _json(document: Document) -> Response:
    return Response(json.dumps(document), HTTPStatus.OK, content_type="application/json")


def _missing(code: str = "ResourceNotFoundException") -> Response:
    return _error(HTTPStatus.NOT_FOUND, code)


def _error(status: int, code: str) -> Response:
    told = Response(json.dumps({"message": "told by the fake"}), status)
    told.headers["x-amzn-ErrorType"] = code
    told.headers["Content-Type"] = "application/json"
    return told
