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

from gpucost.loop.loop_record import HERE
from planner.documents.application import IN_PROCESS, Application, application
from planner.documents.launcher import Surroundings
from planner.documents.recipe import make_recipe
from planner.documents.recipe_read import AskedRecipe, read_recipe
from planner.models.document import encode
from planner.plan_document.find import FoundOption
from planner.plan_document.jobs import JobDocument
from planner.plan_document.options import Settings
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
        here: this machine.
        numeric: codes of actions that may change results and were asked for.
        run_s: how long the job ran before, seconds.
        rent_s: how long a rented machine may live, seconds.
        left_usd: of the budget; 0: nothing is rented.
        kept: recipe of what was proved here before; empty before the first proof.
        tried: what became of the rounds so far, by their keys.
    """

    command: tuple[str, ...]
    environ: Mapping[str, str]
    here: Surroundings
    numeric: tuple[str, ...]
    run_s: float
    rent_s: float
    left_usd: Decimal
    kept: Mapping[str, Any]
    tried: Mapping[tuple[str, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextExperiment:
    """An option that is worth trying.

    Attributes:
        found: the option.
        where: `here`, or PROVIDER/TYPE that is rented.
        recipe: recipe.json of it, with what was proved before.
        settings: what it adds, in words.
        costs_usd: of the experiment; None without a price.
        can_save_usd: at best, over the horizon; None where today's bill is not known.
    """

    found: FoundOption
    where: str
    recipe: Mapping[str, Any]
    settings: tuple[str, ...]
    costs_usd: Decimal | None
    can_save_usd: Decimal | None


def next_experiment(
    job: JobDocument, means: Means
) -> tuple[NextExperiment | None, tuple[str, ...]]:
    """Return the experiment to make, or None and why not, an option a sentence.

    Args:
        job: as it is planned.
        means: what may be used.
    """
    refused: dict[str, list[str]] = {}
    for found in _by_benefit(job):
        experiment = _experiment(found, means)
        why = _why_not(experiment, means)
        if why is None:
            return experiment, ()
        place = "" if experiment.where == HERE else f" on {experiment.where}"
        refused.setdefault(why, []).append(f"{found.name}{place}")
    here = f"{job.name}: no change on this machine is in the plan that costs less than today."
    on_this = any(is_here(found) for found in _by_benefit(job))
    told = (f"{listed(names, _SHOWN)}: {why}" for why, names in refused.items())
    return None, (*told, *(() if on_this else (here,)))


def _by_benefit(job: JobDocument) -> list[FoundOption]:
    """Return the options that save something, the largest net benefit first."""
    today = job.baseline.cost.total
    found = [FoundOption(job=job, option=one) for one in job.options]
    paying = [o for o in found if today is None or (o.cost is not None and o.cost.low < today)]
    return sorted(paying, key=lambda o: (-_net_usd(o), o.id))


def _net_usd(found: FoundOption) -> Decimal:
    benefit = found.option.benefit if found.option else None
    net = benefit.net_usd if benefit else None
    return Decimal("-Infinity") if net is None else net


def is_here(found: FoundOption) -> bool:
    """Return whether an option stays on today's machines, bought as today."""
    today, there = found.job.baseline.offer, found.offer
    if today is None or there is None:
        return False
    alike = ("provider", "region", "instance_type", "gpu", "gpu_count", "purchase")
    return found.count == found.job.baseline.count and all(
        getattr(today, name) == getattr(there, name) for name in alike
    )


def _experiment(found: FoundOption, means: Means) -> NextExperiment:
    here, offer = is_here(found), found.offer
    asked = encode(make_recipe(found, _applying(found, means.numeric)).document)
    recipe = with_kept(asked, means.kept, here=here)
    return NextExperiment(
        found=found,
        where=HERE if here or offer is None else f"{offer.provider}/{offer.instance_type}",
        recipe=recipe,
        settings=_added(recipe, means) if here else _asked(recipe),
        costs_usd=_price(found, means.run_s if here else means.rent_s),
        can_save_usd=_at_best(found),
    )


