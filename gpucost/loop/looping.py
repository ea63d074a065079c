"""Takes a loop from wherever it is to its end: each step is written down once it is done."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from gpucost.files.plan_file import load_plan
from gpucost.files.writing import write_file
from gpucost.loop.choosing import Means, NextExperiment, next_experiment, only_job
from gpucost.loop.loop_record import HERE, LoopRecord, Round, read_record, write_record
from gpucost.loop.loop_steps import (
    AFTER,
    BEFORE,
    PLAN,
    PROOF,
    RECIPE,
    LoopRequest,
    LoopStep,
    RentedRun,
    TakeStep,
    plan_step,
    profile_step,
    rented,
    try_step,
    verify_step,
)
from gpucost.machines.state import confirm
from gpucost.profiling.run_files import read_run
from gpucost.profiling.run_request import surroundings
from gpucost.views.output import Output, Table, print_json, print_table
from planner.documents.application import SWITCHED
from planner.plan_document.jobs import Effect
from planner.profile.model import Profile
from planner.signals.compute_share import others_work
from pricing.errors import GpucostError, InputError, RefusedError
from pricing.money import EXACT, plain, show

if TYPE_CHECKING:
    from gpucost.loop.loop_record import LoopRecord
    from planner.profile.model import Profile

# A rented machine gets half as long again as the job took before, and an hour to come up, to
# fetch code and data and to bring results back: our choice, --ttl says otherwise.
_LONGER = 1.5
_AROUND_S = 3600
_MINUTE_S = 60
_SHOWN_FROM_S = 120
# 60 to warm up and three fours of the longest blocks: 16 workers that read 4 batches ahead each.
_STEPS_FOR_TURNS = 2200


class LoopStepFailedError(GpucostError):
    """A step ended with another code than 0; it is the loop's, too."""

    def __init__(self, step: LoopStep, code: int) -> None:
        super().__init__(
            f"the loop stops: this step ended with {code}; the same command tries it again: "
            f"{step.text}"
        )
        self.exit_code = code if code > 0 else 128 - code


