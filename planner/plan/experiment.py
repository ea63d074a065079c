"""The one cheap experiment that would narrow a plan's answer most, and what it costs."""

import math
from collections.abc import Iterator
from decimal import Decimal

from planner.actions import ACTIONS
from planner.choice.baseline import bill_of_work
from planner.choice.context import JobContext
from planner.choice.option import Option
from planner.choice.workload import Workload
from planner.models.coefficients import coefficients
from planner.models.communication import link_class
from planner.models.estimate import digits
from planner.plan.bill import offer_on
from planner.plan.job import Experiment
from planner.profile.kinds import JobKind
from pricing.catalog.offer import Offer
from pricing.message import Message
from pricing.money import cents

MINUTES = 15  # steps settle within minutes; billing by the hour is in the price where it applies
_AFTER_TRIAL = 1.07  # the run-to-run spread that remains
_AFTER_COUNTERS = 1.43  # the counter form's interval
_TWO = 2
_WORTH = 1.1  # less than this much narrower is not a reason to rent
# An experiment that narrows half as much as the best one for half its money or less will do.
_HALF = 0.5
_HALF_USD = Decimal("0.5")


def suggest_experiment(
    context: JobContext, options: tuple[Option, ...], recommended: str
) -> Experiment | None:
    """Return the experiment that narrows the answer most for its cost; None where none is worth it.

    The answer is the recommended option, else the one that would be, were it surer.
    """
    about = next((o for o in options if o.id == recommended), options[0] if options else None)
    if about is None or not context.work.fixed_work or about.hours.low <= 0.0:
        return None
    today = context.baseline.cost
    if about.id != recommended and today is not None and about.usd_range.low >= today:
        return None  # dearer however the experiment goes
    worth = [trial for trial in _experiments(context, about) if math.exp(trial.narrows) >= _WORTH]
    best = max(worth, key=lambda trial: (trial.narrows, -trial.usd), default=None)
    if best is None:
        return None
    thrifty = [
        trial
        for trial in worth
        if trial.narrows >= _HALF * best.narrows and trial.usd <= _HALF_USD * best.usd
    ]
    return min(thrifty, key=lambda trial: (trial.usd, -trial.narrows), default=best)


def _experiments(context: JobContext, about: Option) -> Iterator[Experiment]:
    training = context.profile.job.kind.trains
    now, day = digits(math.sqrt(about.hours.high / about.hours.low)), context.catalog.as_of
    offer, count = about.offer, about.count
    gpus = round(offer.gpu_count) * count
    same = offer.gpu == context.gpu.name and gpus == context.profile.gpu_count
    if same and not about.actions:
        return
    software = any(ACTIONS[code].kind != "structural" for code in about.actions)
    code = "probe.run-with-changes" if software else "probe.run"
    where = f"{count} x {offer.name}" if count > 1 else offer.name
    yield Experiment(
        option=about.id,
        what=Message(code, n=MINUTES, machine=where),
        offer=offer_on(offer, day),
        count=count,
        minutes=MINUTES,
        usd=cents(_usd(offer, count, context)),
        factor_now=now,
        factor_after=_AFTER_TRIAL,
    )
    two = _machine_of_two(context, offer) if gpus > _TWO and training else None
    if two is not None:
        scaled = float(coefficients("scale")["probe_factor"])
        link = link_class(two.interconnect, two.gpu)
        yield Experiment(
            option=about.id,
            what=Message("probe.two-gpus", n=MINUTES, machine=two.name, link=link),
            offer=offer_on(two, day),
            count=1,
            minutes=MINUTES,
            usd=cents(_usd(two, 1, context)),
            factor_now=now,
            factor_after=digits(math.exp(math.hypot(math.log(scaled), math.log(_AFTER_TRIAL)))),
        )
    serving = context.profile.job.kind is JobKind.INFERENCE_OFFLINE
    if serving and context.profile.mean("util.dram_active") is None:
        yield Experiment(
            option=about.id,
            what=Message("probe.counters"),
            offer=None,
            count=0,
            minutes=MINUTES,
            usd=cents(Decimal(0)),
            factor_now=now,
            factor_after=min(now, _AFTER_COUNTERS),
        )


def _machine_of_two(context: JobContext, offer: Offer) -> Offer | None:
    alike = (other for other in context.market.sold_alike(offer) if other.gpu_count == _TWO)
    return min(alike, key=lambda o: (o.usd_per_hour, o.place), default=None)


def _usd(offer: Offer, count: int, context: JobContext) -> Decimal:
    """Return the bill of the experiment, by the provider's own rules, without the job's data."""
    nothing = Workload(
        hours=context.work.hours,
        units=None,
        fixed_work=True,
        egress_bytes=0,
        storage_bytes=0,
        storage_h=None,
    )
    return bill_of_work(offer, count, MINUTES / 60.0, nothing, context.catalog).exact
