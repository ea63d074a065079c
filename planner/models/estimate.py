"""A number with its honest range: no prediction leaves the planner as a bare point."""

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from planner.models.document import Number
from pricing.message import join
from pricing.money import cents


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Between what a speed-up or a time lies, all above 0 and in order.

    Attributes:
        low: its low end.
        mid: expected, or measured.
        high: its high end.

    Raises:
        ValueError: the three are not in order, not finite or not above 0.
    """

    low: Number
    mid: Number
    high: Number

    def __post_init__(self) -> None:
        if not 0.0 < self.low <= self.mid <= self.high < math.inf:  # nor of NaN
            raise ValueError(f"no interval: {self.low}, {self.mid}, {self.high}")


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A predicted number with a 90 % interval.

    Attributes:
        low: the 5 % end.
        mid: the expected value.
        high: the 95 % end.
        basis: the method, and the data behind it.
        weak: whether it reaches beyond what the method was fitted on; never a ground to recommend.

    Raises:
        ValueError: the three are not in order or not finite.
    """

    low: Number
    mid: Number
    high: Number
    basis: str
    weak: bool = False

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.mid <= self.high < math.inf:  # nor of NaN
            raise ValueError(f"no interval: {self.low}, {self.mid}, {self.high} ({self.basis})")

    def spanning(self, further: Iterable["Estimate"], why: str) -> "Estimate":
        """Return the estimate, as wide as further ones reach, and weak where one of them is."""
        spanned = (self, *further)
        return Estimate(
            low=min(estimate.low for estimate in spanned),
            mid=self.mid,
            high=max(estimate.high for estimate in spanned),
            basis=join((self.basis, why)),
            weak=any(estimate.weak for estimate in spanned),
        )

    def times(self, factor: float, basis: str) -> "Estimate":
        """Return the estimate times a number without width, on another basis."""
        return msgspec.structs.replace(
            self, low=self.low * factor, mid=self.mid * factor, high=self.high * factor, basis=basis
        )


def exactly(value: float, basis: str) -> Estimate:
    """Return an estimate without width, for what was declared or measured."""
    return Estimate(low=value, mid=value, high=value, basis=basis)


def within(mid: float, factor: float, basis: str) -> Estimate:
    """Return mid x/÷ factor (factor >= 1): the form that errors of run times take in log space."""
    return Estimate(low=mid / factor, mid=mid, high=mid * factor, basis=basis)


def product(first: Estimate, second: Estimate) -> Estimate:
    """Return the product of independent factors > 0: widths add in quadrature in log space."""
    if second.low == second.high == 1.0 and not second.weak:
        return first
    if first.low == first.high == 1.0 and not first.weak:
        return second
    mid = first.mid * second.mid
    down = math.hypot(math.log(first.mid / first.low), math.log(second.mid / second.low))
    up = math.hypot(math.log(first.high / first.mid), math.log(second.high / second.mid))
    return Estimate(
        low=mid * math.exp(-down),
        mid=mid,
        high=mid * math.exp(up),
        basis=join((first.basis, second.basis)),
        weak=first.weak or second.weak,
    )


def whole(value: Decimal | float) -> float:
    """Return a number for JSON, without a decimal point where it is whole."""
    return int(value) if value == int(value) else float(value)


_Value = TypeVar("_Value", bound=msgspec.Struct)


def as_written(value: _Value) -> _Value:
    """Return values as they are written: dollars in cents, numbers with six significant digits."""
    return msgspec.structs.replace(
        value, **{name: _form(field) for name, field in msgspec.structs.asdict(value).items()}
    )


def _form(field: object) -> object:
    if isinstance(field, Decimal):
        return cents(field)
    if isinstance(field, msgspec.Struct):
        return as_written(field)
    return digits(field) if isinstance(field, float) else field


def digits(value: float) -> float:
    """Return six significant digits, whole numbers without a point."""
    return whole(float(f"{value:.6g}"))


def digits_of(value: float | None) -> float | None:
    """Return six significant digits of what is known."""
    return None if value is None else digits(value)


def digits_if_set(value: float | None) -> float | UnsetType:
    """Return six significant digits of what is known; nothing for a field that is left out."""
    return UNSET if value is None else digits(value)
