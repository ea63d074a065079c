"""How throughput grows with the number of GPUs and machines.

n GPUs do n / (1 + o) times the work of one, o being the communication that nothing hides over the
compute (planner/models/communication.py). It comes, best first, from what was measured on several
GPUs, also where the links change; from the gradients, the step time and measured all-reduce times;
or from how benchmarks over such links scaled. Whatever it comes from, GPUs can be left out: n of
them do no less than fewer in the same machines.

How much longer the links of another layout take for the same gradients.
Inside a machine the time of the profiled links grows with the number of GPUs as benchmarks showed
(planner/models/communication.py); other links differ by the measured time of a large all-reduce
over as many GPUs. Between machines the gradients pass the network once a ring, at the share of its
rate that all-reduces reach.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec import structs

from planner.models.coefficients import coefficients, memoize
from planner.models.communication import (
    BRIDGES,
    BY_SPEED,
    NETWORK_REACHED,
    NOTHING,
    Overhead,
    combine,
    growth,
    large_all_reduce_s,
    link_class,
    of_one_copy,
    ring,
    typical,
    typical_all_reduce_s,
    typical_network,
)
from planner.models.estimate import Estimate, exactly
from planner.prediction.layout import Layout, WorkingGpus
from planner.prediction.profiled_step import UNKNOWN_STEP, ProfiledStep
from planner.signals.thresholds import NODE_NETWORK_GBPS
from pricing.hardware import find
from pricing.message import Message, join

_USUAL_GBPS = 100.0  # stands for the unknown network that both layouts use


class _LinkTime(NamedTuple):
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


def link_time(before: tuple[Links, WorkingGpus], after: tuple[Links, WorkingGpus]) -> _LinkTime:
    """Return how the time of communication changes; both with links filled in.

    Args:
        before: the profiled GPUs, at least two.
        after: the wanted ones.
    """
    (links_now, profiled), (links_wanted, target) = before, after
    if target.gpus == 1:
        return _LinkTime(factor=0.0, worse=False)
    inside_s = links_now.inside_s(profiled.inside)
    outside_s = links_now.between_s(profiled.machines)
    grown, inside, worse = 1.0, 0.0, False
    if target.inside > 1 and profiled.inside > 1:
        grown = growth(profiled.inside, target.inside, links_now.kind)
        swapped = links_wanted.inside_s(target.inside) / links_now.inside_s(target.inside)
        inside, worse = inside_s * grown * swapped, swapped > 1.0
    elif target.inside > 1:
        inside, worse = links_wanted.inside_s(target.inside), True
    # An unknown network of both is the same one.
    network_known = target.machines == 1 or profiled.machines > 1 or links_wanted.gbps is not None
    network_s = links_wanted.between_s(target.machines) if network_known else 0.0
    more = target.machines > profiled.machines or network_s > outside_s * (1.0 + 1e-9)
    return _LinkTime(
        factor=(inside + network_s) / (inside_s + outside_s),
        worse=worse or (target.machines > 1 and more),
        grown=grown,
        network_known=network_known,
    )


# The part of a step that can hide communication: backward, two thirds of forward and backward.
_HIDES = 2.0 / 3.0
_LEAST_OVERHEAD = 0.01  # what benchmarks lose even where all could be hidden
_HALVINGS = 30  # of the interval in which a step's computing lies: to a part in 10^9

# Where today's network is unknown: what guides ask for; else Ethernet, InfiniBand NDR, EFA (p5).
_NETWORKS_GBPS = (NODE_NETWORK_GBPS, 10.0, 400.0, 3200.0)

Law = Callable[[WorkingGpus], Overhead]
"""The overhead of some of the GPUs of a layout."""


_PAIR = 2  # GPUs that a bridge joins
_ONE_FOR_ONE = exactly(1.0, "")  # sends nothing, whatever links its machine has


def speed_up(
    before: Layout, after: Layout, step: ProfiledStep = UNKNOWN_STEP, *, faster: float = 1.0
) -> Estimate:
    """Return the throughput of the wanted GPUs over that of the profiled ones, GPU for GPU.

    An unknown link is taken to be that of the other side; so is an unknown network of the wanted
    machines. Where today's network is unknown, the interval spans slow ones to fast ones.

    Args:
        before: the profiled GPUs.
        after: the wanted ones.
        step: what is known of a step on the profiled GPUs.
        faster: speed of one wanted GPU over one profiled GPU; communication does not gain by it.
    """
    if before.gpu_count == after.gpu_count == before.machines == after.machines == 1:
        return _ONE_FOR_ONE
    if faster == 1.0 and _linked(before) == _linked(after):
        return exactly(1.0, _measured_basis(before, after))  # with all of the GPUs that it had
    if after.interconnect == BRIDGES != before.interconnect and after.whole.inside > _PAIR:
        pairs = replace(after, gpu_count=_PAIR * after.machines)  # the others can be left out
        links = (replace(after, interconnect=link) for link in ("pcie", "nvlink"))
        gains = (speed_up(before, layout, step, faster=faster) for layout in (*links, pairs))
        return _in_pairs(*gains)
    if not _is_blind(before, after):
        return _same_links(before, after, step, faster)
    mid, *bounds = (
        _same_links(replace(before, network_gbps=gbps), after, step, faster)
        for gbps in _NETWORKS_GBPS
    )
    return mid.spanning(bounds, Message("scaling.network-unknown"))


def _in_pairs(slow: Estimate, fast: Estimate, pairs: Estimate) -> Estimate:
    """Return the gain where bridges join pairs, and more GPUs: what they exchange crosses PCIe.

    At best all that partners exchange leaves the PCIe links, half of it; the middle is half of
    that, our estimate.

    Args:
        slow: the gain over PCIe.
        fast: that over NVLink between all.
        pairs: that of one pair a machine, which all of them do no less than.
    """
    mid = 1.0 / (0.75 / slow.mid + 0.25 / fast.mid)
    high = 1.0 / (0.5 / slow.high + 0.5 / fast.high)
    ends = [exactly(end, "") for end in (max(slow.low, pairs.low), max(high, pairs.high))]
    return exactly(max(mid, pairs.mid), slow.basis).spanning(ends, Message("scaling.pairs"))


def _linked(layout: Layout) -> tuple[object, ...]:
    return layout.gpu, layout.whole, layout.interconnect, layout.network_gbps


def tensor_parallel(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the throughput of one copy of a served model on the wanted GPUs over the profiled.

    As measured copies grew from one GPU over such links. Communication that was measured does not
    gain by faster or more GPUs, only by faster links. Arguments are those of `speed_up`.
    """
    speeds = [speed / now for speed, now in zip(_of_copy(after), _of_copy(before), strict=True)]
    limit = _most_of_copy(before, after, step.exposed_ratio, faster)
    return Estimate(
        low=min(*speeds, limit),
        mid=min(speeds[1], limit),
        high=min(max(speeds), limit),
        basis=Message("scaling.one-copy", gpus=after.gpu_count)
        if speeds[1] <= limit
        else _measured_basis(before, after),
    )


