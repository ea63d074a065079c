"""How much longer the links of another layout take for the same gradients.

Inside a machine the time of the profiled links grows with the number of GPUs as benchmarks showed
(planner/models/communication.py); other links differ by the measured time of a large all-reduce
over as many GPUs. Between machines the gradients pass the network once a ring, at the share of its
rate that all-reduces reach.
"""

from dataclasses import dataclass, replace

from planner.models.allreduce import large_all_reduce_s
from planner.models.communication import NETWORK_REACHED, growth, link_class, ring
from planner.prediction.layout import Layout
from pricing.hardware import find

_USUAL_GBPS = 100.0  # stands for the unknown network that both layouts use


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTime:
    """Time of the links of one layout over that of another.

    Attributes:
        factor: for the same gradients; 0 where one GPU needs no links.
        grown: part of it that is due to the number of GPUs in a machine alone.
        worse: whether a link or the network is slower, or there are more machines.
        network_known: whether the rate between the machines is.
    """

    factor: float
    worse: bool
    grown: float = 1.0
    network_known: bool = True


def link_time(before: Layout, after: Layout) -> LinkTime:
    """Return how the time of communication changes; both layouts with links filled in.

    Args:
        before: the profiled GPUs, at least two.
        after: the wanted ones.
    """
    if after.gpu_count == 1:
        return LinkTime(factor=0.0, worse=False)
    outside = _between_s(before)
    whole = _inside_s(before) + outside
    grown = 1.0
    if min(before.inside, after.inside) > 1:
        grown = growth(
            before.inside, after.inside, link_class(before.interconnect, before.gpu_name)
        )
    inside, worse = _inside_after(before, after, grown)
    # An unknown network of both is the same one.
    known = after.machines == 1 or before.machines > 1 or after.network_gbps is not None
    network = _between_s(after) if known else 0.0
    more = after.machines > before.machines or network > outside * (1.0 + 1e-9)
    return LinkTime(
        factor=(inside + network) / whole,
        worse=worse or (after.machines > 1 and more),
        grown=grown,
        network_known=known,
    )


def _inside_after(before: Layout, after: Layout, grown: float) -> tuple[float, bool]:
    """Return seconds a byte inside a machine of the wanted layout, and whether links are slower."""
    if after.inside == 1:
        return 0.0, False
    if before.inside == 1:
        return _inside_s(after), True
    wanted = replace(before, gpu_count=after.inside, nodes=1)
    swapped = _inside_s(replace(after, gpu_count=after.inside, nodes=1)) / _inside_s(wanted)
    return _inside_s(before) * grown * swapped, swapped > 1.0


def _inside_s(layout: Layout) -> float:
    """Return seconds a byte of a large all-reduce inside one machine."""
    gpu = find(layout.gpu_name)
    nvlink = link_class(layout.interconnect, layout.gpu_name) == "nvlink"
    return large_all_reduce_s(gpu.architecture if gpu else "", layout.inside, nvlink=nvlink)


def _between_s(layout: Layout) -> float:
    """Return seconds a byte over the network; 0 in one machine."""
    if layout.machines == 1:
        return 0.0
    rate = (layout.network_gbps or _USUAL_GBPS) / 8.0 * 1e9 * NETWORK_REACHED[1]
    return ring(layout.machines) / rate
