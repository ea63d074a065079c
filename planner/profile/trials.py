"""What became of an action that a recipe asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from planner.profile import fields
from planner.profile.kinds import OUTCOMES


class Change(fields.Record, frozen=True, kw_only=True):
    """What `gpucost run` made of one action of a recipe.

    Attributes:
        action: action code; `environment` for a variable that belongs to none.
        outcome: what became of it.
        what: what was set, or why it was left.
        where: which loader, model or optimizer; null where it is the whole run.
    """

    action: str | None = None
    outcome: Annotated[str, fields.one_of(OUTCOMES)] | None = None
    what: str | None = None
    where: str | None = None

    @property
    def sentence(self) -> str:
        """The change in words."""
        location = f" in {self.where}" if self.where else ""
        return f"{self.outcome} {self.action}{location}: {self.what}"


ENDED = ("planned", "no-room", "run-ended", "too-few", "lost")
KEPT = ("on", "off")


class TraceRow(fields.Record, frozen=True, kw_only=True):
    """An operator of traced steps, or a place where none ran.

    Attributes:
        kind: operator: its own time; idle: nothing ran.
        name: of the operator; of idle time what the host did, or what came next.
        count: how often, in all traced steps.
        seconds: together, of all traced steps.
    """

    kind: Annotated[str, fields.one_of(("operator", "idle"))] | None = None
    name: str | None = None
    count: fields.Count | None = None
    seconds: fields.Measure | None = None

    def line(self, steps: int, all_s: float) -> str:
        """Return the row for people: its share, milliseconds and calls a step."""
        own_s, calls = self.seconds or 0.0, (self.count or 0) / steps
        figures = f"{own_s / all_s:9.1%} {own_s / steps * 1000:10.3g} {calls:6.3g}"
        return f"  {self.kind:8} {figures}  {self.name}"


class TracedSteps(fields.Record, frozen=True, kw_only=True):
    """Steps under the framework's own profiler, which makes them longer.

    Attributes:
        steps: how many.
        seconds: together.
        device: what the times are of.
        idle_s: of it nothing ran there, seconds.
        rows: operators, then idle times, largest first.
    """

    steps: fields.AtLeastOne | None = None
    seconds: fields.Measure | None = None
    device: Annotated[str, fields.one_of(("gpu", "cpu"))] | None = None
    idle_s: fields.Measure | None = None
    rows: fields.Several[TraceRow] = ()

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


class TriedInTurns(fields.Record, frozen=True, kw_only=True):
    """A designed experiment within one run: blocks of steps with the settings on and off.

    Attributes:
        actions: action codes that were switched together.
        ended: planned: by the pilot; no-room for so many; with the run; too-few to say; a setting
            lost.
        low: speed-up of on over off, low end of its 95 % interval.
        mid: speed-up of on over off, as measured.
        high: speed-up of on over off, high end of the interval.
        smallest: least speed-up that would be found in 4 of 5 runs.
        on_s: mean step with the settings on, seconds.
        off_s: mean step with them off, seconds.
        fours: fours of blocks that the interval rests on.
        planned_fours: fours that the pilot asked for.
        block_steps: steps a block.
        settle_steps: of them left out, as the switch is in them.
        first_step: first step of the first block.
        why: why a setting was lost meanwhile.
        kept: what stayed afterwards; null where the run ended.
    """

    actions: tuple[str, ...] = ()
    ended: Annotated[str, fields.one_of(ENDED)] | None = None
    low: fields.Positive | None = None
    mid: fields.Positive | None = None
    high: fields.Positive | None = None
    smallest: fields.Positive | None = None
    on_s: fields.Positive | None = None
    off_s: fields.Positive | None = None
    fours: fields.Count | None = None
    planned_fours: fields.Count | None = None
    block_steps: fields.AtLeastOne | None = None
    settle_steps: fields.Count | None = None
    first_step: fields.AtLeastOne | None = None
    why: str | None = None
    kept: Annotated[str, fields.one_of(KEPT)] | None = None

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


class Latency(fields.Record, frozen=True, kw_only=True):
    """A measured latency: of requests, of first tokens, of the tokens that follow.

    Attributes:
        mean: milliseconds.
        p50: milliseconds.
        p95: milliseconds.
        p99: milliseconds.
        bounds: milliseconds: of the histogram's buckets that hold the percentiles; empty: no
            histogram.
    """

    mean: fields.Measure | None = None
    p50: fields.Measure | None = None
    p95: fields.Measure | None = None
    p99: fields.Measure | None = None
    bounds: Annotated[tuple[fields.Measure, ...], Meta(max_length=6)] = ()

    @classmethod
    def of(cls, figures: Mapping[str, float], bounds: fields.Several[float] = ()) -> "Latency":
        """Return a latency of milliseconds by name: mean, p50, p95, p99."""
        mean, p50, p95, p99 = (figures.get(name) for name in ("mean", "p50", "p95", "p99"))
        return cls(mean=mean, p50=p50, p95=p95, p99=p99, bounds=bounds)

    @property
    def strictest(self) -> tuple[float, float] | None:
        """The strictest percentile that was measured, and its milliseconds."""
        pairs = ((99.0, self.p99), (95.0, self.p95), (50.0, self.p50))
        return next(((percent, ms) for percent, ms in pairs if ms), None)

    def bucket(self, value: float) -> tuple[float, float]:
        """Return between what a percentile may lie: the bounds of its bucket."""
        if not self.bounds:
            return value, value
        low = max((bound for bound in self.bounds if bound < value), default=0.0)
        return low, min((bound for bound in self.bounds if bound >= value), default=value)


class Replicas(fields.Record, frozen=True, kw_only=True):
    """How many copies of an inference job run.

    Attributes:
        now: copies running now.
        min: fewest copies wanted.
        peak: most copies seen.
    """

    now: fields.Count | None = 1
    min: fields.Count | None = None
    peak: fields.Count | None = None


class Serving(fields.Record, frozen=True, kw_only=True):
    """What an inference server reports of its queue, cache and tokens, means over the window.

    Attributes:
        model: the language model that is served, as Hugging Face names it.
        kv_cache_fraction: share of the KV cache in use.
        requests_running: requests in the batch.
        requests_waiting: requests that wait for the batch.
        preemptions_per_s: requests thrown out of the batch for memory.
        prompt_tokens_per_s: tokens of prompts taken in.
        generated_tokens_per_s: tokens given out.
        failures_per_s: requests that failed.
        all_at_once: whether a benchmark sent every request at the start.
        queue_ms: how long a request waits for the batch.
        first_token_ms: from a request to its first token.
        token_ms: from one token to the next.
    """

    model: str | None = None
    kv_cache_fraction: fields.Fraction | None = None
    requests_running: fields.Measure | None = None
    requests_waiting: fields.Measure | None = None
    preemptions_per_s: fields.Measure | None = None
    prompt_tokens_per_s: fields.Measure | None = None
    generated_tokens_per_s: fields.Measure | None = None
    failures_per_s: fields.Measure | None = None
    all_at_once: bool | None = None
    queue_ms: Latency | None = None
    first_token_ms: Latency | None = None
    token_ms: Latency | None = None

    @property
    def makes_tokens(self) -> bool:
        """Whether a language model answers: servers of other models have none of these figures."""
        of_tokens = (self.kv_cache_fraction, self.generated_tokens_per_s, self.token_ms)
        return bool(self.model) or any(figure is not None for figure in of_tokens)
