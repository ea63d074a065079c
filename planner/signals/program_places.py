"""Signals of where a program spends its time: what was seen at its lines, its stalls, its ranks."""

from collections.abc import Callable, Collection
from statistics import median

from planner.profile.kinds import WORK
from planner.profile.model import Profile, Wait
from planner.profile.source import at_work
from planner.signals.condition import FRACTION, Signal, named
from planner.signals.thresholds import FEWEST_READINGS, IDLE, LONG_PAUSE_S, LOW
from pricing.message import Message, join

# Groups of what a thread does: (work, phases in which it counts; None where nothing stepped).
_STEPPING = (None, "steady")
_GROUPS: dict[str, tuple[frozenset[str], tuple[str | None, ...]]] = {
    "input": (frozenset(("input",)), (None, "steady", "stall", "evaluation")),
    "host": (frozenset(("host", "network", "logging", "sleep", "thread")), _STEPPING),
    "python": (frozenset(("host",)), _STEPPING),
    "logging": (frozenset(("logging",)), _STEPPING),
    "network": (frozenset(("network",)), _STEPPING),
    "lock": (frozenset(("lock",)), _STEPPING),
    "device": (frozenset(("device",)), _STEPPING),
    "evaluation": (frozenset(WORK), ("evaluation",)),
    "model": (frozenset(("model", "compile")), _STEPPING),
    "save": (frozenset(("save",)), (None, "steady", "stall", "evaluation")),
    "stall": (frozenset(("host", "network", "logging", "sleep", "thread", "save")), ("stall",)),
}
# What functions are called that let the model in training write its own samples.
_GENERATES = ("generate", "rollout", "sample_completions")
_FOR_OTHERS = frozenset(("network", "sleep", "thread"))
# The phases of a recording between the first step and the last.
_LONGEST_START_S = 7200.0  # data sets and weights are loaded, and models compiled, by then
_ACTIVE = ("steady", "stall", "evaluation", "checkpoint")


def _of(profile: Profile, group: str) -> list[Wait]:
    work, phases = _GROUPS[group]
    if profile.job.kind.answers:
        work -= _FOR_OTHERS  # it waits for requests: nothing holds it up
    return [wait for wait in profile.waits if wait.doing in work and wait.phase in phases]


def waiting_share(group: str) -> Callable[[Profile], float | None]:
    """Return the signal of the share of time that a group takes; None if not measured."""

    def signal(profile: Profile) -> float | None:
        if not profile.waits:
            return None
        # A wait that was timed is for data, whatever the line is seen to do meanwhile.
        top = 1.0 if group == "input" else 1.0 - _waited(profile)
        if profile.job.kind.answers and group in ("host", "python"):
            # A service that uses no core waits for requests, by whatever call.
            cores = cores_used(profile)
            top = top if cores is None else min(top, cores)
        return min(top, sum(wait.time_fraction or 0.0 for wait in _of(profile, group)))

    return signal


def cores_used(profile: Profile) -> float | None:
    """Return CPU use in cores: about 1.0 on a many-core host is single-threaded code."""
    cpu, cores = profile.cpu_fraction, profile.hardware.cpu_cores
    return None if cpu is None or cores is None else cpu * cores


def _waited(profile: Profile) -> float:
    step = profile.step
    if step is None or not step.mean_s:
        return 0.0
    return min(1.0, (step.data_wait_s or 0.0) / step.mean_s)


def _most(profile: Profile, group: str) -> tuple[str, float] | None:
    """Return the place of a group with the most time, and its share."""
    shares: dict[str, float] = {}
    for wait in _of(profile, group):
        if wait.place:
            shares[wait.place] = shares.get(wait.place, 0.0) + (wait.time_fraction or 0.0)
    return max(sorted(shares.items()), key=lambda item: item[1], default=None)


def place(group: str) -> Callable[[Profile], Message | None]:
    """Return the signal of the sentence that names the place that takes most of a group's time."""

    def signal(profile: Profile) -> Message | None:
        if (top := _most(profile, group)) is None:
            return None
        line, share = top
        waits = [wait for wait in _of(profile, group) if wait.place == line]
        lows, highs = ([getattr(wait, end) for wait in waits] for end in ("low", "high"))
        if None in lows or None in highs:
            return Message("cause.place", place=line, share=share)
        low, high = min(1.0, sum(lows)), min(1.0, sum(highs))
        return Message("cause.place-range", place=line, share=share, low=low, high=high)

    return signal


def _active_s(profile: Profile) -> float:
    return sum(phase.total_s or 0.0 for phase in profile.phases if phase.kind in _ACTIVE)


