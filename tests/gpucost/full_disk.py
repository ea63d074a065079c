"""A disk without room."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own of 64 KiB, which is full until `filler` is removed."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a full disk can be made by root alone")
    try:
        (folder / "filler").write_bytes(bytes(64 << 10))
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
