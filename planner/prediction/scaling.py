"""How throughput grows with the number of GPUs and machines.

n GPUs do n / (1 + o) times the work of one, o being the communication that nothing hides over the
compute (planner/models/communication.py). It comes, best first, from what was measured on several
GPUs, also where the links change; from the gradients, the step time and measured all-reduce times;
or from how benchmarks over such links scaled. Whatever it comes from, GPUs can be left out: n of
them do no less than fewer in the same machines.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from planner.models.allreduce import typical_all_reduce_s
from planner.models.coefficients import coefficients
from planner.models.communication import (
    BY_SPEED,
    NETWORK_REACHED,
    NOTHING,
    Overhead,
    combine,
    link_class,
    ring,
    typical,
    typical_network,
)
from planner.models.estimate import Estimate
from planner.prediction.layout import GPUS_PER_NODE, Layout
from planner.prediction.link_time import link_time
from planner.prediction.profiled_step import UNKNOWN_STEP, ProfiledStep
from planner.signals.thresholds import NODE_NETWORK_GBPS
from pricing.hardware import find

# The part of a step that can hide communication: backward, two thirds of forward and backward.
_HIDES = 2.0 / 3.0
_LEAST_OVERHEAD = 0.01  # what benchmarks lose even where all could be hidden
_HALVINGS = 30  # of the interval in which a step's computing lies: to a part in 10^9

# Where today's network is unknown: what guides ask for; else Ethernet, InfiniBand NDR, EFA (p5).
_NETWORKS_GBPS = (NODE_NETWORK_GBPS, 10.0, 400.0, 3200.0)
_ENDS = ("low", "mid", "high")

Law = Callable[[Layout], tuple[Overhead, str]]


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
    if not _is_blind(before, after):
        return _same_links(before, after, step, faster)
    mid, *others = (
        _same_links(replace(before, network_gbps=gbps), after, step, faster)
        for gbps in _NETWORKS_GBPS
    )
    return Estimate(
        low=min(mid.low, *(one.low for one in others)),
        mid=mid.mid,
        high=max(mid.high, *(one.high for one in others)),
        basis=f"{mid.basis}; the network of today is unknown",
    )


def _is_blind(before: Layout, after: Layout) -> bool:
    """Return whether the network of today is unknown and that of the wanted machines is not."""
    known = after.machines > 1 and after.network_gbps is not None
    return known and before.machines > 1 and before.network_gbps is None


def _same_links(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the gain, unknown links of today taken to be those of the wanted GPUs.

    That must not make slow links look better than fast ones.
    """
    found = _between_filled(before, after, step, faster)
    if (
        before.interconnect is not None
        or link_class(after.interconnect, after.gpu_name) == "nvlink"
    ):
        return found
    most = _between_filled(before, replace(after, interconnect="nvlink"), step, faster)
    return replace(found, **{end: min(getattr(found, end), getattr(most, end)) for end in _ENDS})