def stalled(profile: Profile) -> float | None:
    """Return the share of the time of the steps that stalls take, those for input left out."""
    whole_s = _active_s(profile)
    if profile.step is None or profile.step.stalls is None or whole_s <= 0:
        return None
    share = sum(phase.total_s or 0.0 for phase in profile.phases if phase.kind == "stall") / whole_s
    return share * (1.0 - (_of_stalls(profile, ("input",)) or 0.0))


def stalled_for_others(profile: Profile) -> float | None:
    """Return the share of the stalls in which the program itself does nothing: it waits."""
    return _of_stalls(profile, _FOR_OTHERS)


def _of_stalls(profile: Profile, work: Collection[str]) -> float | None:
    """Return the share of the time in stalls in which such work was seen; None where none was."""
    stalls = [(w.doing, w.time_fraction or 0.0) for w in profile.waits if w.phase == "stall"]
    total = sum(share for _, share in stalls)
    return sum(share for doing, share in stalls if doing in work) / total if total else None


def evaluation_waits(profile: Profile) -> float | None:
    """Return the share of the time in which evaluation waits for its input."""
    whole_s = _active_s(profile)
    waits = [phase.data_wait_s for phase in profile.phases if phase.kind == "evaluation"]
    waits_s = [wait for wait in waits if wait is not None]
    return min(1.0, sum(waits_s) / whole_s) if waits_s and whole_s > 0 else None


def evaluation_share(profile: Profile) -> float | None:
    """Return the share of the time from the first step to the last that evaluation takes."""
    whole_s = _active_s(profile)
    seconds = [phase.total_s or 0.0 for phase in profile.phases if phase.kind == "evaluation"]
    return sum(seconds) / whole_s if seconds and whole_s > 0 else None


def evaluation_busy(profile: Profile) -> float | None:
    """Return the share of the time in which evaluation keeps the GPU busy."""
    share, load = evaluation_share(profile), _evaluation_load(profile)
    return share if share is None or load is None else share * load


def _evaluation_load(profile: Profile) -> float | None:
    loads = (phase.kernel_time for phase in profile.phases if phase.kind == "evaluation")
    return next((load for load in loads if load is not None), None)


def evaluation_idle(profile: Profile) -> float | None:
    """Return the share of the time in which the GPU waits while the program evaluates."""
    share, load = evaluation_share(profile), _evaluation_load(profile)
    return None if share is None or load is None else share * (1.0 - load)


def started(profile: Profile) -> float | None:
    """Return the share of the recording before the first step; None where nothing stepped."""
    stepped = profile.step is not None and (profile.step.count or 0) > 1
    stepped = stepped or any(phase.kind == "steady" for phase in profile.phases)
    shares = [phase.time_fraction or 0.0 for phase in profile.phases if phase.kind == "start-up"]
    return sum(shares) if stepped and shares else None


def start_up_alone(profile: Profile) -> float | None:
    """Return start-up's share of a recording in which too little work follows to judge that.

    None where it is less than half, where as many steps were counted as a mean needs, where work
    follows for longer than a usual pause takes, or where nothing does: then nobody saw a start.
    """
    window, step = profile.window, profile.step
    share = sum(p.time_fraction or 0.0 for p in profile.phases if p.kind == "start-up")
    counted = (step and step.count) or 0
    if window is None or share < LOW or counted >= FEWEST_READINGS:
        return None
    after_s = (1.0 - share) * window.recorded_s
    return share if (window.interval_s or 0.0) < after_s < LONG_PAUSE_S else None


def preparing(profile: Profile) -> float | None:
    """Return the share of the recording in which data is prepared and the GPU waits meanwhile."""
    read = [p for p in profile.phases if p.kind == "data-preparation" and p.kernel_time is not None]
    return sum((p.time_fraction or 0.0) * (1.0 - (p.kernel_time or 0.0)) for p in read) or None


def starts(profile: Profile) -> float | None:
    """Return how often the recorded program started; None where no start was seen."""
    counts = [phase.count or 1 for phase in profile.phases if phase.kind == "start-up"]
    return float(sum(counts)) if counts else None


def early_share(profile: Profile) -> float | None:
    """Return the share of the recording that slow first steps took over the later ones' length."""
    step = profile.step
    whole_s = sum(phase.total_s or 0.0 for phase in profile.phases)
    if step is None or step.early_count is None or not step.mean_s or whole_s <= 0:
        return None
    return min(1.0, step.early_count * ((step.early_s or 0.0) - step.mean_s) / whole_s)


