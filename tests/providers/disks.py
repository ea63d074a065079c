"""A real disk of a few hundred kilobytes, and the end of its room."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def a_small_disk(folder: Path, size: str = "512k") -> Iterator[Path | None]:
    """Mount a file system of that size; None where that is not allowed here."""
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={size},mode=0700", "none", str(folder))
    done = subprocess.run(("mount", *options), check=False, capture_output=True)
    if done.returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(("umount", "--lazy", str(folder)), check=True)


def fill_up(disk: Path) -> None:
    """Leave not a byte on a disk."""
    handle = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (65536, 4096, 1):
        with suppress(OSError):
            while True:
                os.write(handle, b"x" * size)
    os.close(handle)
