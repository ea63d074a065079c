"""The call that adds a node group to an EKS cluster, as plain data; pure."""

from dataclasses import replace
from typing import Any

from providers.interface import Creation, LaunchSpec, Place
from providers.ownership_tags import PREFIX, OwnershipTags, read_marks
from providers.pools.node_pool import ON_NODES, POOL, TAINT, NodePool, pool_name

PROVIDER = "eks"
DEADLINE = f"{PREFIX}:deadline"
ACCELERATOR = "k8s.amazonaws.com/accelerator"
"""The label by which the Cluster Autoscaler knows nodes with GPUs (its AWS page)."""

_IMAGES = {"x86_64": "AL2023_x86_64_NVIDIA", "arm64": "AL2023_ARM_64_NVIDIA"}
_DISK_GIB = 100
"""Of a node: images with CUDA and PyTorch do not fit into EKS' default of 20; as `--boot-disk`."""


def tags(marks: OwnershipTags) -> dict[str, str]:
    """Return the marks as tags of a node group; EKS gives them to nothing else."""
    return {f"{PREFIX}:{name}": text for name, text in marks.tags().items()}


def read_tags(told: object) -> OwnershipTags | None:
    """Return the marks among tags; None where they are not complete."""
    if not isinstance(told, dict):
        return None
    ours = f"{PREFIX}:"
    return read_marks({str(k).removeprefix(ours): str(v) for k, v in told.items() if ours in k})


def creation(spec: LaunchSpec, pool: NodePool, place: Place) -> Creation:
    """Return the call of a launch; its token makes a repeated call one that does nothing more."""
    name = pool_name(spec.marks)
    fixed = spec.count
    low = fixed if pool.min_nodes is None else pool.min_nodes
    high = fixed if pool.max_nodes is None else pool.max_nodes
    gpu = "" if place.offer is None else place.offer.gpu
    arguments: dict[str, Any] = {
        "clusterName": pool.cluster,
        "nodegroupName": name,
        "scalingConfig": {"minSize": low, "maxSize": high, "desiredSize": fixed},
        "instanceTypes": [place.instance_type],
        "capacityType": "ON_DEMAND",
        "amiType": _IMAGES[place.cpu_architecture],
        "diskSize": _DISK_GIB,
        "subnets": list(pool.subnets),
        "nodeRole": pool.node_role,
        "labels": {
            f"{PREFIX}-run": spec.marks.run,
            ACCELERATOR: f"nvidia-{gpu}".lower().replace(" ", "-"),
        },
        "taints": [{"key": ON_NODES, "value": TAINT, "effect": "NO_SCHEDULE"}],
        "tags": tags(spec.marks),
        "clientRequestToken": name,
    }
    call = "eks:CreateNodegroup"
    return Creation(kind=POOL, name=name, region=place.region, call=call, arguments=arguments)


def parts(arn: str) -> tuple[str, str]:
    """Return the cluster and the name in the ARN of a node group."""
    words = arn.rpartition(":")[2].split("/")
    return (words[1], words[2]) if len(words) > 2 else ("", "")  # noqa: PLR2004 - as the ARN has


def in_region(spec: LaunchSpec, pool: NodePool, region: str) -> LaunchSpec:
    """Return the launch in the region of its cluster."""
    place = replace(spec.places[0], region=region)
    return replace(spec, places=(place,), pool=pool)
