"""Waiting for what comes, however busy this machine is; no test asks how fast it is."""

import time
from collections.abc import Callable

CEILING_S = 120.0
"""After this something hangs; a busy machine needs less."""


def until(holds: Callable[[], object], what: str = "it") -> None:
    """Wait until a condition holds; fail where it does not for two minutes."""
    ends_at = time.monotonic() + CEILING_S
    while not holds():
        assert time.monotonic() < ends_at, f"{what} did not come in {CEILING_S:g} s"
        time.sleep(0.02)