@dataclass(slots=True)
class Loop:
    """A loop under way.

    Attributes:
        asked: for what.
        output: where it is told.
        run: runs a step.
        record: what is done.
    """

    asked: LoopRequest
    output: Output
    run: TakeStep
    record: LoopRecord

    def go_on(self) -> LoopRecord:
        """Take every step that is not done, until nothing pays.

        Raises:
            GpucostError: a step failed, nobody agreed, or it was interrupted; what is done stays.
        """
        self._keep(msgspec.structs.replace(self.record, ended=()))
        if not self.record.profiled:
            self._take(profile_step(self.asked))
            self._keep(msgspec.structs.replace(self.record, profiled=True))
        while not self.record.ended:
            one = self.record.under_way or self._choose()
            if one is not None:
                self._finish(one)
        return self.record

    def _keep(self, record: LoopRecord) -> None:
        self.record = record
        write_record(self.asked.folder, record)

    def _take(self, step: LoopStep) -> None:
        self.output.say(f"$ {step.text}")
        code = self.run(step)
        if code:
            raise LoopStepFailedError(step, code)

    def _choose(self) -> Round | None:
        """Return the next round, planned and written down; None where the loop has ended."""
        record, asked = self.record, self.asked
        if over := _over(record, asked):
            self._keep(msgspec.structs.replace(record, ended=(over,)))
            return None
        number = len(record.rounds) + 1
        folder = "" if number == 1 else f"round-{number}"
        (asked.folder / folder).mkdir(parents=True, exist_ok=True)
        won = record.proved
        before = f"{won.folder}/{AFTER}".lstrip("/") if won else BEFORE
        self._take(plan_step(asked, before, folder))
        plan = load_plan(asked.folder / folder / PLAN)
        means = self._means(before)
        found, refused = next_experiment(only_job(plan.jobs), means)
        if found is None:
            self._keep(msgspec.structs.replace(record, ended=refused))
            return None
        text = json.dumps(found.recipe, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_file(str(asked.folder / folder / RECIPE), text)
        self.output.say(_promise(found, plan.period))
        return self._done(_round(found, folder, before))

    def _done(self, one: Round) -> Round:
        self._keep(self.record.with_round(one))
        return one

    def _means(self, before: str) -> Means:
        run_s = self._run_s(before)
        won = self.record.proved
        return Means(
            command=self.asked.command,
            environ=os.environ,
            here=surroundings(),
            numeric=self.asked.numeric,
            run_s=run_s,
            rent_s=float(self.rent_s),
            left_usd=self._left_usd(),
            kept=_json(self.asked, won.folder, RECIPE) if won else {},
            tried={one.key: f"{one.verdict}: {one.why}" for one in self.record.rounds},
        )

    def _profile(self, name: str) -> Profile:
        return read_run(str(self.asked.folder / name), None, lambda _: None).profile

    def _run_s(self, before: str) -> float:
        profile = self._profile(before)
        seconds = profile.window.duration_s if profile.window else None
        if seconds is None:
            raise InputError(f"{self.asked.folder / before}: does not say how long the run took.")
        return seconds

    @property
    def rent_s(self) -> int:
        """How long a rented machine may live, seconds."""
        if self.asked.ttl_s is not None:
            return self.asked.ttl_s
        whole = math.ceil((self._run_s(BEFORE) * _LONGER + _AROUND_S) / _MINUTE_S)
        return whole * _MINUTE_S

    def _left_usd(self) -> Decimal:
        """Return what is left of the budget; what was rented is counted again from the ledger."""
        spent = sum((one.usd for one in self._rented()), Decimal(0))
        self._keep(msgspec.structs.replace(self.record, spent_usd=spent))
        return max(Decimal(0), EXACT.subtract(self.asked.budget_usd, spent))

    def _rented(self) -> tuple[RentedRun, ...]:
        folders = [self.asked.folder / one.folder for one in self.record.rounds]
        elsewhere = any(one.where != HERE for one in self.record.rounds)
        return rented(folders) if elsewhere else ()

    def _finish(self, one: Round) -> None:
        """Take a chosen option to its verdict."""
        folder = self.asked.folder / one.folder
        if one.done == "chosen":
            if one.where == HERE:
                self._try_here(one)
            else:
                self._rent(one)
            if not (folder / AFTER).is_file():
                raise InputError(f"{folder / AFTER}: the run left no profile; nothing is proved.")
            one = self._done(msgspec.structs.replace(one, done="measured"))
        self._take(verify_step(self.asked, one))
        self._done(_judged(one, _json(self.asked, one.folder, PROOF)))
        self._left_usd()

    def _try_here(self, one: Round) -> None:
        took_s = self._run_s(one.before)
        long = f"{took_s:.0f} s" if took_s < _SHOWN_FROM_S else f"{took_s / _MINUTE_S:.0f} min"
        price = "" if one.costs_usd is None else f", ${show(one.costs_usd)} of this machine"
        what = ", ".join(one.settings)
        question = f"Run it here with {what} (it took {long} before{price})?"
        confirm(question, yes=self.asked.yes)
        self._take(try_step(self.asked, one, Decimal(0), 0, ab=self._in_turns(one)))

    def _in_turns(self, one: Round) -> bool:
        """Return whether settings are switched on and off within the run that tries them.

        Where it is asked for; and where others filled the machine before, for then two runs prove
        nothing, and there are steps enough. What was proved before stays on, so that only the first
        settings of a loop can be.
        """
        if one.before != BEFORE:
            return False
        codes = {each["code"] for each in _json(self.asked, one.folder, RECIPE)["actions"]}
        if not codes.intersection(SWITCHED):
            return False
        before = self._profile(one.before)
        steps = before.step.count if before.step and before.step.count else 0
        return self.asked.ab or (others_work(before) is not None and steps >= _STEPS_FOR_TURNS)

    def _rent(self, one: Round) -> None:
        """Launch the option; a launch of this round that is there already is followed instead."""
        folder = self.asked.folder / one.folder
        found = rented((folder,))
        known = [each for each in found if each.is_open or not each.launched_nothing]
        left = self._left_usd()
        if not known:
            (folder / AFTER).unlink(missing_ok=True)
            self._take(try_step(self.asked, one, left, self.rent_s))
        elif known[-1].is_open:
            self._take(LoopStep(words=("logs", known[-1].run, "-f")))
        elif not (folder / AFTER).is_file():
            raise RefusedError(
                f"{known[-1].run} has ended and left no profile: `gpucost logs {known[-1].run}` "
                "says why. Nothing is rented again by itself; --folder NEW begins anew."
            )


def _over(record: LoopRecord, asked: LoopRequest) -> str:
    """Return why no further option is looked for; empty where one is."""
    last = record.rounds[-1] if record.rounds else None
    if last is not None and last.verdict == "proved" and last.where != HERE:
        plan = asked.folder / last.folder / PLAN
        return (
            f"{last.option} is proved on {last.where}: move there, and go on from there: "
            f"gpucost provision {plan} --option {last.option} --ttl 8h"
        )
    if len(record.rounds) >= asked.most_rounds:
        return f"{len(record.rounds)} rounds are made (--rounds)."
    return ""


def _promise(one: NextExperiment, period: str) -> str:
    """Return what the plan says of an option, in a sentence."""
    option = one.found.option
    what = ", ".join(one.settings) or "unchanged"
    told = [f"next: {one.found.name}, {one.where}: {what}"]
    if option is not None and option.speed is not None:
        speed = option.speed
        told.append(f"predicted {speed.mid:.3g}x ({speed.low:.3g}-{speed.high:.3g}x)")
    if option is not None and option.saves.usd is not None:
        told.append(f"${show(option.saves.usd)} saved a {period}")
    return "; ".join(told)


def _round(found: NextExperiment, folder: str, before: str) -> Round:
    return Round(
        folder=folder,
        before=before,
        option=found.found.name,
        where=found.where,
        settings=found.settings,
        costs_usd=found.costs_usd,
        can_save_usd=found.can_save_usd,
    )


def _json(asked: LoopRequest, folder: str, name: str) -> dict[str, Any]:
    path = asked.folder / folder / name
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    return found


def _judged(one: Round, proof: dict[str, Any]) -> Round:
    speed, saves = proof["speedup"], proof["saves"]
    return msgspec.structs.replace(
        one,
        done="verified",
        verdict=proof["verdict"],
        why=proof["why"],
        speedup=None if speed is None else Effect(**{k: speed[k] for k in ("low", "mid", "high")}),
        saves_usd=None if saves is None else Decimal(saves["usd"]),
        period=None if saves is None else saves["period"],
    )


def begin(asked: LoopRequest, output: Output, run: TakeStep) -> Loop:
    """Return the loop in its folder, which is made where it is not there.

    Raises:
        InputError: the folder cannot be made, or holds the loop of another command.
    """
    try:
        asked.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"--folder {asked.folder}: cannot be made: {reason}.") from error
    return Loop(asked, output, run, read_record(asked.folder, asked.command))


_COLUMNS = ("round", "where", "with", "low", "speed-up", "high", "USD saved", "verdict")


def print_loop(record: LoopRecord, output: Output) -> None:
    """Print the rounds; why the loop ended is said beside."""
    if output.format == "json":
        print_json(record)
    else:
        rows = tuple(_row(number, one, output) for number, one in enumerate(record.rounds, start=1))
        print_table(Table(columns=_COLUMNS, rows=rows, right=frozenset(_COLUMNS[3:7])), output)
    for sentence in record.ended:
        output.say(f"ended: {sentence}")
    if record.spent_usd:
        output.say(f"spent on rented machines: ${show(record.spent_usd)}")


def _row(number: int, one: Round, output: Output) -> tuple[str, ...]:
    speed, saves = one.speedup, one.saves_usd
    ends = ("", "unknown", "") if speed is None else (speed.low, speed.mid, speed.high)
    money = plain if output.format == "csv" else show
    per = f" a {one.period}" if one.period and output.format != "csv" else ""
    return (
        str(number),
        one.where,
        ", ".join(one.settings),
        *(end if isinstance(end, str) else f"{end:.3g}x" for end in ends),
        "" if saves is None else f"{money(saves)}{per}",
        one.verdict or "",
    )