_UNUSED = 0.01  # of the time; nobody starts work there
_USED = 0.5


def _by_gpu(profile: Profile, slot: str) -> list[tuple[float, str]]:
    """Return a reading of each GPU that has it, with the index of the GPU."""
    readings = [(gpu.metrics.get(slot), gpu.index, n) for n, gpu in enumerate(profile.gpus)]
    typical = [(reading.typical, index, n) for reading, index, n in readings if reading]
    return [(v, str(n if index is None else index)) for v, index, n in typical if v is not None]


def _unused(profile: Profile) -> list[str]:
    """Return the GPUs on which nothing ran, by index, where another one of the job works."""
    means = _by_gpu(profile, "util.kernel_time")
    busiest = max(means, default=(0.0, ""))[0]
    if busiest >= _USED:
        return [index for mean, index in means if mean < _UNUSED]
    works = busiest >= IDLE or at_work(profile) is not profile  # it holds memory for its bursts
    return [index for mean, index in means if not mean and works]


def unused_gpus(profile: Profile) -> Message | None:
    """Return which GPUs are not used, and how busy the others are."""
    unused = _unused(profile)
    working = len(profile.gpus) - len(unused)
    if not unused or not working:
        return None
    busy = sum(mean for mean, _ in _by_gpu(profile, "util.kernel_time")) / working
    return Message("cause.unused-gpus", names=", ".join(unused), others=working, busy=busy)


def unused_share(profile: Profile) -> float | None:
    """Return the part of the job's GPUs that is not used, 0-1."""
    return len(_unused(profile)) / len(profile.gpus) if profile.gpus else None


def unequal_gpus(profile: Profile) -> Message | None:
    """Return which GPU works the least, and how busy it and the busiest one are."""
    means = _by_gpu(profile, "util.kernel_time")
    if len(means) < 2:  # noqa: PLR2004 - one is not unequal
        return None
    (busy, gpu), (busiest, _) = min(means), max(means)
    return Message("cause.idlest-gpu", gpu=gpu, busy=busy, busiest=busiest)


def clock_behind(profile: Profile) -> float | None:
    """Return by what share the clock of the slowest GPU is below that of the fastest one."""
    clocks = _by_gpu(profile, "clock.sm_mhz")
    return 1.0 - min(clocks)[0] / max(clocks)[0] if len(clocks) > 1 and max(clocks)[0] else None


def slow_clock(profile: Profile) -> Message | None:
    """Return which GPU runs the slowest, and at what clock the fastest one runs."""
    if not clock_behind(profile):
        return None
    clocks = _by_gpu(profile, "clock.sm_mhz")
    (mhz, gpu), (fastest_mhz, _) = min(clocks), max(clocks)
    return Message("cause.slow-clock", gpu=gpu, mhz=mhz, fastest_mhz=fastest_mhz)


def rank_behind(profile: Profile) -> float | None:
    """Return by how much of its time the slowest rank does more of its own than the others.

    Ranks step together, so each step is as long for all: those that have less to do wait.
    """
    own = sorted(rank.own_fraction for rank in profile.ranks if rank.own_fraction is not None)
    return own[-1] - median(own[:-1]) if len(own) > 1 else None


def slowest_rank(profile: Profile) -> str | None:
    """Return which rank that is, and where its time goes."""
    timed = [rank for rank in profile.ranks if rank.own_fraction is not None]
    if len(timed) < 2:  # noqa: PLR2004 - one is not slower than others
        return None
    slowest = max(timed, key=lambda rank: rank.own_fraction or 0.0)
    where = slowest.place or Message("cause.own-code")
    share = slowest.own_fraction or 0.0
    return Message("cause.slowest-rank-sentence", rank=str(slowest.rank), share=share, place=where)


def failing(profile: Profile) -> tuple[Message, ...]:
    """Return what fails of GPUs and links, and has no cure but another host."""
    return tuple(dict.fromkeys(fault.sentence for fault in profile.health if fault.is_failing))


def faults(profile: Profile) -> Message | None:
    """Return the sentence that names what fails."""
    return Message("cause.faults", faults=join(failing(profile))) if failing(profile) else None


def idle_phases(profile: Profile) -> float | None:
    """Return the share of the time in which nothing ran on the GPU, by its phases; None without.

    Of the recording; without what is idle before and after the job, where that is long.
    """
    idle = [phase for phase in profile.phases if phase.kind == "idle"]
    share = sum(phase.time_fraction or 0.0 for phase in idle)
    if profile.idle_around_fraction and profile.window is not None:
        idle_s = sum(phase.total_s or 0.0 for phase in idle) - idle_after_s(profile)
        share = min(1.0, max(0.0, idle_s) / (profile.window.duration_s or 1.0))
    return share if profile.phases else None


