"""Which experiment is next: the option with the largest net benefit that can be tried and pays.

An experiment is made where what it costs is less than what its option can save at best: today's
bill less the option's at its low end, over the plan's horizon. Here it costs the machine's price
for as long as the job ran before; elsewhere what is rented, until its deadline.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpucost.loop.loop_steps import HERE
from planner.actions.settings import Settings
from planner.documents.application import IN_PROCESS, Application, application
from planner.documents.launcher import Surroundings
from planner.documents.recipe import AskedRecipe, make_recipe, read_recipe
from planner.models.document import encode
from planner.plan.job import JobPlan
from planner.plan.read import FoundOption
from planner.profile.kinds import APPLIED
from pricing.errors import InputError
from pricing.listing import listed
from pricing.money import EXACT, show

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
