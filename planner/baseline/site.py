"""Where machines stand: what is known of their power and of the grid."""

from dataclasses import dataclass

from planner.baseline.ranges import GRID_G_PER_KWH, HOST_FRACTION, PUE
from pricing.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the user knows of the place where the machines stand; None = unknown, left out.

    Attributes:
        grid_g_per_kwh: grams of CO2 equivalent for each kWh, >= 0.
        pue: energy of the site over that of its machines, >= 1.
        host_fraction: share of a node's power that is not its GPU boards', 0 to below 1 (0.2 to 0.4
            is usual).

    Raises:
        InputError: a value is outside its range.
    """

    grid_g_per_kwh: float | None = None
    pue: float | None = None
    host_fraction: float | None = None

    def __post_init__(self) -> None:
        given = (
            ("grid intensity (g/kWh)", self.grid_g_per_kwh, GRID_G_PER_KWH),
            ("PUE", self.pue, PUE),
            ("the host's share", self.host_fraction, HOST_FRACTION),
        )
        wrong = [
            f"{what}: {value:g} {refusal}."
            for what, value, allowed in given
            if value is not None and (refusal := allowed.refusal(value))
        ]
        if wrong:
            raise InputError(wrong)

    @property
    def factor(self) -> float:
        """Return energy of the site over that of the GPU boards, as far as it was given."""
        return (self.pue or 1.0) / (1.0 - (self.host_fraction or 0.0))

    @property
    def covers(self) -> str:
        """Return what the energy is of."""
        if self.host_fraction is None and self.pue is None:
            return "GPU boards alone"
        host = "boards and host" if self.host_fraction is not None else "GPU boards"
        return f"{host}, PUE {self.pue:g}" if self.pue is not None else host


UNKNOWN_SITE = Site()
"""Nothing is known of the place: energy is of the boards alone, carbon unknown."""
