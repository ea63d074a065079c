"""Takes a loop from wherever it is to its end: each step is written down once it is done.

The next experiment is the option with the largest net benefit that can be tried and pays: it is
made where what it costs is less than what its option can save at best, today's bill less the
option's at its low end, over the plan's horizon. Here it costs the machine's price for as long as
the job ran before; elsewhere what is rented, until its deadline.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from gpucost.files.plan_file import load_plan
from gpucost.files.writing import write_file
from gpucost.jobs.results import claim_profile
from gpucost.loop import loop_steps
from gpucost.loop.loop_steps import HERE
from gpucost.machines.state import confirm
from gpucost.profiling.run_files import read_run
from gpucost.profiling.run_request import surroundings
from gpucost.views.output import Output, Table, print_if_json, print_table
from planner.actions.settings import Settings
from planner.documents.application import IN_PROCESS, SWITCHED, Application, application
from planner.documents.launcher import Surroundings
from planner.documents.recipe import AskedRecipe, make_recipe, read_recipe
from planner.models.document import convert, encode
from planner.models.estimate import Interval
from planner.plan.job import JobPlan
from planner.plan.read import FoundOption
from planner.profile.kinds import APPLIED
from planner.profile.model import Profile
from planner.signals.compute_share import others_work
from pricing.errors import GpucostError, InputError, RefusedError
from pricing.listing import listed
from pricing.message import Message
from pricing.money import EXACT, plain, show

_HOUR_S = 3600
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What experiments may use.

    Attributes:
        command: the program and its arguments.
        environ: the caller's variables.
        machine: this machine.
        numeric: codes of actions that may change results and were asked for.
        run_s: how long the job ran before, seconds.
        rent_s: how long a rented machine may live, seconds.
        left_usd: of the budget; 0: nothing is rented.
        proved: recipe of what was proved here before; empty before the first proof.
        tried: what became of the rounds so far, by their keys.
    """

    command: tuple[str, ...]
    environ: Mapping[str, str]
    machine: Surroundings
    numeric: tuple[str, ...]
    run_s: float
    rent_s: float
    left_usd: Decimal
    proved: Mapping[str, Any]
    tried: Mapping[tuple[str, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextExperiment:
    """An option that is worth trying.

    Attributes:
        option: the option.
        where: `here`, or PROVIDER/TYPE that is rented.
        recipe: recipe.json of it, with what was proved before.
        settings: what it adds, in words.
        costs_usd: of the experiment; None without a price.
        can_save_usd: at best, over the horizon; None where today's bill is not known.
    """

    option: FoundOption
    where: str
    recipe: Mapping[str, Any]
    settings: tuple[str, ...]
    costs_usd: Decimal | None
    can_save_usd: Decimal | None


def next_experiment(job: JobPlan, means: Means) -> tuple[NextExperiment | None, tuple[str, ...]]:
    """Return the experiment to make, or None and why not, an option a sentence.

    Args:
        job: as it is planned.
        means: what may be used.
    """
    refused: dict[str, list[str]] = {}
    for candidate in _by_benefit(job):
        experiment = _experiment(candidate, means)
        why = _why_not(experiment, means)
        if why is None:
            return experiment, ()
        location = "" if experiment.where == HERE else f" on {experiment.where}"
        refused.setdefault(why, []).append(f"{candidate.name}{location}")
    not_here = f"{job.name}: no change on this machine is in the plan that costs less than today."
    on_this = any(is_here(candidate) for candidate in _by_benefit(job))
    reasons = (f"{listed(names, _SHOWN)}: {why}" for why, names in refused.items())
    return None, (*reasons, *(() if on_this else (not_here,)))


def _by_benefit(job: JobPlan) -> list[FoundOption]:
    """Return the options that save something, the largest net benefit first."""
    today = job.baseline.cost.total
    candidates = [FoundOption(job=job, option=option) for option in job.options]
    paying = [o for o in candidates if today is None or (o.cost is not None and o.cost.low < today)]
    return sorted(paying, key=lambda o: (-_net_usd(o), o.id))


def _net_usd(candidate: FoundOption) -> Decimal:
    benefit = candidate.option.benefit if candidate.option else None
    net = benefit.net_usd if benefit else None
    return Decimal("-Infinity") if net is None else net


def is_here(candidate: FoundOption) -> bool:
    """Return whether an option stays on today's machines, bought as today."""
    today, offer = candidate.job.baseline.offer, candidate.offer
    if today is None or offer is None:
        return False
    fields = ("provider", "region", "instance_type", "gpu", "gpu_count", "purchase")
    return candidate.count == candidate.job.baseline.count and all(
        getattr(today, name) == getattr(offer, name) for name in fields
    )


def _experiment(candidate: FoundOption, means: Means) -> NextExperiment:
    stays, offer = is_here(candidate), candidate.offer
    recipe_values = encode(make_recipe(candidate, _applying(candidate, means.numeric)))
    recipe = with_proved(recipe_values, means.proved, stays=stays)
    return NextExperiment(
        option=candidate,
        where=HERE if stays or offer is None else f"{offer.provider}/{offer.instance_type}",
        recipe=recipe,
        settings=_added(recipe, means) if stays else _settings_of(recipe),
        costs_usd=_price(candidate, means.run_s if stays else means.rent_s),
        can_save_usd=_at_best(candidate),
    )


def _applying(candidate: FoundOption, numeric: tuple[str, ...]) -> tuple[str, ...]:
    """Return the numeric actions asked for that an option's machine has a use for."""
    settings = candidate.settings
    return tuple(code for code in numeric if code in settings)


def with_proved(
    recipe: Mapping[str, Any], proved: Mapping[str, Any], *, stays: bool
) -> dict[str, Any]:
    """Return a recipe with what an earlier one sets.

    Here what was proved stays as it was tried: another value of the same setting (a number of
    workers, which `run` finds by itself) adds nothing. Elsewhere the recipe's values count.
    """
    first, then = (proved, recipe) if stays else (recipe, proved)
    codes = {entry["code"] for entry in first.get("actions", ())}
    added = [entry for entry in then.get("actions", ()) if entry["code"] not in codes]
    return {
        **recipe,
        "actions": [*first.get("actions", ()), *added],
        "environment": {**then.get("environment", {}), **first.get("environment", {})},
    }


def _added(recipe: Mapping[str, Any], means: Means) -> tuple[str, ...]:
    """Return what `gpucost run` would apply of a recipe that it did not apply before."""
    now, before = (_applied(values, means) for values in (recipe, means.proved))
    return tuple(text for text in now if text not in before)


def _applied(recipe: Mapping[str, Any], means: Means) -> tuple[str, ...]:
    if not recipe:
        return ()
    parsed = read_recipe(json.dumps(recipe), "recipe.json")
    done = application(parsed, means.command, means.environ, means.machine)
    return tuple(_in_words(code, parsed.actions[code]) for code in _codes(parsed, done))


def _codes(parsed: AskedRecipe, done: Application) -> list[str]:
    settled = {change.action for change in done.changes if change.outcome == APPLIED}
    return [code for code in parsed.actions if code in IN_PROCESS or code in settled]


def _settings_of(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_in_words(entry["code"], entry["settings"]) for entry in recipe["actions"])


def _in_words(code: str, settings: Settings) -> str:
    values = ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
    return f"{code} ({values})" if values else code


def _price(candidate: FoundOption, seconds: float) -> Decimal | None:
    if candidate.offer is None:
        return None
    machines = EXACT.multiply(candidate.offer.usd_per_hour, Decimal(candidate.count))
    return EXACT.divide(EXACT.multiply(machines, Decimal(str(seconds))), Decimal(_HOUR_S))


def _at_best(candidate: FoundOption) -> Decimal | None:
    today, cost = candidate.job.baseline.cost.total, candidate.cost
    if today is None or cost is None or candidate.option is None:
        return None
    periods = candidate.option.benefit.periods if candidate.option.benefit else Decimal(1)
    return EXACT.multiply(EXACT.subtract(today, cost.low), periods)


def _why_not(experiment: NextExperiment, means: Means) -> str | None:
    """Return why an experiment is not made; None where it is."""
    stays = experiment.where == HERE
    became = means.tried.get((experiment.where, *experiment.settings))
    if became is not None:
        return f"tried already: {became}"
    if stays and not experiment.settings:
        return "changes nothing more that can be applied here from outside the program."
    option = experiment.option.option
    if not stays and (option is None or not option.provisionable):
        return "gpucost cannot launch it."
    if not stays and not means.left_usd:
        return "nothing may be rented; --budget USD allows it."
    if (
        experiment.can_save_usd is not None
        and (experiment.costs_usd or 0) >= experiment.can_save_usd
    ):
        return (
            f"the experiment costs ${show(experiment.costs_usd or Decimal(0))}, and the option "
            f"saves ${show(experiment.can_save_usd)} at best."
        )
    if not stays and (experiment.costs_usd is None or experiment.costs_usd > means.left_usd):
        costs = (
            "an unknown sum" if experiment.costs_usd is None else f"${show(experiment.costs_usd)}"
        )
        return f"renting it costs {costs}, and ${show(means.left_usd)} of the budget is left."
    return None


def only_job(jobs: tuple[JobPlan, ...]) -> JobPlan:
    """Return the job of a plan that has one.

    Raises:
        InputError: it has several, or none.
    """
    if len(jobs) != 1:
        raise InputError(f"the plan has {len(jobs)} jobs; a loop is about one.")
    return jobs[0]


# A rented machine gets half as long again as the job took before, and an hour to come up, to
# fetch code and data and to bring results back: our choice, --ttl says otherwise.
_LONGER = 1.5
_AROUND_S = 3600
_MINUTE_S = 60
_SHOWN_FROM_S = 120
# 60 to warm up and three fours of the longest blocks: 16 workers that read 4 batches ahead each.
_STEPS_FOR_TURNS = 2200


@dataclass(slots=True)
class Loop:
    """A loop under way.

    Attributes:
        request: what it is asked for.
        output: where it is told.
        run: runs a step.
        record: what is done.
    """

    request: loop_steps.LoopRequest
    output: Output
    run: loop_steps.TakeStep
    record: loop_steps.LoopRecord

    def go_on(self) -> loop_steps.LoopRecord:
        """Take every step that is not done, until nothing pays.

        Raises:
            GpucostError: a step failed, nobody agreed, or it was interrupted; what is done stays.
        """
        self._keep(msgspec.structs.replace(self.record, ended=()))
        if not self.record.profiled:
            self._take(loop_steps.profile_step(self.request))
            self._keep(msgspec.structs.replace(self.record, profiled=True))
        while not self.record.ended:
            attempt = self.record.under_way or self._choose()
            if attempt is not None:
                self._finish(attempt)
        return self.record

    def _keep(self, record: loop_steps.LoopRecord) -> None:
        self.record = record
        loop_steps.write_record(self.request.folder, record)

    def _take(self, step: loop_steps.LoopStep) -> None:
        self.output.say(f"$ {step.text}")
        code = self.run(step)
        if code:
            raise GpucostError(
                f"the loop stops: this step ended with {code}; the same command tries it again: "
                f"{step.text}",
                code if code > 0 else 128 - code,
            )

    def _choose(self) -> loop_steps.Round | None:
        """Return the next round, planned and written down; None where the loop has ended."""
        record, request = self.record, self.request
        if over := _over(record, request):
            self._keep(msgspec.structs.replace(record, ended=(over,)))
            return None
        folder, before = record.next_folder, record.best_profile
        (request.folder / folder).mkdir(parents=True, exist_ok=True)
        self._take(loop_steps.plan_step(request, before, folder))
        plan = load_plan(request.folder / folder / loop_steps.PLAN)
        means = self._means(before)
        experiment, refused = next_experiment(only_job(plan.jobs), means)
        if experiment is None:
            self._keep(msgspec.structs.replace(record, ended=refused))
            return None
        text = json.dumps(experiment.recipe, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_file(str(request.folder / folder / loop_steps.RECIPE), text)
        self.output.say(_promise(experiment, plan.period))
        return self._done(_round(experiment, folder, before))

    def _done(self, attempt: loop_steps.Round) -> loop_steps.Round:
        self._keep(self.record.with_round(attempt))
        return attempt

    def _means(self, before: str) -> Means:
        run_s = self._run_s(before)
        won = self.record.proved
        return Means(
            command=self.request.command,
            environ=os.environ,
            machine=surroundings(),
            numeric=self.request.numeric,
            run_s=run_s,
            rent_s=float(self.rent_s),
            left_usd=self._left_usd(),
            proved=_json(self.request, won.folder, loop_steps.RECIPE) if won else {},
            tried={
                attempt.key: f"{attempt.verdict}: {attempt.why}" for attempt in self.record.rounds
            },
        )

    def _profile(self, name: str) -> Profile:
        return read_run(str(self.request.folder / name), None, lambda _: None).profile

    def _run_s(self, before: str) -> float:
        profile = self._profile(before)
        seconds = profile.window.duration_s if profile.window else None
        if seconds is None:
            raise InputError(f"{self.request.folder / before}: does not say how long the run took.")
        return seconds

    @property
    def rent_s(self) -> int:
        """How long a rented machine may live, seconds."""
        if self.request.ttl_s is not None:
            return self.request.ttl_s
        minutes = math.ceil((self._run_s(loop_steps.BEFORE) * _LONGER + _AROUND_S) / _MINUTE_S)
        return minutes * _MINUTE_S

    def _left_usd(self) -> Decimal:
        """Return what is left of the budget; what was rented is counted again from the ledger."""
        spent = sum((rental.usd for rental in self._rented()), Decimal(0))
        self._keep(msgspec.structs.replace(self.record, spent_usd=spent))
        return max(Decimal(0), EXACT.subtract(self.request.budget_usd, spent))

    def _rented(self) -> tuple[loop_steps.RentedRun, ...]:
        folders = [self.request.folder / attempt.folder for attempt in self.record.rounds]
        is_rented = any(attempt.where != loop_steps.HERE for attempt in self.record.rounds)
        return loop_steps.rented(folders) if is_rented else ()

    def _finish(self, attempt: loop_steps.Round) -> None:
        """Take a chosen option to its verdict."""
        folder = self.request.folder / attempt.folder
        if attempt.done == "chosen":
            if attempt.where == loop_steps.HERE:
                self._try_here(attempt)
            else:
                self._rent(attempt)
            if not (folder / loop_steps.AFTER).is_file():
                after = folder / loop_steps.AFTER
                raise InputError(Message("input.no-profile-left", path=str(after)))
            attempt = self._done(msgspec.structs.replace(attempt, done="measured"))
        self._take(loop_steps.verify_step(self.request, attempt))
        judged = _judged(attempt, _json(self.request, attempt.folder, loop_steps.PROOF))
        if judged.verdict == "not-proved" and self._was_disturbed(attempt):
            self.output.say("others worked meanwhile: once more, in turns within one run")
            self._take(loop_steps.try_step(self.request, attempt, Decimal(0), 0, ab=True))
            self._take(loop_steps.verify_step(self.request, attempt))
            judged = _judged(attempt, _json(self.request, attempt.folder, loop_steps.PROOF))
        self._done(judged)
        self._left_usd()

    def _was_disturbed(self, attempt: loop_steps.Round) -> bool:
        """Return whether others' work spoiled a run here that can be made in turns instead."""
        if (
            attempt.where != loop_steps.HERE
            or self._in_turns(attempt)
            or not self._can_switch(attempt)
        ):
            return False
        after = f"{attempt.folder}/{loop_steps.AFTER}".lstrip("/")
        return others_work(self._profile(after)) is not None

    def _try_here(self, attempt: loop_steps.Round) -> None:
        took_s = self._run_s(attempt.before)
        long = f"{took_s:.0f} s" if took_s < _SHOWN_FROM_S else f"{took_s / _MINUTE_S:.0f} min"
        price = "" if attempt.costs_usd is None else f", ${show(attempt.costs_usd)} of this machine"
        settings = ", ".join(attempt.settings)
        question = f"Run it here with {settings} (it took {long} before{price})?"
        confirm(question, yes=self.request.yes)
        self._take(
            loop_steps.try_step(self.request, attempt, Decimal(0), 0, ab=self._in_turns(attempt))
        )

    def _in_turns(self, attempt: loop_steps.Round) -> bool:
        """Return whether settings are switched on and off within the run that tries them.

        Where it is asked for; and where others filled the machine before, for then two runs prove
        nothing, and there are steps enough. What was proved before stays on, so that only the first
        settings of a loop can be.
        """
        crowded = others_work(self._profile(attempt.before)) is not None
        may = self._can_switch(attempt, steps=0 if self.request.ab else _STEPS_FOR_TURNS)
        return may and (self.request.ab or crowded)

    def _can_switch(self, attempt: loop_steps.Round, steps: int = _STEPS_FOR_TURNS) -> bool:
        """Return whether settings can be switched within a run, and it has so many steps."""
        if attempt.before != loop_steps.BEFORE:
            return False
        codes = {
            entry["code"]
            for entry in _json(self.request, attempt.folder, loop_steps.RECIPE)["actions"]
        }
        step = self._profile(attempt.before).step
        enough = ((step.count if step else None) or 0) >= steps
        return enough and bool(codes.intersection(SWITCHED))

    def _rent(self, attempt: loop_steps.Round) -> None:
        """Launch the option; a launch of this round that is there already is followed instead."""
        folder = self.request.folder / attempt.folder
        rentals = loop_steps.rented((folder,))
        for rental in rentals:
            claim_profile(folder, rental.run)
        started = [rental for rental in rentals if rental.is_open or not rental.launched_nothing]
        left_usd = self._left_usd()
        if not started:
            (folder / loop_steps.AFTER).unlink(missing_ok=True)
            self._take(loop_steps.try_step(self.request, attempt, left_usd, self.rent_s))
        elif started[-1].is_open:
            self._take(loop_steps.LoopStep(words=("logs", started[-1].run, "-f")))
        elif not (folder / loop_steps.AFTER).is_file():
            raise RefusedError(Message("input.run-without-profile", run=started[-1].run))
        for rental in loop_steps.rented((folder,)):
            claim_profile(folder, rental.run)


def _over(record: loop_steps.LoopRecord, request: loop_steps.LoopRequest) -> str:
    """Return why no further option is looked for; empty where one is."""
    last = record.rounds[-1] if record.rounds else None
    if last is not None and last.verdict == "proved" and last.where != loop_steps.HERE:
        plan = request.folder / last.folder / loop_steps.PLAN
        return (
            f"{last.option} is proved on {last.where}: move there, and go on from there: "
            f"gpucost provision {plan} --option {last.option} --ttl 8h"
        )
    if len(record.rounds) >= request.most_rounds:
        return f"{len(record.rounds)} rounds are made (--rounds)."
    return ""


def _promise(experiment: NextExperiment, period: str) -> str:
    """Return what the plan says of an option, in a sentence."""
    option = experiment.option.option
    settings = ", ".join(experiment.settings) or "unchanged"
    parts = [f"next: {experiment.option.name}, {experiment.where}: {settings}"]
    if option is not None and option.speed is not None:
        speed = option.speed
        parts.append(f"predicted {speed.mid:.3g}x ({speed.low:.3g}-{speed.high:.3g}x)")
    if option is not None and option.saves.usd is not None:
        parts.append(f"${show(option.saves.usd)} saved a {period}")
    return "; ".join(parts)


def _round(experiment: NextExperiment, folder: str, before: str) -> loop_steps.Round:
    return loop_steps.Round(
        folder=folder,
        before=before,
        option=experiment.option.name,
        where=experiment.where,
        settings=experiment.settings,
        costs_usd=experiment.costs_usd,
        can_save_usd=experiment.can_save_usd,
    )


def _json(request: loop_steps.LoopRequest, folder: str, name: str) -> dict[str, Any]:
    path = request.folder / folder / name
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    return document


def _judged(attempt: loop_steps.Round, proof: dict[str, Any]) -> loop_steps.Round:
    speed, saves = proof["speedup"], proof["saves"]
    return msgspec.structs.replace(
        attempt,
        done="verified",
        verdict=proof["verdict"],
        why=proof["why"],
        speedup=None if speed is None else convert(Interval, speed),
        saves_usd=None if saves is None else Decimal(saves["usd"]),
        period=None if saves is None else saves["period"],
    )


def begin(request: loop_steps.LoopRequest, output: Output, run: loop_steps.TakeStep) -> Loop:
    """Return the loop in its folder, which is made where it is not there.

    Raises:
        InputError: the folder cannot be made, or holds the loop of another command.
    """
    try:
        request.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"--folder {request.folder}: cannot be made: {reason}.") from error
    return Loop(request, output, run, loop_steps.read_record(request.folder, request.command))


_COLUMNS = ("round", "where", "with", "low", "speed-up", "high", "USD saved", "verdict")


def print_loop(record: loop_steps.LoopRecord, output: Output) -> None:
    """Print the rounds; why the loop ended is said beside."""
    if not print_if_json(record, output):
        rows = tuple(
            _row(number, attempt, output) for number, attempt in enumerate(record.rounds, start=1)
        )
        print_table(Table(columns=_COLUMNS, rows=rows, right=frozenset(_COLUMNS[3:7])), output)
    for sentence in record.ended:
        output.say(f"ended: {sentence}")
    if record.spent_usd:
        output.say(f"spent on rented machines: ${show(record.spent_usd)}")


def _row(number: int, attempt: loop_steps.Round, output: Output) -> tuple[str, ...]:
    speed, saves = attempt.speedup, attempt.saves_usd
    ends = ("", "unknown", "") if speed is None else (speed.low, speed.mid, speed.high)
    money = plain if output.format == "csv" else show
    per = f" a {attempt.period}" if attempt.period and output.format != "csv" else ""
    return (
        str(number),
        attempt.where,
        ", ".join(attempt.settings),
        *(end if isinstance(end, str) else f"{end:.3g}x" for end in ends),
        "" if saves is None else f"{money(saves)}{per}",
        attempt.verdict or "",
    )
