"""Peak memory of CUDA's caching allocator."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .events import Events

GIB = 2**30


def write(events: Events) -> None:
    """Write the peaks since the start, over all devices; nothing before CUDA is in use.

    Reads counters of the allocator on the host: the GPU is not waited for.
    """
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return
    devices = range(cuda.device_count())
    events.write(
        "memory",
        allocated_peak_gib=round(sum(map(cuda.max_memory_allocated, devices)) / GIB, 6),
        reserved_peak_gib=round(sum(map(cuda.max_memory_reserved, devices)) / GIB, 6),
    )
