"""Parts of a GPU beside its compute that more work on it uses more of."""

from collections.abc import Callable

from planner.profile.model import Profile
from planner.signals.signals import pcie_share

PARTS: tuple[tuple[str, Callable[[Profile], float | None]], ...] = (
    ("memory bandwidth", lambda profile: profile.mean("util.dram_active")),
    ("PCIe link", pcie_share),
    ("video encoder", lambda profile: profile.mean("util.encoder")),
    ("video decoder", lambda profile: profile.mean("util.decoder")),
)
"""Each with the share of it that a job uses, 0 to 1; what was not measured is unused."""
