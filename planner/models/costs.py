"""Shares of a bill: what a change saves and takes, what an amount of work costs, a team pays."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

from planner.models.document import Number
from pricing.money import Amount


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """What is paid less than before.

    Attributes:
        usd: dollars, exact; below 0 where it costs more; None where one of the bills is unknown.
        fraction: of the bill before, to four digits; None where that is unknown or nothing.
    """

    usd: Amount | None
    fraction: Number | None = None


def saving(before: Decimal | None, after: Decimal, *, of_nothing: float | None = None) -> Saving:
    """Return what is saved by paying `after` in place of `before`; None where that is unknown.

    `of_nothing` is the share of a bill of nothing.
    """
    if before is None:
        return Saving(usd=None, fraction=None)
    saves = before - after
    return Saving(usd=saves, fraction=round(float(saves / before), 4) if before else of_nothing)


class UsdRange(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars of the period at the ends of one cause of doubt.

    Attributes:
        low: least [USD].
        high: most [USD].
    """

    low: Amount
    high: Amount


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What moving the data costs once, and takes; None where unknown, or it never pays back.

    Attributes:
        once_usd: for the data that leave today's provider.
        hours: at the stated bandwidth [h].
        pays_back_days: until the saving has paid for it.
    """

    once_usd: Amount | None
    hours: Number | None
    pays_back_days: Number | None


class Benefit(msgspec.Struct, frozen=True, kw_only=True):
    """What a change is worth over the horizon.

    Attributes:
        net_usd: what is left of the saving; None where today's cost is unknown.
        periods: how many of the plan's periods the horizon holds.
        saves_usd: today's cost less the option's at its high end, over them.
        effort_hours: engineering time, our estimate.
        effort_usd: at the engineer's rate.
        moving_usd: once; None where it is unknown.
        pays_back_periods: after how many periods the expected saving has paid for work and move;
            a move of unknown cost is not in it. None where nothing is saved, or the plan does not
            say.
    """

    net_usd: Amount | None
    periods: Amount
    saves_usd: Amount | None
    effort_hours: Number
    effort_usd: Amount
    moving_usd: Amount | None
    pays_back_periods: Number | None = None


_LEAST_UNITS = 1e-6  # less is not an amount of work that has a price
_LARGE_UNITS = ((1_000_000, "1M "), (1_000, "1k "), (1, ""))


class WorkCost(msgspec.Struct, frozen=True, kw_only=True):
    """What an amount of work costs.

    Attributes:
        unit: the amount, such as `1M image`.
        mid: expected [USD].
    """

    unit: str
    mid: Amount


def work_cost(cost: Decimal | None, units: float | None, unit: str | None) -> WorkCost | None:
    """Return what a readable amount of work costs; None where cost or work is unknown.

    Args:
        cost: of the period.
        units: work of the period.
        unit: what is counted, such as `image`.
    """
    if cost is None or unit is None or not units or units < _LEAST_UNITS:
        return None
    size, prefix = next((s, p) for s, p in _LARGE_UNITS if units >= s or s == 1)
    return WorkCost(unit=f"{prefix}{unit}", mid=cost * size / Decimal(str(units)))


Label = Literal["team", "owner", "cost_center"]


class TeamShare(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of one label cost; dollars of the period, in cents that add up.

    Attributes:
        by: which label: one of LABELS.
        name: its value; None: the jobs without one.
        jobs: by name.
        gpu_hours: held in the period.
        idle_gpu_hours: of them idle, of the jobs whose GPU use was measured.
        held: False for what no job holds of machines of several jobs: free GPUs, and hours of jobs
            that have ended while others go on. It is all idle.
        usd: today's bill; the sum of the next five.
        work_usd: machines while the GPU is busy.
        idle_usd: machines while it is idle.
        sharing_usd: what no job holds, in plans of versions that had no row for it; else 0.
        unmeasured_usd: machines of jobs whose GPU use nobody measured.
        data_usd: disks, snapshots and traffic.
        recommended_usd: after what is recommended; a GPU that jobs share is split by their
            bills of today.
    """

    by: Label
    name: str | None
    held: bool = True
    jobs: tuple[str, ...]
    gpu_hours: Number
    idle_gpu_hours: Number
    usd: Amount
    work_usd: Amount
    idle_usd: Amount
    sharing_usd: Amount = Decimal(0)
    unmeasured_usd: Amount
    data_usd: Amount
    recommended_usd: Amount


class BillUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the bill of several jobs is for; dollars of the period.

    Attributes:
        gpus: that are paid.
        busy_fraction: share of their hours in which kernels run, of those that are measured, 0-1;
            None where none is.
        work_usd: GPUs while they are busy.
        idle_usd: GPUs that jobs hold, while they are idle.
        free_usd: GPUs that no job holds.
        idle_by_job: the second, by job.
    """

    gpus: Number
    busy_fraction: Number | None
    work_usd: Amount
    idle_usd: Amount
    free_usd: Amount
    idle_by_job: Mapping[str, Amount]

    @property
    def wasted_usd(self) -> Decimal:
        """Dollars of GPUs that idle or that nobody holds."""
        return self.idle_usd + self.free_usd
