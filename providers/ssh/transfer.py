"""Files to a machine and back: by rsync where both sides have it, else as a tar stream.

Sending again does no harm and goes on where rsync was cut off. Only files that are named are sent;
of what comes back nothing leaves the folder that it is put into.
"""

import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from pricing.errors import ProviderError
from providers.ssh.connection import ROOT
from providers.ssh.shell import LostConnectionError, RemoteShell, destination_of, ssh_words

_LOST = (10, 12, 30, 35, 255)
"""Exit statuses of rsync that tell of the connection: sockets, stream, timeouts; of ssh: 255."""

_LAST_WORDS = 600
_WORKING = f'touch "{ROOT}/run/gpucost/working/$$" 2>/dev/null'
"""Tells the idle rule of a machine that somebody works there as long as this shell lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How files go to a machine and come back.

    Attributes:
        shell: of the machine.
        rsync: whether the machine has rsync.
        progress: whether a person looks on, who sees on standard error how far it is.
    """

    shell: RemoteShell
    rsync: bool
    progress: bool = False

    def send(self, folder: Path, names: Sequence[str], target: str) -> None:
        """Put files and links of a folder into a folder of the machine, which is there.

        Args:
            folder: here.
            names: paths from there.
            target: on the machine.

        Raises:
            LostConnectionError: some may be there.
            ProviderError: something else keeps them from arriving, in its words.
        """
        if not names:
            return
        if self.rsync and has_rsync():
            listed = "\0".join(names).encode("utf-8", "surrogateescape")
            to = f"{self._there[0]}:{target}/"
            there = f"--rsync-path={_WORKING}; rsync"
            self._rsync((there, "--files-from=-", "--from0", f"{folder}/", to), listed)
            return

        def pack(stream: IO[bytes]) -> None:
            with tarfile.open(fileobj=stream, mode="w|", dereference=False) as packed:
                for name in names:
                    packed.add(folder / name, name, recursive=False)

        done = self.shell.run(f"{_WORKING}; tar -x -f - -C {shlex.quote(target)}", pack)
        if done.code != 0:
            raise ProviderError(f"{target}: {_last(done.err)}")

    def fetch(self, source: str, name: str, target: Path) -> None:
        """Bring a file or folder of the machine into a folder here, under the same path.

        Args:
            source: folder on the machine.
            name: path from there.
            target: folder here, made where it is missing.

        Raises:
            LostConnectionError: some of it may have come.
            ProviderError: it is not there, or cannot be written here.
        """
        target.mkdir(parents=True, exist_ok=True)
        if self.rsync and has_rsync():
            self._rsync(("--relative", f"{self._there[0]}:{source}/./{name}", f"{target}/"))
            return

        def unpack(stream: IO[bytes]) -> None:
            with tarfile.open(fileobj=stream, mode="r|") as packed:
                packed.extractall(target, filter="data")

        words = ("tar", "-c", "-f", "-", "-C", source, "--", name)
        try:
            done = self.shell.read_from(shlex.join(words), unpack)
        except tarfile.ReadError as error:
            self.shell.close()
            raise LostConnectionError(f"{name}: {error}") from error
        except tarfile.TarError as error:
            raise ProviderError(f"{name}: {error}") from error
        if done.code != 0:
            raise ProviderError(f"{name}: {_last(done.err)}")

    @property
    def _there(self) -> tuple[str, str]:
        return destination_of(self.shell.door, self.shell.address)

    def _rsync(self, words: Sequence[str], given: bytes = b"") -> None:
        connect = (*ssh_words(self.shell.door), "-p", self._there[1])
        command = (
            "rsync",
            "--archive",
            "--no-owner",
            "--no-group",
            "--protect-args",
            "--partial",
            "--safe-links" if not given else "--links",
            "--timeout=120",
            *(("--info=progress2",) if self.progress else ()),
            f"--rsh={' '.join(_for_rsync(word) for word in connect)}",
            *words,
        )
        out = sys.__stderr__ if self.progress else subprocess.DEVNULL
        done = subprocess.run(  # noqa: S603 - words of ours; nothing of them is a shell's
            command, input=given, check=False, stdout=out, stderr=subprocess.PIPE
        )
        said = _last(done.stderr.decode("utf-8", "replace"))
        if done.returncode in _LOST:
            raise LostConnectionError(f"rsync lost the connection ({done.returncode}): {said}")
        if done.returncode != 0:
            raise ProviderError(f"rsync ended with {done.returncode}: {said}")


def _for_rsync(word: str) -> str:
    """Quote a word of --rsh: rsync splits it at blanks, outside of quotes, which it doubles."""
    return "'" + word.replace("'", "''") + "'"


@cache
def has_rsync() -> bool:
    """Return whether this computer has an rsync that knows what is asked of it: version 3."""
    found = shutil.which("rsync")
    if found is None:
        return False
    asked = (found, "--version")
    told = subprocess.run(asked, check=False, capture_output=True, text=True).stdout  # noqa: S603 - the same
    return told.startswith("rsync  version 3")


def _last(text: str) -> str:
    return " ".join(text.split())[-_LAST_WORDS:] or "it says nothing"
