"""One large machine or many small ones: what the same work costs on every size a provider sells.

For one provider and GPU: 1, 2, 4 and 8 GPUs in one machine, eight machines of one GPU over the
network, and two machines of eight. A machine with n times the GPUs at n times the price breaks even
only where n GPUs do n times the work: the break-even efficiency beside the expected one says which.
"""

from dataclasses import dataclass
from decimal import Decimal

from planner.choice.baseline import bill_of_work, gpu_memory_gib
from planner.choice.context import JobContext
from planner.models.estimate import Estimate, divide
from planner.prediction.layout import GPUS_PER_NODE, Layout
from planner.signals.thresholds import NODE_NETWORK_GBPS, USABLE
from pricing.catalog.offer import Offer
from pricing.message import Message, join


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSize:
    """One way to get so many GPUs from one provider.

    Attributes:
        offer: the machine.
        count: machines.
        gpus: GPUs in all.
        hours: of the period, for the same work.
        cost: the expected bill, exact.
        cost_low: at the low end of the hours.
        cost_high: at the high end.
        break_even: scaling efficiency against one GPU at which it costs as much as one GPU; None
            for the one-GPU machine.
        efficiency: the expected one, as a range.
        remark: what to watch.
    """

    offer: Offer
    count: int
    gpus: int
    hours: Estimate
    cost: Decimal
    cost_low: Decimal
    cost_high: Decimal
    break_even: float | None
    efficiency: Estimate
    remark: str


def machine_sizes(context: JobContext, offer: Offer | None) -> tuple[MachineSize, ...]:
    """Return the sizes of the offer's provider, GPU and purchase; empty where only one is sold.

    Training that its kernels limit only: other jobs do not spread over GPUs by themselves.
    """
    if offer is None or not context.profile.job.kind.trains or context.parts.kernels < 1.0:
        return ()  # what waits for data or launches does not scale with GPUs
    machines = _machines(context, offer)
    single = machines.get(1)
    if single is None or len(machines) == 1:
        return ()
    wanted = [(machines[n], 1) for n in sorted(machines)]
    wanted.append((single, GPUS_PER_NODE))
    if GPUS_PER_NODE in machines:
        wanted.append((machines[GPUS_PER_NODE], 2))
    return tuple(_size(context, machine, count, single) for machine, count in wanted)


def _machines(context: JobContext, offer: Offer) -> dict[int, Offer]:
    """Return the cheapest machine of each number of GPUs that the provider sells alike."""
    if context.memory_gib is not None and context.memory_gib > USABLE * gpu_memory_gib(offer):
        return {}
    found: dict[int, Offer] = {}
    for other in context.market.sold_alike(offer):
        count = round(other.gpu_count)
        if other.gpu_count < 1 or count > GPUS_PER_NODE or other.is_community:
            continue
        if count not in found or other.usd_per_hour < found[count].usd_per_hour:
            found[count] = other
    return found


def _size(context: JobContext, machine: Offer, count: int, single: Offer) -> MachineSize:
    gpus = round(machine.gpu_count) * count
    target = Layout.of(machine, count)
    speed = context.speed(target, ())
    hours = divide(context.work.hours.mid, speed, speed.basis)
    low, mid, high = (
        bill_of_work(machine, count, h, context.work, context.catalog).exact
        for h in (hours.low, hours.mid, hours.high)
    )
    ratio = machine.usd_per_hour * count / (single.usd_per_hour * gpus)
    return MachineSize(
        offer=machine,
        count=count,
        gpus=gpus,
        hours=hours,
        cost=mid,
        cost_low=low,
        cost_high=high,
        break_even=float(ratio) if gpus > 1 else None,
        efficiency=_per_gpu(context.scaling(target), context.scaling(Layout.of(single)), gpus),
        remark=_remark(machine, count),
    )


def _per_gpu(many: Estimate, one: Estimate, gpus: int) -> Estimate:
    """Return the throughput a GPU over that of one alone; the wider of the two is its width."""
    mid = many.mid / one.mid / gpus
    return Estimate(
        low=mid * min(many.low / many.mid, one.mid / one.high),
        mid=mid,
        high=mid * max(many.high / many.mid, one.mid / one.low),
        basis=many.basis,
    )


def _remark(machine: Offer, count: int) -> str:
    said: list[str] = []
    if count > 1:
        network = machine.network_gbps
        if network is None:
            said.append(Message("size.network-unknown"))
        elif network < NODE_NETWORK_GBPS:
            said.append(Message("size.network", gbit=network, wanted=NODE_NETWORK_GBPS))
    elif machine.gpu_count > 1 and machine.interconnect:
        said.append(machine.interconnect)
    if machine.included_transfer_gib:
        gib = machine.included_transfer_gib * count
        said.append(Message("size.included", gib=gib))
    return join(said, "phrases")
