"""Host-to-device copies, timed on the GPU by CUDA events."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .process import Probe


def watch(probe: Probe) -> None:
    """Start timing copies once CUDA is in use."""
