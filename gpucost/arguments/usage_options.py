"""Options for parts of a bill beyond machine and disk: snapshots, object storage, traffic ..."""

from collections.abc import Callable
from typing import Any

import click

from gpucost.arguments.parameters import BOOT_DISK, DESTINATION, DURATION, MOST_MACHINES, SIZE

EGRESS_TO = "Where the data sent out goes: china, australia, a region. Some providers price by it."

# Fields of `pricing.billing.usage.Usage` by the option that fills them: --snapshots 100GB.
_EXTRAS: dict[str, tuple[str, click.ParamType[Any], str]] = {
    "egress-to": (
        "egress_to",
        DESTINATION,
        EGRESS_TO,
    ),
    "boot-disk": (
        "boot_disk_bytes",
        BOOT_DISK,
        "Disk that each machine boots from, where its price holds none: 100GiB.",
    ),
    "snapshots": ("snapshot_bytes", SIZE, "Snapshots kept meanwhile: 100GB."),
    "object-storage": ("object_storage_bytes", SIZE, "Objects kept meanwhile: 1TiB."),
    "object-egress": ("object_egress_bytes", SIZE, "Data sent out of the object storage."),
    "ingress": ("ingress_bytes", SIZE, "Data taken in from the internet."),
    "inter-zone": ("inter_zone_bytes", SIZE, "Data sent between zones of the region."),
    "inter-region": ("inter_region_bytes", SIZE, "Data sent to other regions."),
    "addresses": ("addresses", click.IntRange(0, MOST_MACHINES), "Public IPv4 addresses."),
    "nat-gateways": ("nat_gateways", click.IntRange(0, MOST_MACHINES), "NAT gateways."),
    "nat-traffic": ("nat_bytes", SIZE, "Data sent through NAT gateways."),
    "control-plane": (
        "control_plane",
        click.STRING,
        "Kubernetes control plane: standard, ha, extended, free.",
    ),
    "boot": ("boot_s", DURATION, "Machine time before work starts, on top: 5m."),
    "idle-tail": ("idle_tail_s", DURATION, "Machine time after work, on top: 30m."),
}


def usage_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each of _EXTRAS, named after the field it fills."""
    for flag, (field, kind, text) in reversed(_EXTRAS.items()):
        command = click.option(f"--{flag}", field, type=kind, help=text)(command)
    return command
