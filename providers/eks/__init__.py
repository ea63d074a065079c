"""Managed node groups of Amazon EKS clusters, through boto3."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from providers.aws import LATE_S, SCHEDULES
from providers.private_files import sync_folder
from providers.provider import Provider, SelfEnd

_FOLDER = "eks-regions"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")


def seen_regions(state: Path) -> tuple[str, ...]:
    """Return the regions that were noted, by name; a folder that cannot be read has none."""
    try:
        names = [file.name for file in (state / _FOLDER).iterdir()]
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
    sync_folder(folder)


def is_used(_: Mapping[str, str], state: Path) -> bool:
    """Return whether a node group was ever made from this state folder."""
    return bool(seen_regions(state))


PROVIDER = Provider(
    name="eks",
    address="https://eks.us-east-1.amazonaws.com",
    endpoint="AWS_ENDPOINT_URL",
    title="Amazon EKS",
    cloud="providers.eks.cloud",
    offered=False,
    end=SelfEnd(
        kind="none",
        outside=SCHEDULES,
        outside_s=LATE_S,
        lacks=(
            "a node that powers off is replaced by its group, and no node is given the right to "
            "delete groups"
        ),
    ),
    page="https://console.aws.amazon.com/eks",
    pools_of="aws",
    is_used=is_used,
    not_in_total="the nodes' disks, load balancers and traffic are not in the total",
)