def _between_filled(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    before, after = _filled(before, after), _filled(after, before)
    law = _from_typical if step.exposed_ratio is None else _from_measured
    return law(before, after, step, faster)


def _filled(one: Layout, other: Layout) -> Layout:
    network = one.network_gbps or (other.network_gbps if other.machines > 1 else None)
    interconnect = one.interconnect or other.interconnect
    if (interconnect, network) == (one.interconnect, one.network_gbps):
        return one
    return replace(one, interconnect=interconnect, network_gbps=network)


def _from_typical(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the gain where communication was not measured: computed, or as benchmarks had it."""
    computing_s, start = _start(before, step)
    onward = replace(step, step_s=None if computing_s is None else computing_s / faster)
    end, basis_after = _with_parts(after, lambda layout: overhead(layout, onward))
    ratio = after.gpu_count / before.gpu_count
    mid = ratio * (1.0 + start.mid) / (1.0 + end.mid)
    # The same job scales alike before and after, so only the difference of the two is uncertain.
    ends = [
        ratio * (1.0 + start.bad) / (1.0 + end.bad),
        ratio * (1.0 + start.good) / (1.0 + end.good),
        mid,
    ]
    changes = list(zip(_slowness(before), _slowness(after), strict=True))
    if 1 not in (before.gpu_count, after.gpu_count):
        if any(there > here for here, there in changes):
            ends.append(ratio * (1.0 + start.mid) / (1.0 + end.bad))
        if any(there < here for here, there in changes):
            ends.append(ratio * (1.0 + start.bad) / (1.0 + end.mid))
    said = basis_after if after.gpu_count > 1 else overhead(before, step)[1]
    return Estimate(low=min(ends), mid=mid, high=max(ends), basis=said)


@lru_cache(maxsize=256)
def _start(before: Layout, step: ProfiledStep) -> tuple[float | None, Overhead]:
    """Return the computing of a profiled step, seconds, and the overhead that is the rest of it.

    Computed communication never exceeds the measured step less its measured computing; where that
    was not measured, it is no worse than benchmarks over such links had it.
    """
    step_s = step.step_s
    if step_s is None or before.gpu_count == 1:
        return step_s, _with_parts(before, lambda layout: overhead(layout, step))[0]
    usual = 1.0 + overhead(before)[0].bad
    least = max(step_s / usual, min(step_s, step.compute_s or 0.0))

    def at(compute_s: float) -> Overhead:
        here = replace(step, step_s=compute_s)
        return _with_parts(before, lambda layout: overhead(layout, here))[0]

    low, high = least, step_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle * (1.0 + at(middle).mid) > step_s:
            high = middle
        else:
            low = middle
    found, most = at(low), step_s / least - 1.0
    capped = (min(end, most) for end in (found.good, found.mid, found.bad))
    return low, Overhead(**dict(zip(("good", "mid", "bad"), capped, strict=True)))


def _from_measured(before: Layout, after: Layout, step: ProfiledStep, faster: float) -> Estimate:
    """Return the gain from the overhead measured on the profiled GPUs."""
    measured = step.exposed_ratio or 0.0
    end, basis = _with_parts(after, lambda layout: _grown(before, layout, step, faster))
    ratio = after.gpu_count / before.gpu_count
    most = ratio * (1.0 + measured)  # without any communication, which no end passes
    return Estimate(
        low=most / (1.0 + end.bad),
        mid=most / (1.0 + end.mid),
        high=most / (1.0 + end.good),
        basis=basis,
    )


def _grown(
    before: Layout, after: Layout, step: ProfiledStep, faster: float
) -> tuple[Overhead, str]:
    """Return the measured overhead on another layout: by the time of its links, and its compute.

    What was hidden behind compute is unknown, from nothing to all that backward can hide; a faster
    GPU and slower links hide less. The middle takes all communication to be exposed, as measured.
    """
    measured, change = step.exposed_ratio or 0.0, link_time(before, after)
    basis = f"communication measured on {before.gpu_count} GPUs, {_change_words(before, after)}"
    times = change.factor * faster
    hidden = _HIDES * (times / change.grown - 1.0)
    ends = sorted((measured * times, max(0.0, measured * times + hidden)))
    found = Overhead(good=ends[0], mid=measured * times, bad=ends[1])
    if not change.network_known:
        found = _after(found, typical_network(after.machines, fast=False))
    if change.worse:
        # What was all hidden over a fast link says little about a slow one.
        # A network no slower than the measured one needs no guess: only links inside are new.
        measured_net = before.machines > 1 and _gbps(after) >= _gbps(before)
        new = replace(after, gpu_count=after.inside, nodes=1) if measured_net else after
        known = overhead(new, replace(step, step_s=_computing_s(step, faster)))[0]
        found = Overhead(
            good=found.good, mid=max(found.mid, known.mid), bad=max(found.bad, known.mid, known.bad)
        )
    if (before.gpu_count, before.machines) != (after.gpu_count, after.machines):
        inside = before.machines == after.machines == 1
        name = "probe_factor" if inside else "probe_factor_nodes"
        factor = float(coefficients("scale")[name])
        found = Overhead(
            good=max(0.0, (1.0 + found.good) / factor - 1.0),
            mid=found.mid,
            bad=(1.0 + found.bad) * factor - 1.0,
        )
    return found, basis


def _gbps(layout: Layout) -> float:
    """Return the network's rate; an unknown one counts as what guides ask for."""
    return layout.network_gbps or NODE_NETWORK_GBPS


def _computing_s(step: ProfiledStep, faster: float) -> float | None:
    """Return the computing of a step on the wanted GPU, from a step with its communication."""
    if step.step_s is None:
        return None
    return step.step_s / (1.0 + (step.exposed_ratio or 0.0)) / faster


def _change_words(before: Layout, after: Layout) -> str:
    if after.gpu_count == 1:
        return "of which one has none"
    if _slowness(before) == _slowness(after) and before.gpu_name == after.gpu_name:
        return f"grown as a ring to {after.gpu_count}"
    return f"as the links of {after.gpu_count} others carry it"


def _slowness(layout: Layout) -> tuple[int, int, float]:
    """Return what carries the gradients, slower is more: class of links, machines, network."""
    link = BY_SPEED.index(link_class(layout.interconnect, layout.gpu_name))
    network = 1.0 / _gbps(layout) if layout.machines > 1 else 0.0
    return link, layout.machines, network


def _with_parts(layout: Layout, law: Law) -> tuple[Overhead, str]:
    """Return the overhead of a layout by a law, GPUs left out where they would only delay."""
    found, basis = law(layout)
    for part in _parts(layout):
        other, more = law(part)[0], layout.gpu_count / part.gpu_count
        found = Overhead(
            good=min(found.good, more * (1.0 + other.good) - 1.0),
            mid=min(found.mid, more * (1.0 + other.mid) - 1.0),
            bad=min(found.bad, more * (1.0 + other.bad) - 1.0),
        )
    return found, basis


def _parts(layout: Layout) -> Iterator[Layout]:
    """Yield fewer GPUs of the same machines: of each, of one alone, and of all but the last."""
    machines, inside = layout.machines, layout.inside
    for few in range(1, inside + (machines > 1)):
        yield replace(layout, gpu_count=few, nodes=1)
    for few in range(1, inside) if machines > 1 else ():
        yield replace(layout, gpu_count=few * machines, nodes=machines)
    if layout.nodes is None and machines > 1:
        yield replace(layout, gpu_count=GPUS_PER_NODE * (machines - 1), nodes=machines - 1)


def overhead(layout: Layout, step: ProfiledStep = UNKNOWN_STEP) -> tuple[Overhead, str]:
    """Return the overhead of a layout, and where it comes from; `step_s` is computing alone."""
    of_link = link_class(layout.interconnect, layout.gpu_name)
    usual = typical(of_link, layout.inside)
    inside, basis = usual, "how benchmarks of 1 to 8 GPUs scaled over such links"
    computed = _computed(layout, step, of_link)
    if computed is not None:
        # Known parts tell the middle; how well they are hidden is as uncertain as in benchmarks.
        geforce = of_link == "geforce"  # no peer-to-peer: never better than what is typical of it
        inside = Overhead(
            good=min(usual.good, computed.good),
            mid=max(computed.mid, usual.mid) if geforce else computed.mid,
            bad=max(computed.bad, usual.bad) if geforce else computed.bad,
        )
        basis = "gradients, step time and measured all-reduce times"
    if layout.machines == 1:
        return inside, basis
    between, said = _between(layout, step)
    return _after(inside, between), f"{basis}; {said}"


def _after(inside: Overhead, between: Overhead) -> Overhead:
    """Return the overhead inside machines with that of the network on top."""
    return Overhead(
        good=(1.0 + inside.good) * (1.0 + between.good) - 1.0,
        mid=(1.0 + inside.mid) * (1.0 + between.mid) - 1.0,
        bad=(1.0 + inside.bad) * (1.0 + between.bad) - 1.0,
    )


def _computed(layout: Layout, step: ProfiledStep, of_link: str) -> Overhead | None:
    """Return the overhead inside a machine from a known number of parameters; None without."""
    sizes, step_s = step.gradient_bytes, step.step_s
    gpu = find(layout.gpu_name)
    if sizes is None or step_s is None or gpu is None:
        return None
    if sizes[0] != sizes[2] or layout.inside == 1:
        return NOTHING if layout.inside == 1 else None
    time_s = typical_all_reduce_s(
        sizes[1], gpu.architecture, layout.inside, nvlink=of_link == "nvlink"
    )
    exposed = max(_LEAST_OVERHEAD, time_s / step_s - _HIDES)
    return Overhead(good=0.0, mid=exposed, bad=max(exposed, time_s / step_s + _LEAST_OVERHEAD))


def _between(layout: Layout, step: ProfiledStep) -> tuple[Overhead, str]:
    """Return the overhead of the network, computed where gradients, step and rate are known."""
    sizes, step_s, gbps = step.gradient_bytes, step.step_s, layout.network_gbps
    if sizes is None or step_s is None or gbps is None:
        fast = gbps is not None and gbps >= NODE_NETWORK_GBPS
        usual = typical_network(layout.machines, fast=fast)
        kind = "unknown" if gbps is None else "fast" if fast else "slow"
        return usual, f"how measured clusters with {kind} networks scaled"
    rate = gbps / 8.0 * 1e9
    ends = [
        combine(step_s, ring(layout.machines) * size / (rate * reached)) / step_s - 1.0
        for size, reached in zip(sizes, NETWORK_REACHED, strict=True)
    ]
    said = f"gradients over {gbps:g} Gbit/s, of which all-reduces reach 5 to 50 %"
    return Overhead(good=ends[0], mid=ends[1], bad=ends[2]), said
