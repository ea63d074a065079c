"""Today's machine at the price that its user pays: an own machine, a reserved one, a discount."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from planner.profile.model import Profile
from planner.profile.source import source_gpu
from pricing.catalog.offer import Offer

OWN = "own"
"""The provider of a machine that no price list has."""
_SOURCE = "--price, given by the user"


def at_price(listed: Offer | None, profile: Profile, usd_per_hour: Decimal, day: date) -> Offer:
    """Return today's machine at the user's price.

    Args:
        listed: the machine in the catalog; None where it was not stated.
        profile: what was measured.
        usd_per_hour: for one whole machine, > 0.
        day: of the plan.

    Raises:
        InputError: the profile names no known GPU.
    """
    if listed is not None:
        return replace(
            listed,
            usd_per_hour=usd_per_hour,
            source=_SOURCE,
            as_of=day,
            as_of_text="",
            dated=True,
            valid_from=None,
            valid_until=None,
            withdrawn=False,
        )
    hardware, gpu = profile.hardware, source_gpu(profile)
    nodes = hardware.nodes or 1
    return Offer(
        provider=hardware.provider or OWN,
        region=hardware.region or "*",
        instance_type=hardware.instance_type or f"{profile.gpu_count // nodes or 1}x-{gpu.name}",
        gpu=gpu.name,
        gpu_count=profile.gpu_count // nodes or 1,
        gpu_memory_gib=hardware.gpu_memory_gib or gpu.memory_gib,
        vcpus=hardware.cpu_cores and hardware.cpu_cores / nodes,
        ram_gib=hardware.ram_gib and hardware.ram_gib / nodes,
        interconnect=hardware.interconnect,
        network_gbps=hardware.network_gbps,
        purchase=hardware.purchase or "on_demand",
        usd_per_hour=usd_per_hour,
        source=_SOURCE,
        as_of=day,
    )
