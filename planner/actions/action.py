"""What an action is: what it changes, what that gains and costs, how sure that is, how it is done.

`read_actions` reads all of them from actions.toml, one entry each.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Literal

import msgspec

from planner.models.estimate import Estimate, exactly
from planner.signals.condition import Signals, Test, parse_test
from pricing.message import Message, join

Part = Literal["input", "host", "kernels"]
Class = Literal["safe", "numeric", "structural"]
Mechanism = Literal["loading", "copying", "launching", "checkpointing", "arithmetic", "exchange"]
# `measured`: on published data that we evaluated; `published`: by others; `computed`: from the
# profile by a law; `estimate`: ours, in part at least; `planned`: the plan works it out offer by
# offer; `unknown`: no source that we would pass on.
Grade = Literal["measured", "published", "computed", "estimate", "planned", "unknown"]
Range = tuple[float, float, float]
FRAMEWORKS = ("pytorch", "lightning", "transformers", "accelerate", "keras", "jax")
_WAYS = frozenset(("words", "frameworks", "programs", "environment", "launcher"))

PART_OF: dict[Mechanism, Part] = {
    "loading": "input",
    "copying": "input",
    "launching": "host",
    "checkpointing": "host",
    "arithmetic": "kernels",
    "exchange": "kernels",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InFramework:
    """How a framework does an action.

    Attributes:
        line: what to write, or that it is done already; empty where only settings are known.
        sets: its configuration: name of a setting -> value with `{name}` for a setting of ours, or
            the value by what such a setting is: `{"dtype=bf16": "true"}`.
        source: where the line comes from, where the action's source does not say it.
    """

    line: str = ""
    source: str = ""
    sets: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to change.

    Attributes:
        code: the action code.
        kind: `safe` leaves results unchanged, `numeric` may change them, `structural` chooses a
            machine.
        mechanism: what it makes faster; actions on one mechanism overlap. None where its gain is
            not modelled.
        effect: speed-up of that mechanism (low, mid, high); None where unknown.
        share: share of its part of the time that the mechanism takes, 0-1.
        grade: what the effect rests on.
        source: where the effect comes from, or who works it out.
        memory: factor on GPU memory (least, typical, most); None where it changes none or is
            unknown.
        effort_hours: engineering time, our own estimate; 0 for a switch.
        host_memory: whether it takes more memory of the host: nothing for one that runs out.
        when: what must hold for it to apply; a reading that is missing does not stop it.
        needs: what must be known before an option counts on it; without it, it is only listed.
        excludes: actions that make no sense beside it.
        remark: what to watch.
        aims: what people want to improve that it serves, keys of `TOPICS` in docs/code_pages.py.
        settings: what it sets whatever the job; what depends on it is in settings.py.
        stays: whether it mends today's machine, and means nothing on another.
        in_process: whether the probe applies it in the program's own process.
        in_turns: whether it can be tried on and off within one run.
        by: `launcher` where the environment or the launcher does it, `code` where the program
            changes, `machine` where another machine is rented or this one is set up.
        environment: variables to set; `{name}` stands for the setting of that name, and without
            it the variable is left out. As PyTorch, NCCL and Hugging Face document them.
        launcher: what the launcher is told.
        frameworks: by each of `FRAMEWORKS` that has its own way.
        programs: by each program, or family of programs, that has its own way; names of words.toml.
        words: how it is done elsewhere, or how to find out whether it worked.
    """

    code: str
    kind: Class = "safe"
    mechanism: Mechanism | None = None
    effect: Range | None = None
    share: float = 1.0
    grade: Grade = "unknown"
    source: str = ""
    memory: Range | None = None
    effort_hours: float = 0.0
    host_memory: bool = False
    when: tuple[Test, ...] = ()
    needs: tuple[Test, ...] = ()
    excludes: tuple[str, ...] = ()
    remark: str = ""
    aims: tuple[str, ...] = ()
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    stays: bool = False
    in_process: bool = False
    in_turns: bool = False
    by: Literal["launcher", "code", "machine"]
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher: Mapping[str, str] = field(default_factory=dict)
    frameworks: Mapping[str, InFramework] = field(default_factory=dict)
    programs: Mapping[str, InFramework] = field(default_factory=dict)
    words: str = ""

    @property
    def title(self) -> Message:
        """What to do, in a few words."""
        return Message(f"action.{self.code}")

    @property
    def part(self) -> Part | None:
        """The part of the time that it speeds up; None where its gain is not modelled."""
        return None if self.mechanism is None else PART_OF[self.mechanism]

    @property
    def estimate(self) -> Estimate | None:
        """The effect as an estimate of the speed-up of its mechanism."""
        if self.effect is None:
            return None
        low, mid, high = self.effect
        return Estimate(
            low=low,
            mid=mid,
            high=high,
            basis=Message("action.basis", code=self.code, source=self.source),
        )

    @property
    def gain(self) -> Range | None:
        """The speed-up of its part of the time (low, mid, high), by Amdahl's law."""
        if self.effect is None:
            return None
        low, mid, high = (1.0 / (1.0 - self.share + self.share / f) for f in self.effect)
        return (low, mid, high)

    @property
    def lines(self) -> dict[str, str]:
        """What to write in each framework that has its own way."""
        return {name: way.line for name, way in self.frameworks.items() if way.line}

    def line_for(self, signals: Signals) -> str:
        """Return what to write in a job's own program; empty where nothing is known of it."""
        names = map(str, (signals["job.program"], signals["job.family"]))
        return next((self.programs[name].line for name in names if name in self.programs), "")

    def is_proved(self, signals: Signals) -> bool:
        """Return whether all that an option must know of the job to count on it is known."""
        return all(test.holds(signals) for test in self.needs)

    def applies(self, signals: Signals) -> bool:
        """Return whether nothing that was measured stands against it."""
        for test in self.when:  # noqa: SIM110 - asked very often, and half as fast with `all`
            if not test.holds(signals):
                return False
        return True


