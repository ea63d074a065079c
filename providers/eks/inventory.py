"""What there is of ours in EKS clusters: node groups by their tags, nodes by their group's name.

Instances of a managed node group carry the tags `eks:cluster-name` and `eks:nodegroup-name`, which
EKS sets; they tell a node of ours also where its group is not shown any more. A region that cannot
be asked is said, and hides no other.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pricing.tables import objects
from providers import interface
from providers.aws.access import AwsClient, AwsClients, if_known, sdk_errors
from providers.aws.inventory import STATES, by_id, join_regions, tags_of
from providers.ownership_tags import PREFIX, OwnershipTags, read_labels
from providers.provider import in_each

PROVIDER = "eks"
TAG_SEPARATOR = ":"
DEADLINE = f"{PREFIX}{TAG_SEPARATOR}deadline"
ACCELERATOR = "k8s.amazonaws.com/accelerator"
"""The label by which the Cluster Autoscaler knows nodes with GPUs (its AWS page)."""

_IMAGES = {"x86_64": "AL2023_x86_64_NVIDIA", "arm64": "AL2023_ARM_64_NVIDIA"}
_DISK_GIB = 100
"""Of a node: images with CUDA and PyTorch do not fit into EKS' default of 20; as `--boot-disk`."""


def creation(
    spec: interface.LaunchSpec, pool: interface.NodePool, target: interface.Place
) -> interface.Creation:
    """Return the call of a launch; its token makes a repeated call one that does nothing more."""
    name = interface.pool_name(spec.marks)
    fixed = spec.count
    low = fixed if pool.min_nodes is None else pool.min_nodes
    high = fixed if pool.max_nodes is None else pool.max_nodes
    gpu = "" if target.offer is None else target.offer.gpu
    arguments: dict[str, Any] = {
        "clusterName": pool.cluster,
        "nodegroupName": name,
        "scalingConfig": {"minSize": low, "maxSize": high, "desiredSize": fixed},
        "instanceTypes": [target.instance_type],
        "capacityType": "ON_DEMAND",
        "amiType": _IMAGES[target.cpu_architecture],
        "diskSize": _DISK_GIB,
        "subnets": list(pool.subnets),
        "nodeRole": pool.node_role,
        "labels": {
            f"{PREFIX}-run": spec.marks.run,
            ACCELERATOR: f"nvidia-{gpu}".lower().replace(" ", "-"),
        },
        "taints": [{"key": interface.ON_NODES, "value": interface.TAINT, "effect": "NO_SCHEDULE"}],
        "tags": spec.marks.labels(TAG_SEPARATOR),
        "clientRequestToken": name,
    }
    call = "eks:CreateNodegroup"
    return interface.Creation(
        kind=interface.POOL, name=name, region=target.region, call=call, arguments=arguments
    )


def parts(arn: str) -> tuple[str, str]:
    """Return the cluster and the name in the ARN of a node group."""
    segments = arn.rpartition(":")[2].split("/")
    return (segments[1], segments[2]) if len(segments) > 2 else ("", "")  # noqa: PLR2004 - as the ARN has


GROUP_TAG = "eks:nodegroup-name"
_STATES: Mapping[str, interface.State] = {
    "CREATING": "starting",
    "ACTIVE": "running",
    "UPDATING": "running",
    "DEGRADED": "running",
    "DELETING": "ending",
    "CREATE_FAILED": "failed",
    "DELETE_FAILED": "failed",
}
_NODES: Mapping[str, interface.State] = {**STATES, "terminated": "gone"}

_Json = dict[str, Any]


def listing(
    clients: AwsClients,
    regions: tuple[str, ...],
    kinds: tuple[str, ...],
    marks_by_run: interface.MarksByRun,
) -> interface.Listing:
    """Return the node groups of ours and their nodes, as far as they are shown.

    Args:
        clients: of the account.
        regions: there.
        kinds: of `pool` and `node`.
        marks_by_run: for what has lost its tags.
    """
    draft = interface.ListingDraft(provider=PROVIDER)
    answers = in_each(regions, lambda region: _listed(clients, region, kinds, marks_by_run))
    join_regions(draft, answers)
    return draft.listing(kinds)


def _listed(
    clients: AwsClients, region: str, kinds: tuple[str, ...], marks_by_run: interface.MarksByRun
) -> interface.ListingDraft:
    part = interface.ListingDraft(provider=PROVIDER, runs=dict(marks_by_run))
    with part.asking(interface.POOL, region), sdk_errors(f"listing node groups in {region}"):
        for cluster in clusters(clients.get("eks", region)):
            for group in _groups(clients.get("eks", region), cluster):
                _take_group(group, region, part)
    if interface.NODE in kinds:
        with part.asking(interface.NODE, region), sdk_errors(f"listing nodes in {region}"):
            for item in _instances(clients.get("ec2", region)):
                _take_node(item, region, part)
    return part


def clusters(eks: AwsClient) -> Iterator[str]:
    """Yield the names of a region's clusters."""
    for page in eks.get_paginator("list_clusters").paginate():
        yield from page["clusters"]


