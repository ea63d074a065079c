"""Answers of public price feeds in the form in which each is published, with lines of our choice.

The forms are those of public readers and recorded excerpts, named in each reader's module; the
prices are bundled ones, so that an answer is what a feed would say on a quiet day.
"""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import count
from pathlib import Path

from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from pricing.hardware import gpus

TODAY = date(2026, 11, 22)
Line = dict[str, str]
Documents = dict[str, bytes]
Write = Callable[[list[Line]], Documents]

_HUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,"
    "gpu_vendor,flags,cpu_arch,provider_data"
)
_SKY = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price"
_AWS = (
    "SKU",
    "TermType",
    "Unit",
    "PricePerUnit",
    "Currency",
    "Instance Type",
    "vCPU",
    "Memory",
    "Operating System",
    "Tenancy",
    "Pre Installed S/W",
    "CapacityStatus",
    "MarketOption",
    "Region Code",
    "GPU",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A feed's answer.

    Attributes:
        provider: whose prices.
        purchase: how they are bought.
        least: fewest lines.
        write: documents by name, from lines.
        currency: whether a line says its currency.
    """

    provider: str
    write: Write
    purchase: str = "on_demand"
    currency: bool = False


def lines_of(recorded: Recorded) -> list[Line]:
    """Return a line of every machine that the provider is known to sell so, in one region."""
    seen: dict[str, Line] = {}
    for offer in load_catalog(TODAY).offers:
        if offer.provider == recorded.provider and _plain(offer, recorded):
            seen.setdefault(offer.instance_type, _line(offer))
    return list(seen.values())


def _plain(offer: Offer, recorded: Recorded) -> bool:
    return (
        offer.purchase == recorded.purchase
        and offer.gpu_count >= 1
        and offer.gpu in gpus()
        and offer.host == "provider"
        and (recorded.provider != "oci" or offer.region == "*")
    )


def _line(offer: Offer) -> Line:
    return {
        "type": offer.instance_type,
        "region": "us-east-1" if offer.region == "*" else offer.region,
        "gpu": offer.gpu,
        "count": f"{offer.gpu_count:g}",
        "memory": f"{offer.gpu_memory_gib:g}",
        "vcpus": "" if offer.vcpus is None else f"{offer.vcpus:g}",
        "ram": "" if offer.ram_gib is None else f"{offer.ram_gib:g}",
        "price": f"{offer.usd_per_hour:f}",
        "currency": "USD",
    }


def _csv(header: str, rows: Iterable[Mapping[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, header.split(","), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def gpuhunt(name: str) -> Write:
    """An archive of one provider's table, and its version."""

    def write(lines: list[Line]) -> Documents:
        rows = [
            {
                "instance_name": line["type"],
                "location": line["region"],
                "price": line["price"],
                "cpu": line["vcpus"] or "1",
                "memory": line["ram"] or "1",
                "gpu_count": line["count"],
                "gpu_name": line["gpu"],
                "gpu_memory": line["memory"],
                "spot": "False",
                "gpu_vendor": "nvidia",
                "cpu_arch": "x86",
                "provider_data": "{}",
            }
            for line in lines
        ]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            member = zipfile.ZipInfo(f"{name}.csv", (2026, 11, 22, 3, 0, 0))
            archive.writestr(member, _csv(_HUNT, rows), zipfile.ZIP_DEFLATED)
        version = "20261122-4711"
        return {
            f"{name}/version": f"{version}\n".encode(),
            f"{name}/{version}/catalog.zip": packed.getvalue(),
        }

    return write


def skypilot(cloud: str) -> Write:
    """One cloud's table, and the day of its last commit."""

    def write(lines: list[Line]) -> Documents:
        rows = [
            {
                "InstanceType": line["type"],
                "AcceleratorName": line["gpu"],
                "AcceleratorCount": f"{line['count']}.0",
                "vCPUs": line["vcpus"],
                "MemoryGiB": line["ram"],
                "Region": line["region"],
                "Price": line["price"],
            }
            for line in lines
        ]
        commits = [{"commit": {"committer": {"date": "2026-11-22T04:05:06Z"}}}]
        return {
            f"{cloud}/vms.csv": _csv(_SKY, rows),
            f"{cloud}/commits.json": json.dumps(commits).encode(),
        }

    return write


def azure(lines: list[Line]) -> Documents:
    """One page of meters."""
    items = [
        {
            "currencyCode": line["currency"],
            "retailPrice": Number(line["price"]),
            "armRegionName": line["region"],
            "armSkuName": line["type"],
            "skuName": line["type"],
            "productName": "Virtual Machines N Series",
            "meterName": line["type"],
            "serviceName": "Virtual Machines",
            "unitOfMeasure": "1 Hour",
            "type": "Consumption",
        }
        for line in lines
    ]
    return {"": _json({"Items": items, "NextPageLink": None, "Count": len(items)})}


def aws_offers(lines: list[Line]) -> Documents:
    """The offer file of a region, with lines of other systems between."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows(
        (
            ("FormatVersion", "v1.0"),
            ("Disclaimer", "This pricing list is for informational purposes only."),
            ("Publication Date", "2026-11-21T18:00:00Z"),
            ("Version", "20261121180000"),
            ("OfferCode", "AmazonEC2"),
            _AWS,
        )
    )
    for number, line in zip(count(1), lines, strict=False):
        for system in ("Linux", "Windows"):
            sold = (system, "Shared", "NA", "Used", "OnDemand", line["region"], line["count"])
            price = (line["price"], line["currency"], line["type"], line["vcpus"], "1 GiB")
            writer.writerow((f"SKU{number}", "OnDemand", "Hrs", *price, *sold))
    return {"us-east-1/index.csv": text.getvalue().encode()}


def aws_spot(lines: list[Line]) -> Documents:
    """spot.js, with the older names of regions."""
    sizes = [
        {
            "size": line["type"],
            "valueColumns": [
                {"name": "linux", "prices": {line["currency"]: line["price"]}},
                {"name": "mswin", "prices": {"USD": "N/A*"}},
            ],
        }
        for line in lines
    ]
    config = {
        "rate": "perhr",
        "valueColumns": ["linux", "mswin"],
        "currencies": ["USD"],
        "regions": [{"region": "us-east", "instanceTypes": [{"type": "gpu", "sizes": sizes}]}],
    }
    return {"": b"callback(" + _json({"vers": 0.01, "config": config}) + b");"}


def oci(lines: list[Line]) -> Documents:
    """Shapes and products of the cost estimator."""
    shapes = [
        {
            "name": line["type"],
            "hidden": False,
            "status": "ACTIVE",
            "allowPreemptible": False,
            "bundleMemoryQty": 1024,
            "gpuQty": int(line["count"]),
            "gpuMemoryQty": round(float(line["count"]) * float(line["memory"])),
            "products": [{"partNumber": line["type"], "qty": 16, "type": {"value": "ocpu"}}],
        }
        for line in lines
    ]
    products = [
        {
            "partNumber": line["type"],
            "billingModel": "UCM",
            "pricetype": "HOUR",
            "currencyCodeLocalizations": [
                {
                    "currencyCode": line["currency"],
                    "prices": [
                        {
                            "model": "PAY_AS_YOU_GO",
                            "value": Number(str(Decimal(line["price"]) / Decimal(line["count"]))),
                        }
                    ],
                }
            ],
        }
        for line in lines
    ]
    return {"shapes.json": _json({"items": shapes}), "products.json": _json({"items": products})}


def vultr(lines: list[Line]) -> Documents:
    """Plans of virtual machines; no bare metal."""
    plans = [
        {
            "id": f"vcg-{line['type']}",
            "vcpu_count": 16,
            "ram": 131072,
            "disk": 100,
            "hourly_cost": Number(line["price"]),
            "type": "vcg",
            "locations": ["ewr"],
            "gpu_vram_gb": round(float(line["memory"]) * float(line["count"])),
            "gpu_type": f"NVIDIA_{line['gpu'].partition('-')[0]}",
        }
        for line in lines
    ]
    return {"plans": _json({"plans": plans, "meta": {"total": len(plans)}}),
            "plans-metal": _json({"plans_metal": []})}  # fmt: skip


def vast(lines: list[Line]) -> Documents:
    """Three machines of each kind."""
    offers = [
        {
            "id": 1000 * number + again,
            "gpu_name": line["gpu"],
            "num_gpus": int(line["count"]),
            "gpu_ram": round(float(line["memory"]) * 1024),
            "cpu_cores_effective": 16,
            "cpu_ram": 64000,
            "dph_base": Number(line["price"]),
            "verification": "verified",
            "geolocation": "Bulgaria, BG",
        }
        for number, line in enumerate(lines)
        for again in range(3)
    ]
    return {"": _json({"offers": offers})}


class Number(str):
    """The digits of a number, which stand in JSON as they are."""

    __slots__ = ()


def _json(document: object) -> bytes:
    """The document with its numbers to the digit."""
    marked = json.dumps(_marked(document))
    return marked.replace('"<<', "").replace('>>"', "").encode()


def _marked(value: object) -> object:
    if isinstance(value, Number):
        return f"<<{value}>>"
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    return [_marked(item) for item in value] if isinstance(value, list) else value


def written(folder: Path, documents: Documents, only: str = "answer") -> Path:
    """Write documents as `--from` takes them: a file, or a folder of them."""
    if list(documents) == [""]:
        path = folder / only
        path.write_bytes(documents[""])
        return path
    for name, data in documents.items():
        path = folder / (name if "." in name.rpartition("/")[2] else f"{name}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


RECORDED: Mapping[str, tuple[str, Recorded]] = {
    "gpuhunt aws": ("gpuhunt", Recorded(provider="aws", write=gpuhunt("aws"))),
    "gpuhunt lambda": ("gpuhunt", Recorded(provider="lambda", write=gpuhunt("lambdalabs"))),
    "skypilot lambda": ("skypilot", Recorded(provider="lambda", write=skypilot("lambda"))),
    "skypilot aws": ("skypilot", Recorded(provider="aws", write=skypilot("aws"))),
    "azure": ("azure", Recorded(provider="azure", write=azure, currency=True)),
    "aws-offers": ("aws-offers", Recorded(provider="aws", write=aws_offers, currency=True)),
    "aws-spot": (
        "aws-spot",
        Recorded(provider="aws", write=aws_spot, purchase="spot", currency=True),
    ),
    "oci": ("oci", Recorded(provider="oci", write=oci, currency=True)),
}
"""What is played back -> feed and its answer."""
