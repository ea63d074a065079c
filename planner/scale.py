"""How throughput grows with the number of GPUs, when nothing but the profiled count was measured.

Efficiency of 1 -> 8 GPUs in Lambda's PyTorch benchmarks: median 0.97, quarter 0.89, twentieth 0.49.
Eight nodes against one in MLPerf Training v4.0 gave 2.8 to 6.5 times the speed. Between the known
counts the efficiency is taken as constant for each doubling.
"""

import math
from dataclasses import dataclass, replace

from planner.estimate import Estimate, exactly

_DOUBLINGS = 3.0  # 1 -> 8, and one node -> eight nodes
_MEDIAN, _QUARTER, _TWENTIETH = 0.97, 0.89, 0.49
_NODES_LOW, _NODES_MID, _NODES_HIGH = 2.8 / 8, 5.3 / 8, 6.5 / 8
GPUS_PER_NODE = 8
_FAST_LINKS = ("nvlink", "xgmi", "nvlink-bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """GPUs that work together.

    Attributes:
        gpus: how many, >= 1.
        link: between them inside a machine (`nvlink`, `pcie` ...), None = unknown.
        nodes: machines that they stand in, None = as few as hold them.
    """

    gpus: int
    link: str | None = None
    nodes: int | None = None

    @property
    def machines(self) -> int:
        """Machines, stated or as few as hold the GPUs."""
        return self.nodes or max(1, math.ceil(self.gpus / GPUS_PER_NODE))


def speed_up(before: Layout, after: Layout) -> Estimate:
    """Return the throughput of the wanted GPUs over that of the profiled ones.

    An unknown link is taken to be that of the other side.
    """
    before = replace(before, link=before.link or after.link)
    after = replace(after, link=after.link or before.link)
    alike = after.gpus == 1 or _fast(before.link) == _fast(after.link)
    if before.gpus == after.gpus and before.machines == after.machines and alike:
        return exactly(1.0, "as many GPUs as measured")
    start, end = _efficiency(before), _efficiency(after)
    ratio = after.gpus / before.gpus
    basis = "efficiency of 1 to 8 GPUs in Lambda's benchmarks: median 0.97, 5 % under 0.49"
    mid = ratio * end[1] / start[1]
    # The same job scales alike before and after, so only the difference of the two is uncertain.
    ends = (ratio * end[0] / start[0], ratio * end[2] / start[2], mid)
    return Estimate(low=min(ends), mid=mid, high=max(ends), basis=basis)


def _fast(link: str | None) -> bool:
    return link in _FAST_LINKS


def _efficiency(layout: Layout) -> tuple[float, float, float]:
    inside = max(1, layout.gpus // layout.machines)
    doublings = math.log2(inside) / _DOUBLINGS
    spread = math.log2(layout.machines) / _DOUBLINGS
    mid = _MEDIAN if _fast(layout.link) else _QUARTER
    return (
        _TWENTIETH**doublings * _NODES_LOW**spread,
        mid**doublings * _NODES_MID**spread,
        1.0 * _NODES_HIGH**spread,
    )