def _applying(found: FoundOption, numeric: tuple[str, ...]) -> tuple[str, ...]:
    """Return the numeric actions asked for that an option's machine has a use for."""
    known = found.settings
    return tuple(code for code in numeric if code in known)


def with_kept(recipe: Mapping[str, Any], kept: Mapping[str, Any], *, here: bool) -> dict[str, Any]:
    """Return a recipe with what an earlier one sets.

    Here what was proved stays as it was tried: another value of the same setting (a number of
    workers, which `run` finds by itself) adds nothing. Elsewhere the recipe's values count.
    """
    first, then = (kept, recipe) if here else (recipe, kept)
    told = {one["code"] for one in first.get("actions", ())}
    added = [one for one in then.get("actions", ()) if one["code"] not in told]
    return {
        **recipe,
        "actions": [*first.get("actions", ()), *added],
        "environment": {**then.get("environment", {}), **first.get("environment", {})},
    }


def _added(recipe: Mapping[str, Any], means: Means) -> tuple[str, ...]:
    """Return what `gpucost run` would apply of a recipe that it did not apply before."""
    now, before = (_applied(one, means) for one in (recipe, means.kept))
    return tuple(text for text in now if text not in before)


def _applied(recipe: Mapping[str, Any], means: Means) -> tuple[str, ...]:
    if not recipe:
        return ()
    asked = read_recipe(json.dumps(recipe), "recipe.json")
    done = application(asked, means.command, means.environ, means.here)
    return tuple(_in_words(code, asked.actions[code]) for code in _codes(asked, done))


def _codes(asked: AskedRecipe, done: Application) -> list[str]:
    settled = {one.action for one in done.changes if one.outcome == APPLIED}
    return [code for code in asked.actions if code in IN_PROCESS or code in settled]


def _asked(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_in_words(one["code"], one["settings"]) for one in recipe["actions"])


def _in_words(code: str, settings: Settings) -> str:
    values = ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
    return f"{code} ({values})" if values else code


def _price(found: FoundOption, seconds: float) -> Decimal | None:
    if found.offer is None:
        return None
    machines = EXACT.multiply(found.offer.usd_per_hour, Decimal(found.count))
    return EXACT.divide(EXACT.multiply(machines, Decimal(str(seconds))), Decimal(_HOUR_S))


def _at_best(found: FoundOption) -> Decimal | None:
    today, cost = found.job.baseline.cost.total, found.cost
    if today is None or cost is None or found.option is None:
        return None
    periods = found.option.benefit.periods if found.option.benefit else Decimal(1)
    return EXACT.multiply(EXACT.subtract(today, cost.low), periods)


def _why_not(one: NextExperiment, means: Means) -> str | None:
    """Return why an experiment is not made; None where it is."""
    here = one.where == HERE
    became = means.tried.get((one.where, *one.settings))
    if became is not None:
        return f"tried already: {became}"
    if here and not one.settings:
        return "changes nothing more that can be applied here from outside the program."
    if not here and not _launchable(one.found):
        return "gpucost cannot launch it."
    if not here and not means.left_usd:
        return "nothing may be rented; --budget USD allows it."
    if one.can_save_usd is not None and (one.costs_usd or 0) >= one.can_save_usd:
        return (
            f"the experiment costs ${show(one.costs_usd or Decimal(0))}, and the option saves "
            f"${show(one.can_save_usd)} at best."
        )
    if not here and (one.costs_usd is None or one.costs_usd > means.left_usd):
        costs = "an unknown sum" if one.costs_usd is None else f"${show(one.costs_usd)}"
        return f"renting it costs {costs}, and ${show(means.left_usd)} of the budget is left."
    return None


def _launchable(found: FoundOption) -> bool:
    return found.option is not None and found.option.provisionable


def only_job(jobs: tuple[JobDocument, ...]) -> JobDocument:
    """Return the job of a plan that has one.

    Raises:
        InputError: it has several, or none.
    """
    if len(jobs) != 1:
        raise InputError(f"the plan has {len(jobs)} jobs; a loop is about one.")
    return jobs[0]
