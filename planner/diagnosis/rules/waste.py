"""The shares of the bill that the rule tables name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from planner.signals.condition import Signals
from planner.signals.thresholds import BUSY, COMMUNICATION, SM

Pool = Literal["idle", "busy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """A share of the bill.

    Attributes:
        pool: the time it is taken from, so that two causes never claim the same second.
        share: the share of the whole bill, 0-1, from the signals; None where unknown.
        words: how it is worked out.
    """

    pool: Pool
    share: Callable[[Signals], float | None]
    words: str


def _number(signals: Signals, name: str) -> float | None:
    value = signals[name]
    return value if isinstance(value, float | int) else None


def _unbusy(signals: Signals) -> float | None:
    busy = _number(signals, BUSY)
    return None if busy is None else 1.0 - busy


def _unfilled(signals: Signals) -> float | None:
    busy, sm = _number(signals, BUSY), _number(signals, SM)
    return None if busy is None or sm is None else max(0.0, busy - sm)


def _uneven(signals: Signals) -> float | None:
    mean, most = _number(signals, BUSY), _number(signals, "util.kernel_time.most")
    return None if mean is None or not most else max(0.0, 1.0 - mean / most)


def step_share(name: str) -> Waste:
    """Return the waste of a timed part of every step in which no kernel runs."""
    return Waste(pool="idle", share=lambda s: _number(s, name), words=f"{name} of every step")


def _behind(signals: Signals) -> float | None:
    """Return the share of GPU time that waits for the slowest rank."""
    behind, gpus = _number(signals, "ranks.behind"), _number(signals, "hardware.gpu_count")
    return None if behind is None or not gpus else behind * (gpus - 1.0) / gpus


def of_busy(factor: float) -> Waste:
    """Return the waste of kernels that could run `factor` times faster."""

    def share(signals: Signals) -> float | None:
        busy = _number(signals, BUSY)
        return None if busy is None else busy * (1.0 - 1.0 / factor)

    return Waste(pool="busy", share=share, words=f"busy time x (1 - 1/{factor:g})")


WAITING = Waste(pool="idle", share=_unbusy, words="time in which the GPU ran no kernel")


UNFILLED = Waste(pool="busy", share=_unfilled, words="busy time less SM-active time")


UNEVEN = Waste(pool="idle", share=_uneven, words="1 - mean use / use of the busiest GPU")


SPINNING = Waste(
    pool="busy", share=lambda s: _number(s, BUSY), words="time in which kernels ran and did nothing"
)


# Collectives are kernels: a GPU that waits in one reads as busy.
COMMUNICATING = Waste(
    pool="busy", share=lambda s: _number(s, COMMUNICATION), words=f"{COMMUNICATION} of every step"
)


# So does one that waits for another rank.
BEHIND = Waste(pool="busy", share=_behind, words="ranks.behind x (GPUs - 1) / GPUs")
