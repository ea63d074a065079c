"""What runs in an AWS account: machines with GPUs, disks and addresses in every enabled region.

Only Describe, List and Get calls are made; `gpucost iam-policy --provider aws-scan` has them all.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from msgspec.structs import replace

from pricing.catalog.regions import is_in
from pricing.tables import members, objects
from providers import account_scan
from providers.aws.access import AwsClient, AwsClients, open_session, sdk_errors
from providers.aws.calls import PROVIDER
from providers.aws.inventory import Item, enabled_regions, items, join_regions, tags_of
from providers.interface import MACHINE, run_of_pool
from providers.ownership_tags import read_labels
from providers.provider import Request, in_each

_GPU_FAMILY = re.compile(r"(p|g|gr)\d")
"""What the names of EC2's types with GPUs begin with: p5.48xlarge, g6e.xlarge, gr6.4xlarge."""

_ALIVE = {
    "Filters": [
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
    ]
}
_STOPPED = ("stopping", "stopped")
_USUAL_DISK = "gp3"  # has no kind in the billing rules
_FREE_IOPS, _FREE_MIB_S = 3000, 125  # of a gp3 disk; more is billed beside its size
_HOUR_S = 3600
_MOST_QUERIES = 500  # of one GetMetricData
_CPU, _INSTANCE = "CPUUtilization", "InstanceId"
_AGENT, _GPU = "CWAgent", "nvidia_smi_utilization_gpu"
"""The CloudWatch agent's metric of each GPU, where it was set up to send it."""

_Use = Mapping[tuple[str, str], list[float]]
"""Machine and metric -> its hours."""


def scan(request: Request) -> account_scan.ScanDraft:
    """Return what the account shows; a region that may not be asked hides no other.

    Raises:
        MissingCredentialsError: the SDK's chain finds none.
        ProviderError: the account cannot be asked at all.
    """
    with sdk_errors("finding credentials"):
        clients = AwsClients(open_session(), lambda _date: None)
    regions = [n for n in enabled_regions(clients) if is_in(PROVIDER, n, request.regions)]
    draft = account_scan.ScanDraft(provider=PROVIDER)
    join_regions(draft, in_each(regions, partial(_region, clients, request.now)))
    return draft


def _region(clients: AwsClients, now: datetime, region: str) -> account_scan.ScanDraft:
    """Return what a region shows."""
    draft, ec2 = account_scan.ScanDraft(provider=PROVIDER), clients.get("ec2", region)
    machines = list[Item]()
    disks: list[Item] | None = None
    addresses: list[Item] | None = None
    with draft.asking(MACHINE, region), sdk_errors("listing machines"):
        listed = items(ec2, MACHINE, _ALIVE)
        machines = [m for m in listed if _GPU_FAMILY.match(str(m["InstanceType"]))]
    with draft.asking(account_scan.DISK, region), sdk_errors("listing volumes"):
        pages = ec2.get_paginator("describe_volumes").paginate()
        disks = [disk for page in pages for disk in page["Volumes"]]
    with draft.asking(account_scan.ADDRESS, region), sdk_errors("listing addresses"):
        addresses = list(ec2.describe_addresses()["Addresses"])
    use: _Use = {}
    if machines:
        with draft.asking(account_scan.USE, region), sdk_errors("reading use"):
            ids = [str(machine[_INSTANCE]) for machine in machines]
            use = _use(clients.get("cloudwatch", region), ids, now)
    for machine in machines:
        item = _attached(_machine(machine, region), disks, addresses, machine, now)
        draft.take(
            account_scan.measured(item, *(use.get((item.id, name), ()) for name in (_CPU, _GPU)))
        )
    for disk in disks or ():
        if disk["State"] == "available":
            draft.take(_disk(disk, region, now))
    for address in addresses or ():
        if not address.get("AssociationId") and not address.get("InstanceId"):
            draft.take(_address(address, region, now))
    return draft


def _run(tags: Mapping[str, str]) -> str | None:
    """Return the launch of ours that the tags name; a node has the name of its pool."""
    marks = read_labels(tags, ":")
    return marks.run if marks else run_of_pool(tags.get("eks:nodegroup-name", "")) or None


def _machine(machine: Item, region: str) -> account_scan.ScannedItem:
    tags, id_ = tags_of(machine), str(machine["InstanceId"])
    state = str(members(machine["State"])["Name"])
    group = tags.get("aws:autoscaling:groupName", "")
    ends = ["aws", "ec2", "terminate-instances", "--region", region, "--instance-ids", id_]
    if group:  # what it is a part of would replace it, unless that shrinks with it
        ends = ["aws", "autoscaling", "terminate-instance-in-auto-scaling-group"]
        ends += ["--region", region, "--instance-id", id_, "--should-decrement-desired-capacity"]
    cores = members(machine.get("CpuOptions") or {})
    vcpus = int(str(cores.get("CoreCount") or 0)) * int(str(cores.get("ThreadsPerCore") or 1))
    started = machine.get("LaunchTime")
    return account_scan.ScannedItem(
        provider=PROVIDER,
        kind=MACHINE,
        id=id_,
        name=tags.get("Name", ""),
        region=region,
        type=str(machine["InstanceType"]),
        purchase="spot" if machine.get("InstanceLifecycle") == "spot" else "on_demand",
        state=state,
        pool=tags.get("eks:nodegroup-name") or tags.get("karpenter.sh/nodepool") or group,
        tags=tags,
        run=_run(tags),
        started_at=started if isinstance(started, datetime) else None,
        vcpus=vcpus or None,
        is_billed=state not in _STOPPED,
        idle=True if state in _STOPPED else None,
        why="stopped; its disks are billed" if state in _STOPPED else "",
        command=account_scan.command(*ends),
    )


