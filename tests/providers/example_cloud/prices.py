"""The live prices of the example: one size, everywhere the same."""

from pricing.refresh.reading import PriceReading, new_row
from providers.provider import Request


def fetch(request: Request) -> PriceReading:
    """Return everything that is sold."""
    day = request.now.date()
    row = new_row(
        region="*",
        instance_type="one-l4",
        gpu="L4",
        gpu_count="1",
        gpu_memory_gib="24",
        vcpus="8",
        ram_gib="32",
        purchase="on_demand",
        usd_per_hour="0.60",
        as_of=day.isoformat(),
        source="Example Cloud",
    )
    return PriceReading(
        provider="example",
        source="Example Cloud",
        read_on=day,
        rows=(row,),
        purchases=("on_demand",),
    )