_HOST_MEMORY_LASTS = (
    "host.ram_growth_gib_per_h < LEAK_GIB_PER_H or unknown",
    "host.ram_fraction.max < FULL_MEMORY or unknown",
    "where job.ended in gpu-out-of-memory|gpu-out-of-memory-likely|failed or unknown",
)
_UNCHANGED = exactly(1.0, Message("action.unchanged"))


def combined(actions: Iterable[Action], part: Part) -> Estimate:
    """Return the speed-up of one part of the time by all actions on it, whatever their order."""
    best: dict[Mechanism, Action] = {}
    for action in actions:
        if (
            action.mechanism is None
            or action.effect is None
            or action.part != part
            or not action.share
        ):
            continue
        strongest = best.get(action.mechanism)
        if strongest is None or _strength(action) > _strength(strongest):
            best[action.mechanism] = action
    if not best:
        return _UNCHANGED
    chosen = sorted(best.values(), key=lambda action: action.code)
    low, mid, high = (
        _speed([(a.share, a.effect[i]) for a in chosen if a.effect]) for i in range(3)
    )
    basis = join(a.estimate.basis for a in chosen if a.estimate)
    return Estimate(low=low, mid=mid, high=high, basis=basis)


def compatible(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions without those that an earlier one excludes."""
    chosen: list[Action] = []
    for action in actions:
        if not any(action.code in k.excludes or k.code in action.excludes for k in chosen):
            chosen.append(action)
    return tuple(chosen)


def _strength(action: Action) -> tuple[float, float, float, str]:
    low, mid, high = action.gain or (1.0, 1.0, 1.0)
    return (mid, high, low, action.code)


def _speed(parts: list[tuple[float, float]]) -> float:
    untouched = 1.0 - sum(share for share, _ in parts)
    return 1.0 / (untouched + sum(share / factor for share, factor in parts))


def read_actions() -> Iterator[Action]:
    """Yield every action, in the order of actions.toml."""
    text = files(__package__).joinpath("actions.toml").read_text("utf-8")
    for code, fields in tomllib.loads(text).items():
        yield _action(code, **fields)


def _action(
    code: str, *, when: Iterable[str] = (), needs: Iterable[str] = (), **fields: object
) -> Action:
    if misspelled := fields.keys() - Action.__dataclass_fields__.keys():
        raise TypeError(f"actions.toml, {code}: no such field: {', '.join(sorted(misspelled))}")
    if not fields.keys() & _WAYS:
        raise TypeError(f"actions.toml, {code}: say how it is done: {', '.join(sorted(_WAYS))}")
    try:
        holds = _HOST_MEMORY_LASTS if fields.get("host_memory") else ()
        tests = {"when": [*map(parse_test, (*when, *holds))], "needs": [*map(parse_test, needs)]}
        return msgspec.convert({**fields, "code": code, **tests}, Action)
    except ValueError as error:
        raise TypeError(f"actions.toml, {code}: {error}") from None
