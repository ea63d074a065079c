"""Which providers this version can launch on."""

from providers import LAUNCHABLE


def launchable() -> frozenset[str]:
    """Return the names of the providers that `gpucost provision` can launch on."""
    return LAUNCHABLE
