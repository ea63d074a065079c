"""Live prices of AWS: the Price List for on-demand, EC2 for sizes, offerings and spot prices."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from pricing.errors import InputError, ProviderError
from pricing.hardware import find
from pricing.money import plain, usd
from pricing.refresh.reading import PriceReading, Row, new_row
from providers.aws.access import AwsClient, client, open_session, sdk_errors
from providers.provider import Request

PROVIDER = "aws"
SOURCE = "AWS Price List GetProducts"
SPOT_SOURCE = "AWS DescribeSpotPriceHistory"

REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-central-1", "eu-west-1", "ap-northeast-1")
"""Read unless others are asked for: two of each coast, Frankfurt, Ireland, Tokyo."""

_PRICE_LIST_REGION = "us-east-1"  # one of the few with an endpoint; it knows all regions
_LINUX = (
    ("operatingSystem", "Linux"),
    ("tenancy", "Shared"),
    ("preInstalledSw", "NA"),
    ("capacitystatus", "Used"),
    ("marketoption", "OnDemand"),
)
_SPOT_TYPES = 50  # instance types in one question
_MIB_PER_GIB = 1024


def fetch(request: Request) -> PriceReading:
    """Read on-demand and spot prices of instance types with GPUs in the regions asked for."""
    with sdk_errors("finding credentials"):
        session = open_session()
    regions = request.regions or REGIONS
    rows: list[Row] = []
    with sdk_errors("reading prices"):
        _check_regions(session, regions)
        price_list = client(session, "pricing", _PRICE_LIST_REGION)
        for region in regions:
            ec2 = client(session, "ec2", region)
            machines = _machines(ec2, request.instance_types)
            cells = {"region": region, "as_of": request.now.date().isoformat()}
            on_demand = _on_demand(price_list, region, request.instance_types)
            for prices in (on_demand, _spot(ec2, list(machines), request)):
                rows += (
                    new_row(**machine, **cells, **prices[name])
                    for name, machine in machines.items()
                    if name in prices
                )
    if not (rows or request.instance_types):
        raise ProviderError(
            f"AWS: no GPU price in the answers for {', '.join(regions)}, so nothing was changed."
        )
    return PriceReading(
        provider=PROVIDER,
        source=SOURCE,
        read_on=request.now.date(),
        rows=tuple(rows),
        regions=regions,
        purchases=("on_demand", "spot"),
    )


def _check_regions(session: AwsClient, regions: tuple[str, ...]) -> None:
    offered = {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("ec2", partition)
    }
    missing = [region for region in regions if region not in offered]
    if missing:
        raise InputError(f"--region {region} is not a region of AWS." for region in missing)


def _machines(ec2: AwsClient, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the cells of each instance type with GPUs in the region, but for its price.

    EC2 has no filter for GPUs.

    Args:
        ec2: client of the region.
        names: only these; empty: all.
    """
    filters = [{"Name": "instance-type", "Values": names}] if names else []
    offered = {
        offering["InstanceType"]
        for page in ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="region", Filters=filters
        )
        for offering in page["InstanceTypeOfferings"]
    }
    machines = {
        described["InstanceType"]: _machine(described)
        for page in ec2.get_paginator("describe_instance_types").paginate(Filters=filters)
        for described in page["InstanceTypes"]
        if described.get("GpuInfo", {}).get("Gpus") and described["InstanceType"] in offered
    }
    return dict(sorted(machines.items()))


