"""An option in the making: an offer with actions, its hours, and its bill at each end of them."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from planner.baseline import price
from planner.estimate import Estimate
from planner.spot import Interruptions
from planner.workload import Workload
from pricing.catalog import Catalog
from pricing.offer import Offer
from pricing.quote import Quote

End = Literal["low", "mid", "high"]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An option before ranking.

    Attributes:
        offer: what is rented.
        count: machines.
        actions: codes of actions applied.
        speed: speed-up over today.
        work_hours: hours of useful work in the period.
        work: hours and data of the job today.
        interruptions: of spot capacity; None where there are none or the rate is unknown.
        catalog: for the day.
    """

    offer: Offer
    count: int
    actions: tuple[str, ...]
    speed: Estimate
    work_hours: Estimate
    work: Workload
    interruptions: Interruptions | None
    catalog: Catalog

    @cached_property
    def hours(self) -> Estimate:
        """Machine hours of the period: useful work, and what interruptions add to it."""
        found = self.interruptions
        if found is None:
            return self.work_hours
        low, mid, high = (
            found.billed(getattr(self.work_hours, end), end).total_s / 3600.0
            for end in ("low", "mid", "high")
        )
        basis = f"{self.work_hours.basis}; {found.basis}"
        return Estimate(low=low, mid=mid, high=high, basis=basis, weak=self.work_hours.weak)

    @cached_property
    def quote(self) -> Quote:
        """The bill at the expected hours."""
        return self._bill("mid")

    def cost_at(self, end: End) -> Decimal:
        """Return the exact bill at one end of the hours."""
        return self.quote.exact if end == "mid" else self._bill(end).exact

    def _bill(self, end: End) -> Quote:
        work_h: float = getattr(self.work_hours, end)
        extra = self.interruptions.billed(work_h, end) if self.interruptions else None
        return price(self.offer, self.count, work_h, self.work, self.catalog, extra)
