"""How sure the advice of a job is: of the cause, of the speed elsewhere, of the price.

The advice is no surer than its weakest part.
"""

import math
from datetime import date

from planner.choice.baseline import Baseline
from planner.choice.context import JobContext
from planner.choice.option import Option
from planner.models.estimate import Estimate
from planner.plan.job import Confidence, ConfidencePart
from planner.plan.option import Level
from planner.profile.model import Profile
from planner.signals.finding import Certainty, Finding
from planner.signals.signals import verdict_doubt
from pricing.catalog.offer import Offer
from pricing.message import Message, join

_ONE_DIGIT = 1.2  # from here on one decimal says enough of a factor
_ORDER: tuple[Level, ...] = ("low", "fair", "good")
_CAUSE: dict[Certainty, tuple[Level, str]] = {
    "measured": ("good", Message("sure.cause-measured")),
    "likely": ("fair", Message("sure.cause-likely")),
    "possible": ("low", Message("sure.cause-possible")),
}
# Half the width of the interval in log space: what steps of one job vary by, and a factor of 1.5,
# beyond which a saving of a third is no longer sure.
_NARROW, _WIDE = 1.15, 1.5
_STEADY = 1.05  # a price that may have risen by less is as good as read today


def _weakest(
    *, diagnosis: ConfidencePart, speed: ConfidencePart | None, price: ConfidencePart
) -> Confidence:
    """Return all parts together, at the level of the weakest one."""
    levels = [part.level for part in (diagnosis, speed, price) if part is not None]
    level = min(levels, key=_ORDER.index)
    return Confidence(level=level, diagnosis=diagnosis, speed=speed, price=price)


def rate_confidence(context: JobContext, chosen: Option | None) -> Confidence:
    """Return how sure the advice is: of the chosen option, or of leaving it (None)."""
    cause = _diagnosis(context.profile, context.findings)
    return if_taken(cause, chosen, context.baseline, context.catalog.as_of)


def if_taken(
    cause: ConfidencePart, option: Option | None, baseline: Baseline, day: date
) -> Confidence:
    """Return how sure the advice is to take an option; None: to stay, or to end the job there."""
    return _weakest(
        diagnosis=cause,
        speed=None if option is None else _speed(option, baseline),
        price=_price(baseline, option.offer if option else None, day),
    )


def if_shared(
    sure: Confidence, speed: Estimate, baseline: Baseline, moves_to: Offer | None, day: date
) -> Confidence:
    """Return how sure the advice is to run a job on a GPU that several share.

    Args:
        sure: of the job alone; its cause stays as sure as it is.
        speed: where it is to run, beside the others there, relative to today.
        baseline: what runs it today.
        moves_to: the machine, where it is another than today's.
        day: of the plan.
    """
    speed_there = _by_width(speed, "sure.same-gpu", "sure.speed-shared", weak=speed.weak)
    return _weakest(
        diagnosis=sure.diagnosis, speed=speed_there, price=_price(baseline, moves_to, day)
    )


def thin(profile: Profile) -> str | None:
    """Return on what thin ground all figures of a job stand; None where they were recorded.

    One instant, a few seconds, or figures that nobody recorded with a known tool.
    """
    if not profile.provenance.sources:
        return Message("sure.entered")
    if (why := verdict_doubt(profile)) is not None:
        return Message(why.code.replace("cause", "sure"), **why.params)
    return None


def _diagnosis(profile: Profile, findings: tuple[Finding, ...]) -> ConfidencePart:
    if not findings:
        return ConfidencePart(level="low", why=Message("sure.nothing-measured"))
    level, why = _CAUSE[findings[0].confidence]
    ground = thin(profile)
    if ground is None:
        return ConfidencePart(level=level, why=why)
    capped = min(level, "fair", key=_ORDER.index)
    return ConfidencePart(level=capped, why=join((why, ground)))


def _speed(chosen: Option, baseline: Baseline) -> ConfidencePart:
    same = baseline.offer is not None and chosen.offer.gpu == baseline.offer.gpu
    exact = "sure.same-gpu" if same else "sure.same-hours"
    return _by_width(chosen.hours, exact, "sure.run-time", weak=chosen.speed.weak)


def _by_width(interval: Estimate, exact: str, wide: str, *, weak: bool) -> ConfidencePart:
    """Return how sure an interval is, by half its width in log space.

    Args:
        interval: of hours or of a speed.
        exact: code of what to say where it has no width.
        wide: the same where it has one, with its factor.
        weak: whether it is beyond what was measured.
    """
    if weak:
        return ConfidencePart(level="low", why=Message("sure.outside-fit"))
    if interval.low == interval.high:
        return ConfidencePart(level="good", why=Message(exact))
    factor = math.sqrt(interval.high / interval.low) if interval.low > 0.0 else math.inf
    level: Level = "good" if factor <= _NARROW else "fair" if factor <= _WIDE else "low"
    return ConfidencePart(level=level, why=Message(wide, factor=in_words(factor)))


def in_words(factor: float) -> str:
    """Return a factor as people say it: 1.5, a small one to the cent: 1.07."""
    return f"{factor:.1f}" if factor >= _ONE_DIGIT else f"{factor:.2f}"


def _price(baseline: Baseline, moves_to: Offer | None, day: date) -> ConfidencePart:
    """Return how sure the price is: of where the job would go, or of today's machine."""
    offer = moves_to or baseline.offer
    if offer is None or baseline.offer is None:
        return ConfidencePart(level="low", why=Message("sure.price-unknown"))
    if baseline.assumed:
        return ConfidencePart(level="low", why=Message("sure.machine-assumed"))
    age = (day - offer.as_of).days
    if age < 0:
        return ConfidencePart(level="low", why=Message("sure.read-later", day=str(offer.as_of)))
    if moves_to is None:  # whoever pays it knows it; what other machines cost is in their ranges
        return ConfidencePart(
            level="fair" if offer.is_stale(day) else "good", why=Message("sure.read", days=age)
        )
    if not offer.dated:
        return ConfidencePart(level="low", why=Message("sure.no-date"))
    risen = float(offer.moved(day).high)  # a factor, no amount
    of_old: Level = "fair" if risen <= _STEADY else "low"
    of_age: dict[str, Level] = {"fresh": "good", "ageing": "fair", "old": of_old}
    level = of_age[offer.age(day)]
    if offer.confidence == "low":
        level, read = "low", Message("sure.read-low-confidence", days=age)
    else:
        read = Message("sure.read", days=age)
    if risen <= _STEADY:
        return ConfidencePart(level=level, why=read)
    return ConfidencePart(level=level, why=Message("sure.risen", read=read, share=risen - 1.0))
