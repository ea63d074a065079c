"""Simulated experiments: how often a false gain is "proved", a true one found, the interval right.

`make experiments` draws so many worlds without a gain and as many with +10 %.
In a world, steps hang together as an AR(1) of 0 to 0.8 with innovations that are normal or of heavy
tails; the run warms up, drifts (a line, a wave or a random walk), stalls now and then, and each
switch of the setting costs a few slow steps. Ours stands beside what people do instead.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.proof.experiment import (
    FEWEST_FOURS,
    FOUR,
    Conclusion,
    Design,
    conclude,
    gains_of_blocks,
    settings,
)
from planner.proof.speed import RUN_TO_RUN, StepRow, of_series, t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    Steps = NDArray[np.float64]

GAIN = 1.1
MOST_FALSE, LEAST_POWER, COVERAGE = 0.025, 0.8, (0.93, 0.97)
"""The bars: shares of worlds."""
_SEED = 20261122
_FEWEST = 20  # steps of a rule that looks again and again


def most_blocks(design: Design) -> int:
    """Return the blocks of the longest experiment."""
    return FOUR * design.most_fours


def block_of_step(design: Design, step: int) -> int | None:
    """Return the block that a step (from 0) belongs to; None before the first and after the last.

    The setting of a block holds from its first step, also in those that are left out.
    """
    block, _ = divmod(step - design.warmup_steps, design.block_steps)
    return block if 0 <= block < most_blocks(design) else None


def is_settled(design: Design, step: int) -> bool:
    """Return whether a step of a block counts."""
    return (step - design.warmup_steps) % design.block_steps >= design.settle_steps


def gains(design: Design, steps_s: Sequence[float]) -> tuple[float, ...]:
    """Return the log speed-up of each whole four of blocks.

    Args:
        design: of the experiment.
        steps_s: length of every step of the run, from its first, seconds; all above 0.
    """
    return gains_of_blocks(settings(design), _block_logs(design, steps_s))


def _block_logs(design: Design, steps_s: Sequence[float]) -> list[float]:
    """Return the log of the mean settled step of each block that is whole."""
    sums = [0.0] * most_blocks(design)
    for step in range(design.warmup_steps, len(steps_s)):
        block = block_of_step(design, step)
        if block is not None and is_settled(design, step):
            sums[block] += steps_s[step]
    whole = max(0, len(steps_s) - design.warmup_steps) // design.block_steps
    settled = design.block_steps - design.settle_steps
    return [math.log(total / settled) for total in sums[:whole]]


def experiment(design: Design, steps_s: Iterable[float]) -> Conclusion:
    """Return what a whole run tells; see `gains` and `conclude`."""
    return conclude(design, gains(design, tuple(steps_s)))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a machine does to the steps of a run; log times but for `switch_steps`.

    Attributes:
        hang: AR(1) coefficient of the steps.
        spread: standard deviation of a step.
        heavy: whether innovations have heavy tails (Student's t of 3 degrees), else normal.
        drift: `none`, `line`, `wave` or `walk`.
        stalls: probability that a step stalls, for 2 to 10 times its length.
        switch_steps: slow steps after each switch.
        warmup: how much slower the first step is; it falls off over 30 steps.
    """

    hang: float
    spread: float
    heavy: bool
    drift: str
    stalls: float
    switch_steps: int
    warmup: float


def draw_world(draw: Generator) -> World:
    """Return a world, each of its troubles drawn by itself."""
    return World(
        hang=float(draw.uniform(0.0, 0.8)),
        spread=float(draw.uniform(0.02, 0.3)),
        heavy=bool(draw.integers(2)),
        drift=str(draw.choice(["none", "line", "wave", "walk"])),
        stalls=float(draw.choice([0.0, 0.002])),
        switch_steps=int(draw.integers(0, 5)),
        warmup=float(draw.uniform(0.0, 1.5)),
    )


