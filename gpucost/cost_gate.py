"""The gates of a plan: exit 7 where a cost is over a limit or has grown too much."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from gpucost.files.plan_file import load_plan
from gpucost.views.output import Output
from planner.documents.selection import recommended_usd
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import show

FAILED_OVER = 7
_NOT_COMPARED = "note: a part of the recommended bill has no known price and is not compared."


@dataclass(frozen=True, slots=True, kw_only=True)
class CostGate:
    """What a plan may cost.

    Attributes:
        limit_usd: at most so much in the period; None = no limit.
        increase: more than the base plan's by at most so much, and whether it is a fraction of it;
            of what is paid today and of what is recommended, each against the same of the base.
        base: file of the plan that is compared with.

    Raises:
        InputError: one of `increase` and `base` is given without the other.
    """

    limit_usd: Decimal | None = None
    increase: tuple[Decimal, bool] | None = None
    base: str | None = None

    def __post_init__(self) -> None:
        if (self.increase is None) != (self.base is None):
            raise InputError(Message("input.increase-of-what"))

    def check(self, plan: Plan, output: Output) -> int:
        """Return the exit code; print on standard error what trips, quiet or not.

        Raises:
            InputError: a cost is not known, or the base plan is for another period.
        """
        if self.limit_usd is None and self.base is None:
            return 0
        total = plan.recommended
        if total is not None and total.unknown:
            raise InputError(Message("input.gate-unknown", jobs=total.unknown))
        if total is not None and total.at_least:
            output.say(_NOT_COMPARED)
        usd = recommended_usd(plan)
        reasons = [*self._over(usd, plan.period), *self._grown(_paid_usd(plan), usd, plan.period)]
        for reason in reasons:
            output.insist(f"gpucost: {reason}")
        return FAILED_OVER if reasons else 0

    def _over(self, total: Decimal, period: str) -> list[str]:
        if self.limit_usd is None or total <= self.limit_usd:
            return []
        cost = f"the recommended cost, ${show(total)} a {period}"
        return [f"{cost}, is above --fail-over ${show(self.limit_usd)}."]

    def _grown(self, paid: Decimal | None, recommended: Decimal, period: str) -> Iterator[str]:
        if self.base is None or self.increase is None:
            return
        base = load_plan(self.base)
        if base.period != period:
            plans = {"base": self.base or "", "before": base.period, "now": period}
            raise InputError(Message("input.periods-differ", **plans))
        amount, is_share = self.increase
        allowed = f"{amount * 100:f}%" if is_share else f"${show(amount)}"
        compared = {
            "the recommended cost": (recommended_usd(base), recommended),
            "today's cost": (_paid_usd(base), paid),
        }
        for name, (before, total) in compared.items():
            if before is None or total is None:
                continue
            if total > (before * (1 + amount) if is_share else before + amount):
                more = f"${show(total - before)} more than the ${show(before)} of {self.base}"
                figures = {"total": show(total), "period": period, "more": more, "allowed": allowed}
                yield Message("input.increase", name=name, **figures)


def _paid_usd(plan: Plan) -> Decimal | None:
    """Return what all jobs cost today; None in a plan of an earlier version."""
    return None if plan.recommended is None else plan.recommended.cost_before
