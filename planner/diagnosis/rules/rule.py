"""What a rule and a finding are, the shares of the bill and the conditions that rules share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from planner.profile.frameworks import LEARNING, OTHER
from planner.signals.condition import Signals, Test, is_, unless_known
from planner.signals.finding import Certainty, Severity
from planner.signals.thresholds import (
    BUSY,
    COMMUNICATION,
    COPIES,
    CPU,
    CPU_FULL,
    DATA_WAIT,
    FAST_READS_MIB_S,
    FILLED,
    IDLE,
    LINK_FULL,
    LOW,
    POWER,
    SM,
    STEP_SHARE,
    VIDEO,
    WORK_POWER,
)

Pool = Literal["idle", "busy", "outside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """A share of the bill.

    Attributes:
        pool: the time it is taken from, so that two causes never claim the same second; `outside`
            is before the steps that the statistics are of.
        share: the share of the whole bill, 0-1, from the signals; None where unknown.
        words: how it is worked out.
    """

    pool: Pool
    share: Callable[[Signals], float | None]
    words: str


def number(signals: Signals, name: str) -> float | None:
    """Return a signal as a number; None where it is unknown."""
    value = signals[name]
    return value if isinstance(value, float | int) else None


def _unbusy(signals: Signals) -> float | None:
    busy = number(signals, BUSY)
    return None if busy is None else 1.0 - busy


def _unfilled(signals: Signals) -> float | None:
    busy, sm = number(signals, BUSY), number(signals, SM)
    return None if busy is None or sm is None else max(0.0, busy - sm)


def _uneven(signals: Signals) -> float | None:
    mean, most = number(signals, BUSY), number(signals, "util.kernel_time.most")
    return None if mean is None or not most else max(0.0, 1.0 - mean / most)


def step_share(name: str) -> Waste:
    """Return the waste of a timed part of every step in which no kernel runs."""
    return Waste(pool="idle", share=lambda s: number(s, name), words=f"{name} of every step")


def _behind(signals: Signals) -> float | None:
    """Return the share of GPU time that waits for the slowest rank."""
    behind, gpus = number(signals, "ranks.behind"), number(signals, "hardware.gpu_count")
    return None if behind is None or not gpus else behind * (gpus - 1.0) / gpus


def of_busy(factor: float) -> Waste:
    """Return the waste of kernels that could run `factor` times faster."""

    def share(signals: Signals) -> float | None:
        busy = number(signals, BUSY)
        return None if busy is None else busy * (1.0 - 1.0 / factor)

    return Waste(pool="busy", share=share, words=f"busy time x (1 - 1/{factor:g})")


WAITING = Waste(pool="idle", share=_unbusy, words="time in which the GPU ran no kernel")
UNFILLED = Waste(pool="busy", share=_unfilled, words="busy time less SM-active time")
UNEVEN = Waste(pool="idle", share=_uneven, words="1 - mean use / use of the busiest GPU")
SPINNING = Waste(
    pool="busy", share=lambda s: number(s, BUSY), words="time in which kernels ran and did nothing"
)
# Collectives are kernels: a GPU that waits in one reads as busy.
COMMUNICATING = Waste(
    pool="busy", share=lambda s: number(s, COMMUNICATION), words=f"{COMMUNICATION} of every step"
)
# So does one that waits for another rank.
BEHIND = Waste(pool="busy", share=_behind, words="ranks.behind x (GPUs - 1) / GPUs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way to recognise a cause: all tests hold.

    Attributes:
        confidence: how sure the tests make it.
        cause: one sentence for a person.
        tests: what must hold.
        waste: the share of the bill at stake; None where nobody can know.
        severity: used where nothing is wasted; the rule's when None.
        actions: what helps in this case, best first; the rule's when None.
        names: the group of places (`planner.signals.program_places`) whose line the finding
            names, where the program was looked at.
    """

    confidence: Certainty
    cause: str
    tests: tuple[Test, ...]
    waste: Waste | None = None
    severity: Severity | None = None
    actions: tuple[str, ...] | None = None
    names: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A finding code: how it is recognised, what helps, and why we believe it.

    Attributes:
        code: the finding code.
        meaning: one sentence for `gpucost explain`.
        cases: tried in order; the first whose tests all hold makes the finding.
        actions: what helps, best first.
        against: readings that would speak against the cause; shown where they hold.
        severity: used where the waste is unknown or nothing is wasted.
        source: where the rule comes from.
    """

    code: str
    meaning: str
    cases: tuple[Case, ...]
    actions: tuple[str, ...] = ()
    against: tuple[Test, ...] = ()
    severity: Severity = "info"
    source: str


def _of(*families: str) -> Test:
    return Test(signal="job.family", op="in", limit=families, or_unknown=True, quiet=True)


# Programs that train networks or run them, and those that read a set of data as they go.
NEURAL = _of(*LEARNING, "server")
FED = _of(*LEARNING, "server", "boosting", "video", OTHER)
NO_VIDEO = unless_known(VIDEO, "<", IDLE)
NOT_AT_WORK = (
    unless_known("util.dram_active.mean", "<", LOW),
    unless_known("util.tensor_active.mean", "<", 0.3),
    unless_known(POWER, "<", WORK_POWER),
    NO_VIDEO,
)
NOT_STARVED = (unless_known(DATA_WAIT, "<", STEP_SHARE), unless_known(COPIES, "<", STEP_SHARE))
HOST_KEEPS_UP = (unless_known(CPU, "<", CPU_FULL), *NOT_STARVED)
LINKS_QUIET = (
    unless_known("host.disk_read_mib_s.mean", "<", FAST_READS_MIB_S),
    unless_known("host.net_rx_mib_s.mean", "<", FAST_READS_MIB_S),
    unless_known("io.pcie_rx_fraction", "<", LINK_FULL),
)
# Readings of real work that speak against waste of the GPU itself.
WORK_SHOWN = (
    is_(SM, ">=", FILLED),
    is_("util.tensor_active.mean", ">=", 0.3),
    is_(POWER, ">=", WORK_POWER),
)
