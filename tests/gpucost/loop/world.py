"""A world for loops: a job whose runs are written instead of run, and machines to rent."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpucost.cli import run
from gpucost.jobs.results import PROFILE, RESULTS
from gpucost.loop.loop_steps import LoopStep, RentedRun
from pricing.errors import InterruptedByUserError
from tests.gpucost.documents import training
from tests.planner.proof.runs import series

STEP_S = 0.2


@dataclass
class World:
    """What the steps of a loop meet.

    Attributes:
        faster: how many times as fast a run is that sets this action.
        fails: exit code by step; taken away once it has happened.
        interrupts: steps in which Ctrl-C comes, once each.
        away: how many times as fast a run on a rented machine is.
        rented: launches so far.
        taken: names of the steps in order.
        in_turns: whether settings are switched within the run, of each that tries some here.
        profile: changes what is measured before.
    """

    faster: dict[str, float] = field(default_factory=dict)
    fails: dict[str, int] = field(default_factory=dict)
    interrupts: list[str] = field(default_factory=list)
    away: float = 1.0
    rented: list[RentedRun] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    in_turns: list[bool] = field(default_factory=list)
    profile: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document

    def take(self, step: LoopStep) -> int:
        """Take a step: plan and verify are real, what runs the job is not."""
        name, *words = step.words
        self.taken.append(name)
        if name in self.interrupts:
            self.interrupts.remove(name)
            raise InterruptedByUserError("interrupted")
        if name in self.fails:
            return self.fails.pop(name)
        if name in ("plan", "verify"):
            return run(step.words)
        if name == "logs":
            self._ends()
            return 0
        if name == "provision":
            self._launch(step, words)
            return 0
        if name == "run":
            self.in_turns.append("--ab" in words)
        target = Path(words[words.index("-o") + 1])
        self._measure(target, self._times(words) if name == "run" else 1.0)
        return 0

    def _times(self, words: list[str]) -> float:
        recipe = json.loads(Path(words[words.index("--recipe") + 1]).read_text(encoding="utf-8"))
        times = 1.0
        for one in recipe["actions"]:
            times *= self.faster.get(one["code"], 1.0)
        return times

    def _measure(self, target: Path, times: float, **hardware: Any) -> None:
        document = self.profile(starved())
        document["hardware"] |= hardware
        document["step"] = {
            key: value / times if key.endswith("_s") else value
            for key, value in document["step"].items()
        }
        document["series"] = {"steps": f"{target.stem}.steps.jsonl"}
        target.write_text(json.dumps(document), encoding="utf-8")
        rows = series(document["step"]["mean_s"], seed=len(target.name))
        text = "".join(f'{{"step": {r.step}, "n": {r.n}, "step_s": {r.step_s}}}\n' for r in rows)
        (target.parent / f"{target.stem}.steps.jsonl").write_text(text, encoding="utf-8")

    def _launch(self, step: LoopStep, words: list[str]) -> None:
        assert step.cwd is not None
        plan = json.loads((step.cwd / words[0]).read_text(encoding="utf-8"))
        named = words[words.index("--option") + 1].partition("/")[2]
        (offer,) = (o["offer"] for o in plan["jobs"][0]["options"] if o["id"] == named)
        place = {name: offer[name] for name in ("provider", "instance_type", "region", "gpu")}
        self._measure(_results(step.cwd), self.away, **place)
        self.rented.append(ended("run-1", Decimal("1.5")))

    def _ends(self) -> None:
        self.rented = [ended(one.run, one.usd) for one in self.rented]
        self._measure(_results(Path("gpucost-loop")), self.away)


def _results(folder: Path) -> Path:
    """Return where the profile of the one launch comes to."""
    target = folder / RESULTS / "run-1" / PROFILE
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def ended(name: str, usd: Decimal) -> RentedRun:
    """Return a launch that is over."""
    return RentedRun(run=name, is_open=False, usd=usd, launched_nothing=False)


def starved() -> dict[str, Any]:
    """Return a training job on a T4 whose steps wait for their data on an idle CPU."""
    document = training()
    document["job"] |= {"framework": "pytorch"}
    document["step"] = {
        "count": 4000,
        "counted_by": "optimizer",
        "mean_s": STEP_S,
        "p50_s": 0.198,
        "p95_s": 0.23,
        "data_wait_s": 0.14,
        "compute_s": 0.06,
    }
    document["host"] = {"cpu_util": {"mean": 0.1, "p95": 0.12}}
    document["gpus"][0]["metrics"]["util.kernel_time"] = {"mean": 0.3, "p50": 0.3, "max": 0.34}
    return document
