"""Whose a job is, as labels of its source tell it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLabels:
    """Who a job's dollars are counted for.

    Attributes:
        team: whose budget pays.
        owner: who answers for it.
        cost_center: where it is booked.
    """

    team: str | None = None
    owner: str | None = None
    cost_center: str | None = None
