"""How throughput grows with the number of GPUs, when nothing but the profiled count was measured.

Efficiency of 1 -> 8 GPUs in Lambda's PyTorch benchmarks: median 0.97, quarter 0.89, twentieth 0.49.
Eight nodes against one in MLPerf Training v4.0 gave 2.8 to 6.5 times the speed. Between the known
counts the efficiency is taken as constant for each doubling.
"""

import math

from planner.estimate import Estimate, exactly

_DOUBLINGS = 3.0  # 1 -> 8, and one node -> eight nodes
_MEDIAN, _QUARTER, _TWENTIETH = 0.97, 0.89, 0.49
_NODES_LOW, _NODES_MID, _NODES_HIGH = 2.8 / 8, 5.3 / 8, 6.5 / 8
_GPUS_PER_NODE = 8
_FAST_LINKS = ("nvlink", "xgmi", "nvlink-bridge")


def speed_up(
    before: int,
    after: int,
    *,
    link_before: str | None,
    link_after: str | None,
    nodes_after: int | None = None,
) -> Estimate:
    """Return the throughput on `after` GPUs over the throughput on `before` GPUs.

    Args:
        before: GPUs in the profile, >= 1.
        after: GPUs wanted, >= 1.
        link_before: interconnect in the profile (`nvlink`, `pcie` ...), None = unknown.
        link_after: interconnect wanted.
        nodes_after: machines that the wanted GPUs stand in; None = as few as hold them.
    """
    link_before, link_after = link_before or link_after, link_after or link_before
    alike = after == 1 or _fast(link_before) == _fast(link_after)
    if before == after and alike and nodes_after is None:
        return exactly(1.0, "as many GPUs as measured")
    start, end = _efficiency(before, link_before), _efficiency(after, link_after, nodes_after)
    ratio = after / before
    basis = "efficiency of 1 to 8 GPUs in Lambda's benchmarks: median 0.97, 5 % under 0.49"
    mid = ratio * end[1] / start[1]
    # The same job scales alike before and after, so only the difference of the two is uncertain.
    ends = (ratio * end[0] / start[0], ratio * end[2] / start[2], mid)
    return Estimate(low=min(ends), mid=mid, high=max(ends), basis=basis)


def _fast(link: str | None) -> bool:
    return link in _FAST_LINKS


def _efficiency(
    count: int, link: str | None, nodes: int | None = None
) -> tuple[float, float, float]:
    nodes = nodes or max(1, math.ceil(count / _GPUS_PER_NODE))
    inside = max(1, count // nodes)
    doublings = math.log2(inside) / _DOUBLINGS
    spread = math.log2(nodes) / _DOUBLINGS
    mid = _MEDIAN if _fast(link) else _QUARTER
    return (
        _TWENTIETH**doublings * _NODES_LOW**spread,
        mid**doublings * _NODES_MID**spread,
        1.0 * _NODES_HIGH**spread,
    )