def _machine(described: Mapping[str, Any]) -> dict[str, str]:
    gpu = described["GpuInfo"]["Gpus"][0]
    ram_mib = described.get("MemoryInfo", {}).get("SizeInMiB")
    size_mib = gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)
    share = gpu.get("GpuPartitionSize") or 1
    count = gpu.get("Count") or share  # g6f and gr6f: Count 0, a share of one GPU
    model = find(gpu.get("Name"), memory_gib=size_mib / _MIB_PER_GIB or None)
    unsliced = count >= 1 and model is not None
    memory_gib = model.memory_gib if unsliced and model is not None else size_mib / _MIB_PER_GIB
    return {
        "instance_type": described["InstanceType"],
        "gpu": gpu.get("Name", "") if model is None else model.name,
        "gpu_count": f"{count:.12g}",
        "gpu_memory_gib": f"{memory_gib:.12g}",
        "vcpus": _text(described.get("VCpuInfo", {}).get("DefaultVCpus")),
        "ram_gib": _text(ram_mib and ram_mib / _MIB_PER_GIB),
        "local_disk_gib": _disk(described.get("InstanceStorageInfo", {})),
        "network_gbps": _network(described.get("NetworkInfo", {})),
        "interconnect": "single" if count <= 1 else "",
    }


def _disk(storage: Mapping[str, Any]) -> str:
    """Return instance store in GiB; AWS prints GB, which is 10^9 bytes."""
    total_gb = storage.get("TotalSizeInGB")
    return "" if total_gb is None else f"{total_gb * 10**9 / 2**30:.1f}".removesuffix(".0")


def _network(network: Mapping[str, Any]) -> str:
    cards = network.get("NetworkCards") or ()
    speeds = [card.get("BaselineBandwidthInGbps") for card in cards]
    return "" if not speeds or None in speeds else f"{sum(speeds):.12g}"


def _on_demand(
    price_list: AwsClient, region: str, names: tuple[str, ...]
) -> dict[str, dict[str, str]]:
    """Return price cells by instance type: Linux, shared tenancy, nothing preinstalled."""
    one_type = [("instanceType", name) for name in names] if len(names) == 1 else []
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in (*_LINUX, ("regionCode", region), *one_type)
    ]
    pages = price_list.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2", Filters=filters
    )
    prices: dict[str, dict[str, str]] = {}
    for page in pages:
        for text in page["PriceList"]:
            product = json.loads(text)
            name = product["product"]["attributes"].get("instanceType")
            for price in _dollars(product):
                prices[name] = {"usd_per_hour": price, "purchase": "on_demand", "source": SOURCE}
    return prices


def _dollars(product: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hourly price of a product as text; a product without one yields nothing."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if dimension.get("unit") == "Hrs":
                yield _plain(dimension["pricePerUnit"].get("USD", ""))


def _plain(text: str) -> str:
    """Return the digits without trailing zeros.

    What is not an amount is left for the gate to name.
    """
    try:
        return plain(usd(text))
    except InputError:
        return text


def _spot(ec2: AwsClient, names: list[str], request: Request) -> dict[str, dict[str, str]]:
    """Return price cells by instance type: the cheapest zone of the region at the time."""
    zones: dict[str, list[tuple[str, str]]] = {}
    for start in range(0, len(names), _SPOT_TYPES):
        pages = ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=names[start : start + _SPOT_TYPES],
            ProductDescriptions=["Linux/UNIX"],
            StartTime=request.now,
        )
        for page in pages:
            for quoted in page["SpotPriceHistory"]:
                price = (_plain(quoted["SpotPrice"]), quoted["AvailabilityZone"])
                zones.setdefault(quoted["InstanceType"], []).append(price)
    return {name: _cheapest(prices) for name, prices in zones.items()}


def _cheapest(prices: list[tuple[str, str]]) -> dict[str, str]:
    """Return the cells of the cheapest zone.

    Of one whose price is not an amount, if there is one.
    """
    (price, zone), *dearer = sorted(prices, key=_amount)
    dearer_text = "".join(f"; {other_zone} {amount}" for amount, other_zone in dearer)
    return {
        "usd_per_hour": price,
        "purchase": "spot",
        "source": SPOT_SOURCE,
        "notes": f"zone {zone}{dearer_text}",
    }


def _amount(price: tuple[str, str]) -> tuple[Decimal, str]:
    try:
        return usd(price[0]), price[1]
    except InputError:
        return Decimal(-1), price[1]


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"
