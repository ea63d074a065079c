"""Accounts with machines of somebody's, for tests of `gpucost scan`: made in the stand-ins."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.cloudwatch.models import cloudwatch_backends
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from tests.providers.fakes.aws_account import IMAGE
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.lambda_account.account import Lambda, instance

HOURS = 30
BUSY, IDLE = 0.4, 0.01
HOUR_S = 3600
H100 = "gpu-h100x1-80gb"
AGE = timedelta(days=10)
Tags = dict[str, str]


def now_hour() -> datetime:
    """The hour that has just begun."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def ec2(region: str) -> Any:
    """A client of the account that the environment points at."""
    import boto3  # noqa: PLC0415 - heavy

    return boto3.client("ec2", region_name=region)


def run_instances(
    region: str, count: int, size: str = "g4dn.xlarge", tags: Tags | None = None
) -> list[str]:
    """Start instances, as their owner would; each has a root volume of 8 GiB."""
    asked: dict[str, Any] = {"ImageId": IMAGE, "InstanceType": size}
    if tags:
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        asked["TagSpecifications"] = [{"ResourceType": "instance", "Tags": pairs}]
    answer = ec2(region).run_instances(MinCount=count, MaxCount=count, **asked)
    for reservation in ec2_backends[DEFAULT_ACCOUNT_ID][region].reservations.values():
        for one in reservation.instances:
            one.launch_time = datetime.now(UTC).replace(tzinfo=None) - AGE
    return [one["InstanceId"] for one in answer["Instances"]]


def note_use(region: str, id_: str, share: float, hours: int = HOURS, *, gpu: bool = False) -> None:
    """Let CloudWatch have the use of an instance, the same in each of the last hours."""
    namespace = "CWAgent" if gpu else "AWS/EC2"
    name = "nvidia_smi_utilization_gpu" if gpu else "CPUUtilization"
    dimensions = [{"Name": "InstanceId", "Value": id_}]
    if gpu:
        dimensions.append({"Name": "index", "Value": "0"})
    data = [
        {
            "MetricName": name,
            "Dimensions": dimensions,
            "Timestamp": (now_hour() - timedelta(hours=h)).replace(tzinfo=None),
            "Value": share * 100,
        }
        for h in range(1, hours + 1)
    ]
    cloudwatch_backends[DEFAULT_ACCOUNT_ID][region].put_metric_data(namespace, data)


def cpu_matrix(share: float, cores: int = 8, hours: int = HOURS) -> dict[str, Any]:
    """What DigitalOcean's monitoring tells of such a CPU: seconds by mode, rising."""
    end, step_s = now_hour().timestamp(), 600
    times = [end - step_s * n for n in range(hours * HOUR_S // step_s, -1, -1)]
    rates = {"idle": cores * (1 - share), "user": cores * share, "system": 0.0}
    series = [
        {
            "metric": {"host_id": "1", "mode": mode},
            "values": [[int(at), f"{rate * (at - times[0]):.2f}"] for at in times],
        }
        for mode, rate in rates.items()
    ]
    return {"resultType": "matrix", "result": series}


def run_droplets(
    fake: DigitalOcean,
    count: int,
    share: float | None,
    *,
    tags: Sequence[str] = (),
    name: str = "train",
) -> list[str]:
    """Start Droplets of one H100; their use is not known without a share."""
    sold = next(one for one in fake.sizes if one["slug"] == H100)
    body = {"name": name, "region": "nyc2", "size": H100, "image": "gpu-h100x1-base"}
    made = []
    for _ in range(count):
        droplet = fake.estate.make_node({**body, "tags": list(tags)}, sold, "")
        droplet |= {
            "status": "active",
            "created_at": f"{datetime.now(UTC) - AGE:%Y-%m-%dT%H:%M:%SZ}",
        }
        made.append(str(droplet["id"]))
        if share is not None:
            fake.estate.use[made[-1]] = cpu_matrix(share, cores=droplet["vcpus"])
    return made


def a_volume(fake: DigitalOcean, id_: str, gib: int, droplets: Sequence[int] = ()) -> None:
    """Make a volume; on no Droplet it does nothing."""
    fake.estate.things["volumes"][id_] = {
        "id": id_,
        "droplet_ids": list(droplets),
        "name": f"data-{gib}",
        "description": "",
        "size_gigabytes": gib,
        "created_at": "2026-10-01T00:00:00Z",
        "region": {
            "name": "nyc2",
            "slug": "nyc2",
            "features": [],
            "available": True,
            "sizes": [],
        },
        "tags": [],
    }


def run_lambda(fake: Lambda, count: int, tags: Sequence[dict[str, str]] = ()) -> list[str]:
    """Start instances, as their owner would."""
    body = {"name": "notebook", "ssh_key_names": ["k"], "region_name": "us-east-1"}
    sold = fake.types["gpu_1x_a10"]["instance_type"]
    made = []
    for number in range(count):
        id_ = f"{0x0920582C7FF041399E34823A0BE62549 + number:032x}"  # as in Lambda's documents
        fake.things["/instances"][id_] = {
            **instance(id_, number, {**body, "tags": list(tags)}, sold),
            "status": "active",
        }
        made.append(id_)
    return made
