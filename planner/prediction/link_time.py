"""How much longer the links of another layout take for the same gradients.

Inside a machine the time of the profiled links grows with the number of GPUs as benchmarks showed
(planner/models/communication.py); other links differ by the measured time of a large all-reduce
over as many GPUs. Between machines the gradients pass the network once a ring, at the share of its
rate that all-reduces reach.
"""

from dataclasses import dataclass
from typing import NamedTuple

from planner.models.allreduce import large_all_reduce_s
from planner.models.communication import NETWORK_REACHED, growth, link_class, ring
from planner.prediction.layout import Layout, WorkingGpus
from pricing.hardware import find

_USUAL_GBPS = 100.0  # stands for the unknown network that both layouts use


class LinkTime(NamedTuple):
    """Time of the links of one layout over that of another.

    Attributes:
        factor: for the same gradients; 0 where one GPU needs no links.
        worse: whether a link or the network is slower, or there are more machines.
        grown: part of it that is due to the number of GPUs in a machine alone.
        network_known: whether the rate between the machines is.
    """

    factor: float
    worse: bool
    grown: float = 1.0
    network_known: bool = True


@dataclass(frozen=True, slots=True)
class Links:
    """What carries the gradients of a layout.

    Attributes:
        kind: class of the links inside a machine.
        architecture: of the GPUs, which decides how fast links of a class are.
        gbps: between the machines, None = unknown.
    """

    kind: str
    architecture: str
    gbps: float | None

    @classmethod
    def of(cls, layout: Layout) -> "Links":
        """Return those of a layout."""
        gpu = find(layout.gpu_name)
        return cls(
            link_class(layout.interconnect, layout.gpu_name),
            gpu.architecture if gpu else "",
            layout.network_gbps,
        )

    def inside_s(self, ranks: int) -> float:
        """Return seconds a byte of a large all-reduce inside one machine."""
        return large_all_reduce_s(self.architecture, ranks, nvlink=self.kind == "nvlink")

    def between_s(self, machines: int) -> float:
        """Return seconds a byte over the network; 0 in one machine."""
        if machines == 1:
            return 0.0
        rate = (self.gbps or _USUAL_GBPS) / 8.0 * 1e9 * NETWORK_REACHED[1]
        return ring(machines) / rate


def link_time(before: tuple[Links, WorkingGpus], after: tuple[Links, WorkingGpus]) -> LinkTime:
    """Return how the time of communication changes; both with links filled in.

    Args:
        before: the profiled GPUs, at least two.
        after: the wanted ones.
    """
    (here, profiled), (there, wanted) = before, after
    if wanted.gpus == 1:
        return LinkTime(factor=0.0, worse=False)
    inside_s, outside_s = here.inside_s(profiled.inside), here.between_s(profiled.machines)
    grown, inside, worse = 1.0, 0.0, False
    if wanted.inside > 1 and profiled.inside > 1:
        grown = growth(profiled.inside, wanted.inside, here.kind)
        swapped = there.inside_s(wanted.inside) / here.inside_s(wanted.inside)
        inside, worse = inside_s * grown * swapped, swapped > 1.0
    elif wanted.inside > 1:
        inside, worse = there.inside_s(wanted.inside), True
    # An unknown network of both is the same one.
    known = wanted.machines == 1 or profiled.machines > 1 or there.gbps is not None
    network_s = there.between_s(wanted.machines) if known else 0.0
    more = wanted.machines > profiled.machines or network_s > outside_s * (1.0 + 1e-9)
    return LinkTime(
        factor=(inside + network_s) / (inside_s + outside_s),
        worse=worse or (wanted.machines > 1 and more),
        grown=grown,
        network_known=known,
    )