def draw_steps(world: World, design: Design, gain: float, draw: Generator) -> tuple[Steps, Steps]:
    """Return the step times of a run with the setting in turns, and of one without any switching.

    The second is what a run before and a run after are cut from.
    """
    n = design.warmup_steps + most_blocks(design) * design.block_steps
    logs = _hung(world, n, draw) + _drift(world, n, draw)
    logs += world.warmup * np.exp(-np.arange(n) / 30.0)
    stalled = draw.random(n) < world.stalls
    logs += np.where(stalled, np.log(draw.uniform(2.0, 10.0, n)), 0.0)
    plain = np.exp(logs)
    on = np.array(settings(design))
    at = np.arange(n - design.warmup_steps)
    effect = np.where(on[at // design.block_steps], -math.log(gain), 0.0)
    switched = np.diff(on.astype(int), prepend=1 - int(on[0])) != 0
    slow = (at % design.block_steps < world.switch_steps) & switched[at // design.block_steps]
    turns = logs.copy()
    turns[design.warmup_steps :] += effect + np.where(slow, math.log(2.0), 0.0)
    return np.exp(turns), plain


def _hung(world: World, n: int, draw: Generator) -> Steps:
    """Return an AR(1) of the world's spread."""
    noise = draw.standard_t(3, n) / math.sqrt(3.0) if world.heavy else draw.standard_normal(n)
    noise *= world.spread * math.sqrt(1.0 - world.hang**2)
    found, last = np.empty(n), 0.0
    hang = world.hang
    for i, one in enumerate(noise.tolist()):
        last = hang * last + one
        found[i] = last
    return found


def _drift(world: World, n: int, draw: Generator) -> Steps:
    """Return a drift of up to 20 % either way."""
    size, time = draw.uniform(-0.2, 0.2), np.linspace(0.0, 1.0, n)
    if world.drift == "line":
        return np.asarray(size * time)
    if world.drift == "wave":
        turns, phase = draw.uniform(0.5, 40.0), draw.uniform(0.0, 2.0 * math.pi)
        return np.asarray(size * np.sin(2.0 * math.pi * turns * time + phase))
    if world.drift == "walk":
        return np.cumsum(draw.standard_normal(n)) * abs(size) / math.sqrt(n)
    return np.zeros(n)


@dataclass(slots=True, kw_only=True)
class Count:
    """What one rule said of all worlds.

    Attributes:
        proved: worlds in which a gain was "proved".
        covered: worlds whose true gain lies in the interval.
        worlds: all.
        blocks: blocks of steps that were run.
    """

    proved: int = 0
    covered: int = 0
    worlds: int = 0
    blocks: int = 0

    def add(self, low: float, high: float, gain: float, blocks: int) -> None:
        """Count the interval of one world, in logs."""
        self.proved += low > 0.0
        self.covered += low <= math.log(gain) <= high
        self.worlds += 1
        self.blocks += blocks


def ours(design: Design, turns: Steps, _plain: Steps, _gain: float) -> tuple[float, float, int]:
    """Apply the rule of `planner.proof.experiment`."""
    found = conclude(design, gains(design, turns.tolist()))
    return math.log(found.speedup.low), math.log(found.speedup.high), FOUR * found.fours


def cut_by_steps(
    design: Design, turns: Steps, _plain: Steps, _gain: float
) -> tuple[float, float, int]:
    """Apply it where the program has a drawn number of steps, most often too few."""
    share = _of_the_room(design)
    return _cut(design, turns, round(share * (len(turns) - design.warmup_steps)))


def cut_by_time(
    design: Design, turns: Steps, plain: Steps, _gain: float
) -> tuple[float, float, int]:
    """Apply it where the program runs for a drawn time, so that a gain makes more steps."""
    most_s = _of_the_room(design) * float(plain[design.warmup_steps :].sum())
    steps = int(np.searchsorted(np.cumsum(turns[design.warmup_steps :]), most_s))
    return _cut(design, turns, steps)


def _of_the_room(design: Design) -> float:
    """Return the part of the longest experiment that a program lasts: 3 fours to all of them."""
    fewest = math.log(FEWEST_FOURS / design.most_fours)
    return math.exp(fewest * random.Random(design.seed + 10**9).random())  # noqa: S311 - no secret


def _cut(design: Design, turns: Steps, steps: int) -> tuple[float, float, int]:
    """Apply it to so many steps behind the warm-up, never to fewer than 3 fours."""
    steps = max(steps, FEWEST_FOURS * FOUR * design.block_steps)
    cut = turns[: design.warmup_steps + steps]
    found = conclude(design, gains(design, cut.tolist()), ended=True)
    return math.log(found.speedup.low), math.log(found.speedup.high), FOUR * found.fours


def pooled(design: Design, turns: Steps, _plain: Steps, _gain: float) -> tuple[float, float, int]:
    """Compare the means of all steps in the same blocks, t test."""
    on = np.repeat(settings(design), design.block_steps)
    steps = turns[design.warmup_steps :]
    return (*_t_test(steps[~on], steps[on]), most_blocks(design))


def in_two_runs(
    design: Design, _turns: Steps, plain: Steps, gain: float
) -> tuple[float, float, int]:
    """Compare the first half without the setting with the second half with it, t test."""
    half = len(plain) // 2
    return (*_t_test(plain[:half], plain[half:] / gain), most_blocks(design))


def verified(design: Design, _turns: Steps, plain: Steps, gain: float) -> tuple[float, float, int]:
    """Apply `planner.proof.speed` to the same two halves, as to two runs of rows of ten steps."""
    half = len(plain) // 20 * 10
    means = [of_series(_rows(steps)) for steps in (plain[:half], plain[half : 2 * half] / gain)]
    half_width = math.hypot(*(mean.log_error for mean in means), 1.96 * math.sqrt(2.0) * RUN_TO_RUN)
    middle = math.log(means[0].mean_s / means[1].mean_s)
    return middle - half_width, middle + half_width, most_blocks(design)


def _rows(steps: Steps) -> list[StepRow]:
    lengths = steps.reshape(-1, 10).mean(axis=1).tolist()[1:]
    return [StepRow(step=10 * at, n=10, step_s=length) for at, length in enumerate(lengths, 2)]


def peeking(design: Design, turns: Steps, _plain: Steps, _gain: float) -> tuple[float, float, int]:
    """Look after each of our own fours, from the pilot on; end at the first that proves."""
    found = np.array(gains(design, turns.tolist()))
    for fours in range(design.pilot_fours, len(found) + 1):
        known = found[:fours]
        half = t_quantile(0.975, fours - 1) * known.std(ddof=1) / math.sqrt(fours)
        low, high = float(known.mean() - half), float(known.mean() + half)
        if low > 0.0:
            break
    return low, high, FOUR * fours


def _t_test(off: Steps, on: Steps) -> tuple[float, float]:
    """Return the interval of the log of the ratio of two means, steps taken to be independent."""
    means = float(off.mean()), float(on.mean())
    error = math.hypot(*(s.std(ddof=1) / s.mean() / math.sqrt(len(s)) for s in (off, on)))
    middle = math.log(means[0] / means[1])
    return middle - 1.96 * error, middle + 1.96 * error


OURS = "ours: blocks in drawn order, planned from a pilot"
CUT = (
    "ours, where the program ends after a drawn number of steps",
    "ours, where the program ends after a drawn time",
)
VERIFY = "first without, then with; two runs of `gpucost verify`"
RULES = {
    OURS: ours,
    CUT[0]: cut_by_steps,
    CUT[1]: cut_by_time,
    VERIFY: verified,
    "the same blocks, looked at until it proves": peeking,
    "the same blocks, t test over all steps": pooled,
    "first without, then with; t test over all steps": in_two_runs,
}


def simulate(worlds: int, gain: float, rules: Iterable[str] = tuple(RULES)) -> dict[str, Count]:
    """Return what each rule says of so many worlds with a gain, and ours of each kind of world.

    A gain of 1 is none.
    """
    draw = np.random.default_rng([_SEED, round(1000 * gain)])
    counts: dict[str, Count] = defaultdict(Count)
    for number in range(worlds):
        design, world = Design(seed=number), draw_world(draw)
        turns, plain = draw_steps(world, design, gain, draw)
        for name in rules:
            low, high, blocks = RULES[name](design, turns, plain, gain)
            counts[name].add(low, high, gain, blocks)
            for kind in _kinds(world) if name == OURS else ():
                counts[kind].add(low, high, gain, blocks)
    return counts


def _kinds(world: World) -> tuple[str, ...]:
    """Return the kinds that a world is of."""
    hang = min(int(world.hang / 0.2) * 2, 6)
    return (
        f"steps hang together by 0.{hang} to 0.{hang + 2}",
        "heavy tails" if world.heavy else "normal tails",
        f"drift: {world.drift}",
        f"{'some' if world.stalls else 'no'} stalls",
        f"{world.switch_steps} slow steps a switch",
    )


def table(none: Mapping[str, Count], some: Mapping[str, Count]) -> str:
    """Return the comparison as markdown; see `missed`."""
    worlds = none[OURS].worlds
    lines = [
        f"{worlds} worlds without a gain, {worlds} with +{GAIN - 1:.0%}.",
        "",
        '| rule | false "proved" | found at +10 % | interval covers | mean blocks |',
        "|---|---:|---:|---:|---:|",
    ]
    kinds = sorted(none.keys() - RULES.keys())
    rows = [(name, name) for name in RULES] + [(f"ours, {kind}", kind) for kind in kinds]
    for shown, name in rows:
        zero, gained = none[name], some[name]
        covered = (zero.covered + gained.covered) / (zero.worlds + gained.worlds)
        lines.append(
            f"| {shown} | {zero.proved / zero.worlds:.1%} | {gained.proved / gained.worlds:.1%} "
            f"| {covered:.1%} | {gained.blocks / gained.worlds:.0f} |"
        )
    return "\n".join(lines)


def missed(none: Mapping[str, Count], some: Mapping[str, Count]) -> list[str]:
    """Return the bars that our rule misses, a sentence each.

    Power is asked of whole experiments alone: a program that ends early has what steps it has.

    Args:
        none: what was counted without a gain, by rule.
        some: what was counted at the gain.
    """
    said = []
    for name in (OURS, *CUT, VERIFY):
        zero, gained = none[name], some[name]
        false, power = zero.proved / zero.worlds, gained.proved / gained.worlds
        covered = (zero.covered + gained.covered) / (zero.worlds + gained.worlds)
        most_covered = 1.0 if name == VERIFY else COVERAGE[1]  # which allows for hosts that differ
        bars = (
            (false <= MOST_FALSE, f'false "proved" {false:.1%}'),
            (name != OURS or power >= LEAST_POWER, f"power {power:.1%}"),
            (COVERAGE[0] <= covered <= most_covered, f"coverage {covered:.1%}"),
        )
        said += [f"{name}: {what}" for held, what in bars if not held]
    return said


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    without, with_gain = simulate(asked, 1.0), simulate(asked, GAIN)
    sys.stdout.write(f"{table(without, with_gain)}\n")
    if found := missed(without, with_gain):
        sys.exit(f"missed: {'; '.join(found)}")