def _of_copy(layout: Layout) -> tuple[float, float, float]:
    built_in = layout.chip.nvlink_gb_s and "PCIe" not in layout.chip.name
    link = layout.interconnect or ("nvlink" if built_in else "pcie")
    nvlink = link_class(link, layout.gpu_name) == "nvlink" and layout.machines == 1
    return of_one_copy(layout.gpu_count, nvlink=nvlink)


def _most_of_copy(before: Layout, after: Layout, exposed: float | None, faster: float) -> float:
    if exposed is None or before.machines > 1:
        return math.inf
    single = (1.0 + exposed) / before.gpu_count  # one GPU sends nothing; the others can be left out
    links_now, links = Links.of(_filled(before, after)), Links.of(_filled(after, before))
    change = min(1.0, links.inside_s(before.gpu_count) / links_now.inside_s(before.gpu_count))
    computing = before.gpu_count / after.gpu_count
    return max(single, (1.0 + exposed) / (computing + exposed * change * faster))


def _is_blind(before: Layout, after: Layout) -> bool:
    """Return whether the network of today is unknown and that of the wanted machines is not."""
    has_network = after.machines > 1 and after.network_gbps is not None
    return has_network and before.machines > 1 and before.network_gbps is None


def _same_links(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the gain, unknown links of today taken to be those of the wanted GPUs.

    That must not make slow links look better than fast ones.
    """
    speed = _between_filled(before, after, step, faster)
    if (
        before.interconnect is not None
        or link_class(after.interconnect, after.gpu_name) == "nvlink"
    ):
        return speed
    limit = _between_filled(before, replace(after, interconnect="nvlink"), step, faster)
    pairs = ((getattr(speed, end), getattr(limit, end)) for end in ("low", "mid", "high"))
    low, mid, high = (min(pair) for pair in pairs)
    return structs.replace(speed, low=low, mid=mid, high=high)


def _between_filled(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    before, after = _filled(before, after), _filled(after, before)
    law = _from_typical if step.exposed_ratio is None else _from_measured
    return law(before, after, step, faster)


def _filled(layout: Layout, counterpart: Layout) -> Layout:
    network = layout.network_gbps or (
        counterpart.network_gbps if counterpart.machines > 1 else None
    )
    interconnect = layout.interconnect or counterpart.interconnect
    if (interconnect, network) == (layout.interconnect, layout.network_gbps):
        return layout
    return replace(layout, interconnect=interconnect, network_gbps=network)


def _from_typical(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the gain where communication was not measured: computed, or as benchmarks had it."""
    computing_s, start = _start(before, step)
    onward = None if computing_s is None else computing_s / faster
    end = _with_parts(after, _usual(after, step, onward))
    ratio = after.gpu_count / before.gpu_count
    mid = ratio * (1.0 + start.mid) / (1.0 + end.mid)
    # The same job scales alike before and after, so only the difference of the two is uncertain.
    worst, best = ((1.0 + start.bad) / (1.0 + end.bad), (1.0 + start.good) / (1.0 + end.good))
    ends = [ratio * worst, ratio * best, mid]
    if 1 not in (before.gpu_count, after.gpu_count):
        changes = list(zip(_slowness(before), _slowness(after), strict=True))
        if any(after_value > before_value for before_value, after_value in changes):
            ends.append(ratio * (1.0 + start.mid) / (1.0 + end.bad))
        if any(after_value < before_value for before_value, after_value in changes):
            ends.append(ratio * (1.0 + start.bad) / (1.0 + end.mid))
    measured = (after, onward) if after.gpu_count > 1 else (before, step.step_s)
    return Estimate(low=min(ends), mid=mid, high=max(ends), basis=_source(step, *measured))


@memoize(256)
def _start(before: Layout, step: ProfiledStep) -> tuple[float | None, Overhead]:
    """Return the computing of a profiled step, seconds, and the overhead that is the rest of it.

    Computed communication never exceeds the measured step less its measured computing; where that
    was not measured, it is no worse than benchmarks over such links had it.
    """
    step_s = step.step_s
    if step_s is None or before.gpu_count == 1:
        return step_s, _with_parts(before, _usual(before, step, step_s))
    usual = 1.0 + _usual(before, UNKNOWN_STEP, None)(before.whole).bad
    minimum = max(step_s / usual, min(step_s, step.compute_s or 0.0))

    def at(compute_s: float) -> Overhead:
        return _with_parts(before, _usual(before, step, compute_s))

    low, high = minimum, step_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle * (1.0 + at(middle).mid) > step_s:
            high = middle
        else:
            low = middle
    overhead, maximum = at(low), step_s / minimum - 1.0
    return low, Overhead(*(min(end, maximum) for end in overhead))


def _from_measured(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the gain from the overhead measured on the profiled GPUs."""
    measured = step.exposed_ratio or 0.0
    end = _with_parts(after, _grown(before, after, step, faster))
    ratio = after.gpu_count / before.gpu_count
    limit = ratio * (1.0 + measured)  # without any communication, which no end passes
    return Estimate(
        low=limit / (1.0 + end.bad),
        mid=limit / (1.0 + end.mid),
        high=limit / (1.0 + end.good),
        basis=_measured_basis(before, after),
    )


def _grown(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Law:
    """Return the measured overhead on another layout: by the time of its links, and its compute.

    What was hidden behind compute is unknown, from nothing to all that backward can hide; a faster
    GPU and slower links hide less. The middle takes all communication to be exposed, as measured.
    """
    measured, profiled, links = step.exposed_ratio or 0.0, before.whole, Links.of(after)
    start = Links.of(before), profiled
    computing_s = _computing_s(step, faster)
    usual = _usual(after, step, computing_s)
    network_no_slower = profiled.machines > 1 and _gbps(after) >= _gbps(before)

    def law(part: WorkingGpus) -> Overhead:
        if profiled.machines == 1 < part.machines:
            # Launches, latency and bytes of one machine tell nothing of a network's bytes.
            in_each = law(WorkingGpus(part.inside, 1, part.inside))
            return _networked(in_each, after, part, step, computing_s)
        change = link_time(start, (links, part))
        times = change.factor * faster
        hidden = _HIDES * (times / change.grown - 1.0)
        exposed = measured * times
        low, high = sorted((exposed, max(0.0, exposed + hidden)))
        overhead = Overhead(good=low, mid=exposed, bad=high)
        if not change.network_known:
            overhead = _after(overhead, typical_network(part.machines, fast=False))
        if change.worse:
            # What was all hidden over a fast link says little about a slow one.
            # A network no slower than the measured one needs no guess: only links inside are new.
            new = WorkingGpus(part.inside, 1, part.inside) if network_no_slower else part
            _, mid, bad = usual(new)
            overhead = Overhead(overhead.good, max(overhead.mid, mid), max(overhead.bad, mid, bad))
        if (profiled.gpus, profiled.machines) == (part.gpus, part.machines):
            return overhead
        inside = profiled.machines == part.machines == 1
        name = "probe_factor" if inside else "probe_factor_nodes"
        factor = float(coefficients("scale")[name])
        return Overhead(
            good=max(0.0, (1.0 + overhead.good) / factor - 1.0),
            mid=overhead.mid,
            bad=(1.0 + overhead.bad) * factor - 1.0,
        )

    return law


def _gbps(layout: Layout) -> float:
    """Return the network's rate; an unknown one counts as what guides ask for."""
    return layout.network_gbps or NODE_NETWORK_GBPS


def _computing_s(step: ProfiledStep, faster: float) -> float | None:
    """Return the computing of a step on the wanted GPU, from a step with its communication."""
    if step.step_s is None:
        return None
    return step.step_s / (1.0 + (step.exposed_ratio or 0.0)) / faster


def _measured_basis(before: Layout, after: Layout) -> str:
    links = "other-links"
    if _slowness(before) == _slowness(after) and before.gpu_name == after.gpu_name:
        links = "ring"
    change = "none-on-one" if after.gpu_count == 1 else links
    text = Message(f"scaling.{change}", n=after.gpu_count)
    return Message("scaling.measured", n=before.gpu_count, change=text)


def _slowness(layout: Layout) -> tuple[int, int, float]:
    """Return what carries the gradients, slower is more: class of links, machines, network."""
    link = BY_SPEED.index(link_class(layout.interconnect, layout.gpu_name))
    machines = layout.machines
    return link, machines, 1.0 / _gbps(layout) if machines > 1 else 0.0


def _with_parts(layout: Layout, law: Law) -> Overhead:
    """Return the overhead of a layout by a law, GPUs left out where they would only delay."""
    overhead = law(layout.whole)
    for part in layout.parts:
        ends, more = zip(overhead, law(part), strict=True), layout.gpu_count / part.gpus
        overhead = Overhead(*(min(end, more * (1.0 + of_part) - 1.0) for end, of_part in ends))
    return overhead


def _usual(layout: Layout, step: ProfiledStep, computing_s: float | None) -> Law:
    """Return the overhead where none was measured: computed from a step, or as benchmarks had it.

    Args:
        layout: the GPUs, of which parts are asked.
        step: what is known of its gradients.
        computing_s: computing of a step there, seconds; None = unknown.
    """
    kind = link_class(layout.interconnect, layout.gpu_name)
    geforce = kind == "geforce"  # no peer-to-peer: never better than what is typical of it

    def law(part: WorkingGpus) -> Overhead:
        inside = usual = typical(kind, part.inside)
        computed = _computed(layout, part, step, computing_s)
        if computed is not None:
            # Known parts tell the middle; how well they are hidden is as uncertain as in
            # benchmarks.
            inside = Overhead(
                good=min(usual.good, computed.good),
                mid=max(computed.mid, usual.mid) if geforce else computed.mid,
                bad=max(computed.bad, usual.bad) if geforce else computed.bad,
            )
        if part.machines == 1:
            return inside
        overhead = _networked(inside, layout, part, step, computing_s)
        if part.inside > 1 or computed is not None:
            return overhead
        # Between machines of one GPU all crosses PCIe first: a network is no better than that.
        return Overhead(*map(max, overhead, typical("pcie", part.machines)))

    return law


def _source(step: ProfiledStep, layout: Layout, computing_s: float | None) -> str:
    """Return where the overhead of `_usual` comes from."""
    computed = _computed(layout, layout.whole, step, computing_s) is not None
    inside = Message("scaling.gradients" if computed else "scaling.benchmarks")
    gbps = layout.network_gbps
    if layout.machines == 1:
        return inside
    if step.gradient_bytes is None or computing_s is None or gbps is None:
        kind = "unknown" if gbps is None else "fast" if _is_fast(gbps) else "slow"
        return join((inside, Message(f"scaling.clusters-{kind}")))
    return join((inside, Message("scaling.gradients-network", gbps=gbps)))


def _is_fast(gbps: float | None) -> bool:
    return gbps is not None and gbps >= NODE_NETWORK_GBPS


def _after(inside: Overhead, between: Overhead) -> Overhead:
    """Return the overhead inside machines with that of the network on top."""
    ends = zip(inside, between, strict=True)
    return Overhead(*((1.0 + links) * (1.0 + network) - 1.0 for links, network in ends))


def _computed(
    layout: Layout, part: WorkingGpus, step: ProfiledStep, computing_s: float | None
) -> Overhead | None:
    """Return the overhead inside a machine from a known number of parameters; None without."""
    sizes, gpu = step.gradient_bytes, find(layout.gpu_name)
    if sizes is None or computing_s is None or gpu is None:
        return None
    if part.inside == 1:
        return NOTHING
    if sizes[0] != sizes[2]:
        return None
    nvlink = link_class(layout.interconnect, gpu.name) == "nvlink"
    time_s = typical_all_reduce_s(sizes[1], gpu.architecture, part.inside, nvlink=nvlink)
    exposed = max(_LEAST_OVERHEAD, time_s / computing_s - _HIDES)
    return Overhead(0.0, exposed, max(exposed, time_s / computing_s + _LEAST_OVERHEAD))


def _networked(
    inside: Overhead,
    layout: Layout,
    part: WorkingGpus,
    step: ProfiledStep,
    computing_s: float | None,
) -> Overhead:
    """Return the overhead with the network's, computed where gradients, step and rate are known.

    The network hides behind all that each machine does in a step, compute and links alike: a ring
    passes both at a time. So less compute never makes the step longer.

    Args:
        inside: the overhead of one of the machines.
        layout: the GPUs, of which parts are asked.
        part: those that work.
        step: what is known of its gradients.
        computing_s: computing of a step there, seconds; None = unknown.
    """
    sizes, gbps = step.gradient_bytes, layout.network_gbps
    if gbps is None:  # it may be a fast one
        slow = typical_network(part.machines, fast=False)
        fast = typical_network(part.machines, fast=True)
        return _after(inside, slow._replace(good=max(0.0, fast.good)))
    if sizes is None or computing_s is None:
        return _after(inside, typical_network(part.machines, fast=_is_fast(gbps)))
    passed, rate = ring(part.machines), gbps / 8.0 * 1e9
    return Overhead(
        *(
            combine(computing_s * (1.0 + overhead), passed * size / (rate * reached)) / computing_s
            - 1.0
            for overhead, size, reached in zip(inside, sizes, NETWORK_REACHED, strict=True)
        )
    )
