"""Peak memory of CUDA's caching allocator."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..events import Events

GIB = 2**30


def peaks() -> tuple[float, float] | None:
    """Return the peaks since the start, GiB over all devices; None before CUDA is in use.

    Allocated by tensors, and reserved from the driver. Reads counters of the allocator on the host:
    the GPU is not waited for.
    """
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return None
    devices = range(cuda.device_count())
    allocated = sum(map(cuda.max_memory_allocated, devices)) / GIB
    reserved = sum(map(cuda.max_memory_reserved, devices)) / GIB
    return round(allocated, 6), round(reserved, 6)


def write(events: Events, before: tuple[float, float] | None) -> tuple[float, float] | None:
    """Write the peaks where they have grown, and return them."""
    now = peaks()
    if now is not None and now != before:
        events.write("memory", allocated_peak_gib=now[0], reserved_peak_gib=now[1])
    return now
