"""The gates of a plan: exit 7 where the recommended cost is over a limit or has grown too much."""

from dataclasses import dataclass
from decimal import Decimal

from gpucost.files.plan_file import load_plan
from gpucost.views.output import Output
from planner.documents.selection import recommended_usd
from planner.plan.draft import PlanDraft
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.money import show

FAILED_OVER = 7
_NOT_COMPARED = "note: a part of the recommended bill has no known price and is not compared."


@dataclass(frozen=True, slots=True, kw_only=True)
class CostGate:
    """What a plan may cost.

    Attributes:
        limit_usd: at most so much in the period; None = no limit.
        increase: more than the base plan's by at most so much, and whether it is a fraction of it.
        base: file of the plan that is compared with.

    Raises:
        InputError: one of `increase` and `base` is given without the other.
    """

    limit_usd: Decimal | None = None
    increase: tuple[Decimal, bool] | None = None
    base: str | None = None

    def __post_init__(self) -> None:
        if (self.increase is None) != (self.base is None):
            raise InputError(
                "--fail-over-increase compares with an earlier plan: give both, such as "
                "--fail-over-increase 10% --base plan.json."
            )

    def check(self, plan: PlanDraft, output: Output) -> int:
        """Return the exit code; print on standard error what trips, quiet or not.

        Raises:
            InputError: a cost is not known, or the base plan is for another period.
        """
        if self.limit_usd is None and self.base is None:
            return 0
        total = plan.recommended
        if total.unknown:
            raise InputError(
                f"--fail-over cannot be checked: the cost of {', '.join(total.unknown)} is not "
                "known; name today's machine with --machine, or its hourly price with "
                "--price."
            )
        if total.at_least:
            output.say(_NOT_COMPARED)
        return self._exit_code(total.mid, plan.period, output)

    def check_written(self, plan: Plan, output: Output) -> int:
        """Return the exit code for a plan that was read back; print as `check` does.

        Raises:
            InputError: a cost is not known, or the base plan is for another period.
        """
        if self.limit_usd is None and self.base is None:
            return 0
        total = plan.recommended
        if total is not None and total.at_least:
            output.say(_NOT_COMPARED)
        return self._exit_code(recommended_usd(plan), plan.period, output)

    def _exit_code(self, total: Decimal, period: str, output: Output) -> int:
        reasons = [*self._over(total, period), *self._grown(total, period)]
        for reason in reasons:
            output.insist(f"gpucost: the recommended cost, ${show(total)} {reason}")
        return FAILED_OVER if reasons else 0

    def _over(self, total: Decimal, period: str) -> list[str]:
        if self.limit_usd is None or total <= self.limit_usd:
            return []
        return [f"a {period}, is above --fail-over ${show(self.limit_usd)}."]

    def _grown(self, total: Decimal, period: str) -> list[str]:
        if self.base is None or self.increase is None:
            return []
        base = load_plan(self.base)
        if base.period != period:
            raise InputError(
                f"{self.base} is a plan a {base.period} and this one a {period}; their costs "
                "cannot be compared."
            )
        before, (amount, is_share) = recommended_usd(base), self.increase
        limit = before * (1 + amount) if is_share else before + amount
        if total <= limit:
            return []
        allowed = f"{amount * 100:f}%" if is_share else f"${show(amount)}"
        more = f"${show(total - before)} more than the ${show(before)} of {self.base}"
        return [f"a {period}, is {more}; --fail-over-increase allows {allowed}."]
