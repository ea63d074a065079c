"""A number with its honest range: no prediction leaves the planner as a bare point."""

import math

import msgspec

from planner.models.document import Number


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


def exactly(value: float, basis: str) -> Estimate:
    """Return an estimate without width, for what was declared or measured."""
    return Estimate(low=value, mid=value, high=value, basis=basis)


def within(mid: float, factor: float, basis: str) -> Estimate:
    """Return mid x/÷ factor (factor >= 1): the form that errors of run times take in log space."""
    return Estimate(low=mid / factor, mid=mid, high=mid * factor, basis=basis)


def divide(value: float, by: Estimate, basis: str) -> Estimate:
    """Return value / by: hours from a speed-up; the greater the speed, the fewer the hours."""
    return Estimate(
        low=value / by.high, mid=value / by.mid, high=value / by.low, basis=basis, weak=by.weak
    )


def product(one: Estimate, other: Estimate) -> Estimate:
    """Return the product of independent factors > 0: widths add in quadrature in log space."""
    if other.low == other.high == 1.0 and not other.weak:
        return one
    if one.low == one.high == 1.0 and not one.weak:
        return other
    mid = one.mid * other.mid
    down = math.hypot(math.log(one.mid / one.low), math.log(other.mid / other.low))
    up = math.hypot(math.log(one.high / one.mid), math.log(other.high / other.mid))
    return Estimate(
        low=mid * math.exp(-down),
        mid=mid,
        high=mid * math.exp(up),
        basis=f"{one.basis}; {other.basis}",
        weak=one.weak or other.weak,
    )