def pauses(profile: Profile) -> tuple[float, int]:
    """Return the seconds of all idle phases within the job's time, and their number."""
    idle = [phase for phase in profile.phases if phase.kind == "idle"]
    total_s, count = sum(p.total_s or 0.0 for p in idle), sum(p.count or 0 for p in idle)
    after_s = idle_after_s(profile)
    return (max(0.0, total_s - after_s), count - 1) if after_s > 0.0 else (total_s, count)


def busy_between(profile: Profile) -> float | None:
    """Return how busy the busiest GPU is outside of pauses, 0-1; None where that was not read."""
    return next((p.kernel_time for p in profile.phases if p.kind == "steady"), None)


def hung(profile: Profile) -> float | None:
    """Return the share of the recording in which kernels only spun; None where none was seen."""
    return sum(p.time_fraction or 0.0 for p in profile.phases if p.kind == "hang") or None


def idle_after_s(profile: Profile) -> float:
    """Return how much of the idle phases lies after the job, s; 0 where it is short."""
    window = profile.window if profile.idle_around_fraction else None
    return (window.idle_after_s or 0.0) if window is not None else 0.0


def quiet_start(profile: Profile) -> float | None:
    """Return the share of what was recorded in which nothing ran yet, where work follows in time.

    None where nothing ran for longer than a start takes, or also after the job.
    """
    window, share = profile.window, profile.idle_around_fraction
    is_start = window is not None and (window.idle_before_s or 0.0) <= _LONGEST_START_S
    return share or None if is_start and idle_after_s(profile) < LONG_PAUSE_S else None


_HOURS_SHOWN = 3.0  # shorter recordings are told in minutes


def idle_hours(profile: Profile) -> Message | None:
    """Return the sentence that says how long that is, of how much that was recorded."""
    share, window = profile.idle_around_fraction, profile.window
    if not share or window is None:
        return None
    idle_h = window.idle_around_s / 3600.0
    if idle_h < share * _HOURS_SHOWN:
        return Message("cause.idle-minutes", idle=60.0 * idle_h, whole=60.0 * idle_h / share)
    return Message("cause.idle-hours", idle=idle_h, whole=idle_h / share)


def has_guessed_times(profile: Profile) -> bool:
    """Return whether nothing says how far apart the rows of its recording were taken."""
    notes = (note for note in profile.provenance.notes if isinstance(note, Message))
    guess = Message("doubt.step-guessed")
    return any(n.code == "doubt.no-times" and n.params["step"] == guess for n in notes)


def generation_share(profile: Profile) -> float | None:
    """Return the share of the time that training spends generating its own samples."""
    top = _most(profile, "model") if profile.job.kind.trains else None
    if top is None:
        return None
    return top[1] if any(word in top[0].lower() for word in _GENERATES) else 0.0


SIGNALS: dict[str, Signal] = {
    **named(
        {
            "evaluation.data_wait": evaluation_waits,
            "evaluation.share": evaluation_share,
            "evaluation.busy": evaluation_busy,
            "evaluation.idle": evaluation_idle,
            "start-up.share": started,
            "preparation.idle": preparing,
            "start-up.count": starts,
            "step.early_share": early_share,
            "stalls.share": stalled,
            "stalls.for_others": stalled_for_others,
            "ranks.behind": rank_behind,
            "gpus.unused": unused_gpus,
            "gpus.unused_share": unused_share,
            "gpus.unequal": unequal_gpus,
            "ranks.slowest": slowest_rank,
            "clock.behind": clock_behind,
            "clock.slowest": slow_clock,
            "health.problems": lambda p: float(len(failing(p))),
            "health.grave": lambda p: float(sum(fault.is_grave for fault in p.health)),
            "health.worst": faults,
            "window.idle_around": lambda p: p.idle_around_fraction or None,
            "window.quiet_start": quiet_start,
            "window.idle_hours": idle_hours,
            "phases.idle": idle_phases,
            "phases.hang": hung,
            "generation.share": generation_share,
        }
    ),
    **{
        f"waits.{group}": Signal(waiting_share(group), f"time seen in {group}", FRACTION)
        for group in _GROUPS
    },
    **{f"waits.{group}.place": Signal(place(group), f"line of {group}") for group in _GROUPS},
}
