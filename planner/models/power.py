"""Board power: under a cap, and on another GPU.

Under a cap with x = max(0, P0 / cap - 1), P0 the power without it:
time = t0 (1 + a x + b x^2), power = min(P0, c cap). On another GPU: the same fraction of
(TDP - idle) as on the measured one. The figures are fitted (`planner/models/data/host.toml`).
"""

import statistics
from dataclasses import dataclass

import msgspec

from planner.models.coefficients import coefficients
from planner.models.document import Number
from planner.models.estimate import Estimate, within
from planner.profile.model import Profile
from pricing.hardware import Gpu, find, gpus
from pricing.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class CapLaw:
    """What a power cap does.

    Attributes:
        linear: a.
        square: b.
        reached: c, the share of the cap that is drawn.
        slowest: x beyond which nothing was measured.
    """

    linear: float
    square: float
    reached: float
    slowest: float = 2.5

    def slowdown(self, power_w: float, cap_w: float) -> float:
        """Return time under the cap over time without it, >= 1."""
        over = min(self.slowest, max(0.0, power_w / cap_w - 1.0))
        return 1.0 + self.linear * over + self.square * over * over

    def power_w(self, power_w: float, cap_w: float) -> float:
        """Return the power drawn under the cap."""
        return min(power_w, self.reached * cap_w)

    def energy(self, power_w: float, cap_w: float) -> float:
        """Return energy under the cap over energy without it."""
        return self.slowdown(power_w, cap_w) * self.power_w(power_w, cap_w) / power_w


def cap_law() -> CapLaw:
    """Return the law as shipped."""
    row = coefficients("host")["power_cap"]
    return CapLaw(linear=row["linear"], square=row["square"], reached=row["reached"])


class PowerCap(msgspec.Struct, frozen=True, kw_only=True):
    """A power limit that saves energy at little loss: watts, slowdown, share of the energy.

    Attributes:
        cap_w: the limit of a GPU.
        slowdown: of the job [x].
        energy_fraction: that is used, of today's.
    """

    cap_w: Number
    slowdown: Estimate
    energy_fraction: Estimate


class EnergyUse(msgspec.Struct, frozen=True, kw_only=True):
    """Energy and carbon of the period; None where unknown.

    Attributes:
        kwh: energy [kWh].
        kgco2e: carbon [kg CO2e].
    """

    kwh: Estimate | None = None
    kgco2e: Estimate | None = None


_SLOWEST = 1.1  # a cap that costs more than a tenth of the time is not a saving: machines cost more
_LEAST_SAVING = 0.97  # of the energy; less is not worth a setting
_SHARES = tuple(share / 100.0 for share in range(60, 100, 5))  # of the board's limit


def best_cap(power_w: float, limit_w: float) -> PowerCap | None:
    """Return the cap that takes the least energy while the job slows by a tenth at most.

    None where none saves: the job draws less than the caps.

    Args:
        power_w: mean power of the board without a cap.
        limit_w: the board's limit.
    """
    law, factor = cap_law(), float(coefficients("host")["power_cap"]["factor"])
    caps = [
        share * limit_w for share in _SHARES if law.slowdown(power_w, share * limit_w) <= _SLOWEST
    ]
    cap_w = min(caps, key=lambda watts: law.energy(power_w, watts), default=None)
    if cap_w is None or law.energy(power_w, cap_w) > _LEAST_SAVING:
        return None
    slowdown, basis = law.slowdown(power_w, cap_w), Message("law.power-cap")
    return PowerCap(
        cap_w=cap_w,
        slowdown=Estimate(low=1.0, mid=slowdown, high=slowdown * factor, basis=basis),
        energy_fraction=within(law.energy(power_w, cap_w), factor, basis),
    )


def cap_that_saves(profile: Profile) -> PowerCap | None:
    """Return the best cap for a measured job; None where its power is unknown, or none saves."""
    power_w, gpu = profile.mean("power.board_w"), find(profile.hardware.gpu)
    limit_w = profile.mean("power.limit_w") or (gpu.tdp_w if gpu else None)
    return best_cap(power_w, limit_w) if power_w and limit_w else None


# Idle power differs by kind of memory: boards with stacked memory idle at a smaller share.
_STACKED = ("P100", "V100", "A100", "H100", "H200", "GH200", "B200", "GB200", "B300", "MI")


def idle_fraction(name: str) -> float:
    """Return the typical share of TDP that a GPU idles at: the median of like GPUs measured."""
    stacked = name.startswith(_STACKED)
    return statistics.median(
        gpu.idle_w / gpu.tdp_w
        for gpu in gpus().values()
        if gpu.idle_w and gpu.tdp_w and gpu.name.startswith(_STACKED) == stacked
    )


def idle_w(gpu: Gpu) -> float | None:
    """Return a GPU's idle power: measured, else the typical share of its TDP; None without one."""
    if gpu.idle_w is not None or gpu.tdp_w is None:
        return gpu.idle_w
    return idle_fraction(gpu.name) * gpu.tdp_w


def other_gpu_factor() -> float:
    """Return the factor x/: of the 90 % interval of power on another GPU."""
    return float(coefficients("host")["other_gpu_power_factor"])
