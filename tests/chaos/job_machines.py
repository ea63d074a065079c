"""The machines of jobs: what comes over SSH really runs, each in a folder of its own.

The scripts of the steps are ours, so they are run and not played; gpucost there is a stub.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpucost.version import __version__

_STUB = Path(__file__).parents[1] / "gpucost" / "jobs" / "gpucost_stub.sh"
_WITHOUT = ("rsync", "uv", "nvidia-smi", "docker", "aws")
_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
Said = tuple[int, bytes, str]
"""Exit status, standard output, standard error."""


@dataclass(kw_only=True)
class JobMachines:
    """The machines of one trial, by their addresses.

    Attributes:
        folder: of all.
    """

    folder: Path

    def run(self, address: str, command: str, given: bytes) -> Said:
        """Run a command of the shell on one."""
        root = self.folder / address
        root.mkdir(parents=True, exist_ok=True)
        told = {
            "PATH": f"{self._programs()}",
            "GPUCOST_ROOT": str(root),
            "GPUCOST_VERSION": __version__,
            "HOME": str(root),
        }
        done = subprocess.run(
            ("/bin/sh", "-c", command), input=given, capture_output=True, env=told, check=False
        )
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def started(self) -> list[list[str]]:
        """The steps that began on each machine, in order."""
        found = sorted(self.folder.glob("*/var/lib/gpucost/tasks/steps"))
        return [[line.split()[1] for line in one.read_text().splitlines()] for one in found]

    def clear(self) -> None:
        """Forget all machines."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _programs(self) -> Path:
        """A folder with the stub, and what a plain machine has."""
        programs = self.folder.with_name("programs")
        if not programs.is_dir():
            programs.mkdir(parents=True)
            for name, path in _installed():
                (programs / name).symlink_to(path)
            shutil.copy(_STUB, programs / "gpucost")
        return programs


def _installed() -> Iterable[tuple[str, str]]:
    """The programs here, the first of each name, without those that a plain machine lacks."""
    found = {
        entry.name: entry.path
        for folder in reversed(_PATH)
        for entry in os.scandir(folder)
        if entry.name not in (*_WITHOUT, "gpucost")
    }
    return found.items()
