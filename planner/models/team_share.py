"""What the jobs of one team, owner or cost centre cost."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Label = Literal["team", "owner", "cost_center"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamShare:
    """What the jobs of one label cost; dollars of the period, in cents that add up.

    Attributes:
        by: which label: one of LABELS.
        name: its value; None: the jobs without one.
        jobs: by name.
        gpu_hours: held in the period.
        idle_gpu_hours: of them idle, of the jobs whose GPU use was measured.
        usd: today's bill; the sum of the next five.
        work_usd: machines while the GPU is busy.
        idle_usd: machines while it is idle.
        sharing_usd: what a machine costs beside its jobs' own GPUs and hours: GPUs that no job
            holds, and hours of jobs that have ended while others go on.
        unmeasured_usd: machines of jobs whose GPU use nobody measured.
        data_usd: disks, snapshots and traffic.
        recommended_usd: after what is recommended; a GPU that jobs share is split by their
            bills of today.
    """

    by: Label
    name: str | None
    jobs: tuple[str, ...]
    gpu_hours: float
    idle_gpu_hours: float
    usd: Decimal
    work_usd: Decimal
    idle_usd: Decimal
    sharing_usd: Decimal = Decimal(0)
    unmeasured_usd: Decimal
    data_usd: Decimal
    recommended_usd: Decimal