def _attached(
    item: account_scan.ScannedItem,
    disks: Iterable[Item] | None,
    addresses: Iterable[Item] | None,
    machine: Item,
    now: datetime,
) -> account_scan.ScannedItem:
    """Return a machine with the prices of its disks and addresses."""
    prices = list[Decimal | None]()
    if disks is None:
        prices.append(None)
    else:
        own = [d for d in disks if item.id in _holders(d)]
        prices += [_disk_price(disk, item.region, now) for disk in own]
        item = replace(item, disk_gib=float(sum(int(str(disk["Size"])) for disk in own)))
    elastic = sum(address.get("InstanceId") == item.id for address in addresses or ())
    count = elastic or bool(machine.get("PublicIpAddress"))
    prices += [account_scan.address_usd_per_hour(PROVIDER, now.date())] * count
    return account_scan.attach(item, prices)


def _holders(disk: Item) -> list[object]:
    return [part.get("InstanceId") for part in objects(disk.get("Attachments") or ())]


def _disk_price(disk: Item, region: str, now: datetime) -> Decimal | None:
    """Return what a volume costs an hour; None where a part of it is billed beside its size."""
    kind, iops = str(disk["VolumeType"]), int(str(disk.get("Iops") or 0))
    speed = int(str(disk.get("Throughput") or 0))
    if kind == _USUAL_DISK and (iops > _FREE_IOPS or speed > _FREE_MIB_S):
        return None
    kind = "" if kind == _USUAL_DISK else kind
    return account_scan.disk_usd_per_hour(
        PROVIDER, now.date(), region, Decimal(str(disk["Size"])), kind
    )


def _disk(disk: Item, region: str, now: datetime) -> account_scan.ScannedItem:
    tags, id_ = tags_of(disk), str(disk["VolumeId"])
    created, claim = disk.get("CreateTime"), tags.get("kubernetes.io/created-for/pvc/name", "")
    return account_scan.ScannedItem(
        provider=PROVIDER,
        kind=account_scan.DISK,
        id=id_,
        name=tags.get("Name", ""),
        region=region,
        type=str(disk["VolumeType"]),
        state=str(disk["State"]),
        tags=tags,
        run=_run(tags),
        started_at=created if isinstance(created, datetime) else None,
        disk_gib=float(str(disk["Size"])),
        usd_per_hour=_disk_price(disk, region, now),
        why=f"attached to nothing{f'; Kubernetes claim {claim}' if claim else ''}",
        command=account_scan.command(
            "aws", "ec2", "delete-volume", "--region", region, "--volume-id", id_
        ),
    )


def _address(address: Item, region: str, now: datetime) -> account_scan.ScannedItem:
    tags = tags_of(address)
    id_ = str(address.get("AllocationId") or address["PublicIp"])
    return account_scan.ScannedItem(
        provider=PROVIDER,
        kind=account_scan.ADDRESS,
        id=id_,
        name=tags.get("Name", "") or str(address.get("PublicIp", "")),
        region=region,
        tags=tags,
        run=_run(tags),
        usd_per_hour=account_scan.address_usd_per_hour(PROVIDER, now.date()),
        command=account_scan.command(
            "aws", "ec2", "release-address", "--region", region, "--allocation-id", id_
        ),
    )


def _use(cloudwatch: AwsClient, ids: Sequence[str], now: datetime) -> _Use:
    """Return the busy share of each machine's CPU and GPUs in each hour that was measured."""
    agents = cloudwatch.get_paginator("list_metrics").paginate(Namespace=_AGENT, MetricName=_GPU)
    gpus = [metric["Dimensions"] for page in agents for metric in page["Metrics"]]
    series = [(_CPU, "AWS/EC2", [{"Name": _INSTANCE, "Value": id_}]) for id_ in ids]
    series += [(_GPU, _AGENT, dimensions) for dimensions in gpus]
    shares: dict[tuple[str, str], dict[datetime, list[float]]] = {}
    for first in range(0, len(series), _MOST_QUERIES):
        part = series[first : first + _MOST_QUERIES]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[_query(f"m{index}", *row) for index, row in enumerate(part)],
            StartTime=now - timedelta(days=account_scan.DAYS),
            EndTime=now,
        )
        for result in (result for page in pages for result in page["MetricDataResults"]):
            name, _, dimensions = part[int(result["Id"][1:])]
            id_ = next((d["Value"] for d in dimensions if d["Name"] == _INSTANCE), "")
            hours = shares.setdefault((id_, name), {})
            for at, percent in zip(result["Timestamps"], result["Values"], strict=True):
                hours.setdefault(at, []).append(percent / 100)
    return {key: [sum(v) / len(v) for v in hours.values()] for key, hours in shares.items()}


def _query(
    id_: str, name: str, namespace: str, dimensions: Sequence[Mapping[str, str]]
) -> dict[str, object]:
    series = {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}
    return {"Id": id_, "MetricStat": {"Metric": series, "Period": _HOUR_S, "Stat": "Average"}}
