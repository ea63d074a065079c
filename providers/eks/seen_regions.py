"""The regions in which a node group was ever made from here, as files of the state folder.

EKS lists by region and cluster, and nothing tells in which of them an account has any. So a region
is noted before the first group is made there, and never forgotten; only those are asked.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

_FOLDER = "eks-regions"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")


def seen_regions(state: Path) -> tuple[str, ...]:
    """Return the regions that were noted, by name; a folder that cannot be read has none."""
    try:
        names = [one.name for one in (state / _FOLDER).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(name for name in names if _REGION.fullmatch(name)))


def note_region(state: Path, region: str) -> None:
    """Note a region, on the disk when this returns.

    Raises:
        OSError: it cannot be written.
    """
    folder = state / _FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(folder / region, os.O_WRONLY | os.O_CREAT, 0o600))
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_used(_: Mapping[str, str], state: Path) -> bool:
    """Return whether a node group was ever made from this state folder."""
    return bool(seen_regions(state))
