"""Google's machines in SkyPilot's table: host and GPUs stand in rows of their own, and add up.

A host's row has no accelerator, a row of GPUs no type; both have a zone. Which GPUs a host has is
`_ACC_INSTANCE_TYPE_DICTS` of SkyPilot's `gcp_catalog.py`, after cloud.google.com/compute/docs/gpus.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pricing.errors import InputError
from pricing.money import plain, usd

_FAMILIES: Mapping[str, str] = MappingProxyType(
    {"a2-highgpu": "A100", "a2-megagpu": "A100", "g2-standard": "L4"}
)
"""Family -> its GPU, as the rows of GPUs call it."""

_WITH_SSD = re.compile(r"a2-ultragpu-|a3-|a4x?-")
"""Families that come with local SSDs, which Google bills with the machine and no row here has."""

_L4_OF_VCPUS: Mapping[str, int] = MappingProxyType(
    {"4": 1, "8": 1, "12": 1, "16": 1, "32": 1, "24": 2, "48": 4, "96": 8}
)

_TYPE = re.compile(r"(a2-highgpu|a2-megagpu|g2-standard)-(\d+)(g?)")
_PRICES = ("Price", "SpotPrice")

_Row = Mapping[str, str]


def with_hosts(rows: Iterator[_Row], left_out: Counter[str]) -> Iterator[_Row]:
    """Yield each machine with GPUs once, at the price of its host and its GPUs in its zone."""
    hosts: list[_Row] = []
    gpus: dict[tuple[str, str, str], _Row] = {}
    for row in rows:
        if row["InstanceType"] and not row["AcceleratorName"]:
            hosts.append(row)
        elif row["InstanceType"]:
            yield row
        else:
            count = row["AcceleratorCount"].removesuffix(".0")
            gpus[row["AcceleratorName"], count, row.get("AvailabilityZone", "")] = row
    for host in hosts:
        if _WITH_SSD.match(host["InstanceType"]):
            left_out["a machine with local SSDs, which are billed and not in the table"] += 1
            continue
        of = _gpus_of(host["InstanceType"])
        if of is None:
            continue  # a host without GPUs of its own
        attached = gpus.get((*of, host.get("AvailabilityZone", "")))
        if attached is None:
            left_out["no price of its GPUs in the zone"] += 1
        else:
            yield _together(host, attached, of)


def _gpus_of(name: str) -> tuple[str, str] | None:
    """Return the accelerator and the count of a host with GPUs."""
    match = _TYPE.fullmatch(name)
    if match is None:
        return None
    family, size, gpus = match.groups()
    count = size if gpus else str(_L4_OF_VCPUS.get(size, ""))
    return _FAMILIES[family], count


def _together(host: _Row, gpus: _Row, of: tuple[str, str]) -> _Row:
    sums = {name: _sum(host.get(name) or "", gpus.get(name) or "") for name in _PRICES}
    return {**host, **sums, "AcceleratorName": of[0], "AcceleratorCount": of[1]}


def _sum(host: str, gpus: str) -> str:
    """Add both prices; "" where one is missing; the texts where one is not an amount."""
    if not host or not gpus:
        return ""
    try:
        parts = usd(host), usd(gpus)
    except InputError:
        return f"{host} + {gpus}"
    return plain(sum(parts[1:], parts[0])) if min(parts) > 0 else plain(min(parts))