def group_names(eks: AwsClient, cluster: str) -> Iterator[str]:
    """Yield the names of a cluster's node groups."""
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=cluster):
        yield from page["nodegroups"]


def _groups(eks: AwsClient, cluster: str) -> Iterator[_Json]:
    """Yield the groups of a cluster that are named as ours are; a name never changes."""
    for name in group_names(eks, cluster):
        group = read_group(eks, cluster, name) if interface.run_of_pool(name) else None
        if group is not None:
            yield group


def read_group(eks: AwsClient, cluster: str, name: str) -> _Json | None:
    """Return a node group; None where EKS knows no such one."""
    answer = if_known(lambda: eks.describe_nodegroup(clusterName=cluster, nodegroupName=name))
    return None if answer is None else answer["nodegroup"]


def _take_group(group: _Json, region: str, part: interface.ListingDraft) -> None:
    name = str(group["nodegroupName"])
    carried = read_labels(group.get("tags"), TAG_SEPARATOR)
    marks = part.owner_of_pool(interface.run_of_pool(name), carried)
    if marks is None:
        label = f"node group {name} of cluster {group['clusterName']} in {region}"
        part.leave(label, "in the EKS console")
        return
    part.add(group_resource(group, region, marks))


def _instances(ec2: AwsClient) -> Iterator[_Json]:
    filters = [
        {"Name": f"tag:{GROUP_TAG}", "Values": [f"{PREFIX}-*-{interface.POOL}"]},
        {"Name": "instance-state-name", "Values": list(STATES)},
    ]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=filters):
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def _take_node(item: _Json, region: str, part: interface.ListingDraft) -> None:
    group = _group_of(item)
    marks = part.runs.get(interface.run_of_pool(group))
    if marks is None:
        text = (
            f"instance {item['InstanceId']} in {region} is a node of {group}, and nothing says "
            "whose that is; it is left alone."
        )
        part.strangers[text] = None
        return
    part.add(node_resource(item, region, marks))


def _group_of(item: Mapping[str, object]) -> str:
    return tags_of(item).get(GROUP_TAG, "")


def group_resource(
    group: Mapping[str, Any], region: str, marks: OwnershipTags
) -> interface.Resource:
    """Return a node group of EKS that is of a run, with what EKS says is wrong with it."""
    issues = objects((group.get("health") or {}).get("issues") or ())
    faults = (f"{issue.get('code')}: {issue.get('message')}" for issue in issues)
    return interface.Resource(
        kind=interface.POOL,
        id=str(group["nodegroupArn"]),
        name=str(group["nodegroupName"]),
        region=region,
        marks=marks,
        state=_STATES.get(str(group.get("status")), "running"),
        instance_type=next(iter(group.get("instanceTypes") or ()), ""),
        fault=" ".join("; ".join(dict.fromkeys(faults)).split())[:_MOST_TEXT],
    )


_MOST_TEXT = 400


def node_resource(item: Mapping[str, Any], region: str, marks: OwnershipTags) -> interface.Resource:
    """Return an instance that a node group of a run has made."""
    return interface.Resource(
        kind=interface.NODE,
        id=str(item["InstanceId"]),
        name=f"{_group_of(item)}-{item['InstanceId']}",
        region=region,
        marks=marks,
        state=_NODES.get(str(item["State"]["Name"]), "running"),
        created_at=item.get("LaunchTime"),
        instance_type=str(item.get("InstanceType", "")),
    )


def look(
    clients: AwsClients, entry: interface.JournaledResource, marks: OwnershipTags
) -> interface.ExistenceCheck:
    """Return what AWS answers about an id of the journal.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    with sdk_errors(f"looking at {entry.kind} {entry.name}"):
        if entry.kind == interface.NODE:
            return _look_at_node(clients, entry, marks)
        group = read_group(clients.get("eks", entry.region), *parts(entry.id))
    if group is None or group["nodegroupArn"] != entry.id:
        return interface.ExistenceCheck.not_shown(f"EKS knows no such node group in {entry.region}")
    group_marks = read_labels(group.get("tags"), TAG_SEPARATOR)
    if interface.run_of_pool(str(group["nodegroupName"])) != marks.run:
        return interface.ExistenceCheck.not_asked(f"it is the node group {group['nodegroupName']}")
    fits = group_marks if group_marks is not None and group_marks.run == marks.run else marks
    return interface.ExistenceCheck.present(group_resource(group, entry.region, fits))


def _look_at_node(
    clients: AwsClients, entry: interface.JournaledResource, marks: OwnershipTags
) -> interface.ExistenceCheck:
    item = by_id(clients.get("ec2", entry.region), interface.MACHINE, entry.id)
    if item is None:
        return interface.ExistenceCheck.not_shown(f"EC2 knows no such instance in {entry.region}")
    node = node_resource(item, entry.region, marks)
    if node.state == "gone":
        return interface.ExistenceCheck.ended("EC2 calls it terminated")
    run = interface.run_of_pool(_group_of(item))
    if run and run != marks.run:
        return interface.ExistenceCheck.not_asked(f"it is a node of run {run}")
    return interface.ExistenceCheck.present(node)
