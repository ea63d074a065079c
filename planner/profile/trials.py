"""What became of an action that a recipe asked for."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.profile.fields import (
    flag,
    fraction,
    integer,
    number,
    numbers,
    record,
    records,
    text,
    texts,
)
from planner.profile.kinds import OUTCOMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `gpucost run` made of one action of a recipe."""

    action: str | None = text("action code; `environment` for a variable that belongs to none")
    outcome: str | None = text("what became of it", choices=OUTCOMES)
    what: str | None = text("what was set, or why it was left")
    where: str | None = text("which loader, model or optimizer; null where it is the whole run")

    @property
    def sentence(self) -> str:
        """The change in words."""
        location = f" in {self.where}" if self.where else ""
        return f"{self.outcome} {self.action}{location}: {self.what}"


ENDED = ("planned", "no-room", "run-ended", "too-few", "lost")
KEPT = ("on", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """An operator of traced steps, or a place where none ran."""

    kind: str | None = text(
        "operator: its own time; idle: nothing ran", choices=("operator", "idle")
    )
    name: str | None = text("of the operator; of idle time what the host did, or what came next")
    count: int | None = integer("how often, in all traced steps")
    seconds: float | None = number("together, of all traced steps")

    def line(self, steps: int, all_s: float) -> str:
        """Return the row for people: its share, milliseconds and calls a step."""
        own_s, calls = self.seconds or 0.0, (self.count or 0) / steps
        figures = f"{own_s / all_s:9.1%} {own_s / steps * 1000:10.3g} {calls:6.3g}"
        return f"  {self.kind:8} {figures}  {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSteps:
    """Steps under the framework's own profiler, which makes them longer."""

    steps: int | None = integer("how many", low=1)
    seconds: float | None = number("together")
    device: str | None = text("what the times are of", choices=("gpu", "cpu"))
    idle_s: float | None = number("of it nothing ran there, seconds")
    rows: tuple[TraceRow, ...] = records(TraceRow, "operators, then idle times, largest first")

    @property
    def table(self) -> tuple[str, ...]:
        """The rows as lines for people, below a heading."""
        steps, seconds = self.steps or 1, self.seconds or 1.0
        head = (
            f"trace: {steps} steps under PyTorch's profiler, {seconds / steps * 1000:.3g} ms each; "
            f"the {(self.device or '').upper()} ran no operator for "
            f"{(self.idle_s or 0.0) / seconds:.0%} of it"
        )
        names = f"  {'':8} {'of a step':>9} {'ms a step':>10} {'calls':>6}  name"
        return (head, names, *(row.line(steps, seconds) for row in self.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedInTurns:
    """A designed experiment within one run: blocks of steps with the settings on and off."""

    actions: tuple[str, ...] = texts("action codes that were switched together")
    ended: str | None = text(
        "planned: by the pilot; no-room for so many; with the run; too-few to say; a setting lost",
        choices=ENDED,
    )
    low: float | None = number("speed-up of on over off, low end of its 95 % interval", above=0.0)
    mid: float | None = number("speed-up of on over off, as measured", above=0.0)
    high: float | None = number("speed-up of on over off, high end of the interval", above=0.0)
    smallest: float | None = number("least speed-up that would be found in 4 of 5 runs", above=0.0)
    on_s: float | None = number("mean step with the settings on, seconds", above=0.0)
    off_s: float | None = number("mean step with them off, seconds", above=0.0)
    fours: int | None = integer("fours of blocks that the interval rests on")
    planned_fours: int | None = integer("fours that the pilot asked for")
    block_steps: int | None = integer("steps a block", low=1)
    settle_steps: int | None = integer("of them left out, as the switch is in them")
    first_step: int | None = integer("first step of the first block", low=1)
    why: str | None = text("why a setting was lost meanwhile")
    kept: str | None = text("what stayed afterwards; null where the run ended", choices=KEPT)

    @property
    def is_known(self) -> bool:
        """Whether it says anything of the gain."""
        return None not in (self.low, self.mid, self.high)

    @property
    def basis(self) -> str:
        """How the interval was found, in words."""
        counted = (self.block_steps or 0) - (self.settle_steps or 0)
        labels = {
            "planned": "as many as the pilot's spread asked for",
            "no-room": f"the pilot asked for {self.planned_fours}, more than there is room for",
            "run-ended": "until the run ended",
        }
        return (
            f"95 % interval: {', '.join(self.actions)} on and off in turns within one run, "
            f"{self.fours} fours of blocks in drawn order ({labels.get(str(self.ended), '')}), "
            f"{counted} steps a block counted and {self.settle_steps} after each switch left out; "
            "Student's t over the fours"
        )

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        changes = ", ".join(self.actions) or "nothing"
        if self.ended == "lost":
            return f"experiment: {changes}: no result, for a setting was lost meanwhile: {self.why}"
        if self.low is None or self.mid is None or self.high is None:
            return (
                f"experiment: {changes}: {self.fours or 0} whole fours of blocks, and 3 are the "
                "fewest that say anything: run longer"
            )
        return (
            f"experiment: {changes}: {self.mid:.3g}x ({self.low:.3g}-{self.high:.3g}x, 95 % "
            f"interval), measured in {self.fours} fours of blocks within this run"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsSeen:
    """Settings that were tried on and off in turns.

    Attributes:
        actions: codes that were switched together.
        block_steps: steps a block.
        settle_steps: of them left out, the first.
        first_step: of the first block.
        pilot_fours: from which the number of the rest is planned.
        most_fours: for which there is room.
        blocks: whether it was on, steps that count, their seconds; of each whole block in order.
        kept: whether it stayed on in the end; None where the run ended before.
        lost: why a setting went off for good before the end; None where none did.
    """

    actions: tuple[str, ...]
    block_steps: int
    settle_steps: int
    first_step: int
    pilot_fours: int
    most_fours: int
    blocks: tuple[tuple[bool, int, float], ...]
    kept: bool | None = None
    lost: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A measured latency: of requests, of first tokens, of the tokens that follow."""

    mean: float | None = number("milliseconds")
    p50: float | None = number("milliseconds")
    p95: float | None = number("milliseconds")
    p99: float | None = number("milliseconds")
    bounds: tuple[float, ...] = numbers(
        "milliseconds: of the histogram's buckets that hold the percentiles; empty: no histogram",
        counts=tuple(range(7)),
    )

    @classmethod
    def of(cls, figures: Mapping[str, float], bounds: tuple[float, ...] = ()) -> "Latency":
        """Return a latency of milliseconds by name: mean, p50, p95, p99."""
        mean, p50, p95, p99 = (figures.get(name) for name in ("mean", "p50", "p95", "p99"))
        return cls(mean=mean, p50=p50, p95=p95, p99=p99, bounds=bounds)

    def bucket(self, value: float) -> tuple[float, float]:
        """Return between what a percentile may lie: the bounds of its bucket."""
        if not self.bounds:
            return value, value
        low = max((bound for bound in self.bounds if bound < value), default=0.0)
        return low, min((bound for bound in self.bounds if bound >= value), default=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many copies of an inference job run."""

    now: int | None = integer("copies running now", low=0, default=1)
    min: int | None = integer("fewest copies wanted")
    peak: int | None = integer("most copies seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What an inference server reports of its queue, cache and tokens, means over the window."""

    model: str | None = text("the language model that is served, as Hugging Face names it")
    kv_cache_fraction: float | None = fraction("share of the KV cache in use")
    requests_running: float | None = number("requests in the batch")
    requests_waiting: float | None = number("requests that wait for the batch")
    preemptions_per_s: float | None = number("requests thrown out of the batch for memory")
    prompt_tokens_per_s: float | None = number("tokens of prompts taken in")
    generated_tokens_per_s: float | None = number("tokens given out")
    failures_per_s: float | None = number("requests that failed")
    all_at_once: bool | None = flag("whether a benchmark sent every request at the start")
    queue_ms: Latency | None = record(Latency, "how long a request waits for the batch")
    first_token_ms: Latency | None = record(Latency, "from a request to its first token")
    token_ms: Latency | None = record(Latency, "from one token to the next")

    @property
    def makes_tokens(self) -> bool:
        """Whether a language model answers: servers of other models have none of these figures."""
        of_tokens = (self.kv_cache_fraction, self.generated_tokens_per_s, self.token_ms)
        return bool(self.model) or any(figure is not None for figure in of_tokens)
