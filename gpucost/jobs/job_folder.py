"""What this computer keeps of a job in the state folder: its request, and logs that came back."""

import os
from dataclasses import dataclass
from pathlib import Path

from gpucost.jobs.request import JobRequest
from gpucost.machines.state import job_request_file
from pricing.errors import InputError, RefusedError
from providers.private_files import open_private, private_folder, read_private, write_private

_REQUEST = "request.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolder:
    """The folder of a job, for its owner alone: a command may hold a secret.

    Attributes:
        path: of the folder.
    """

    path: Path

    def keep(self, request: JobRequest) -> None:
        """Write the request down.

        Raises:
            RefusedError: it cannot be written.
        """
        try:
            for folder in (self.path.parent.parent, self.path.parent, self.path):
                private_folder(folder)
            write_private(self.path / _REQUEST, request.to_text())
        except OSError as error:
            raise RefusedError(f"{self.path}: cannot be written: {error.strerror}.") from error

    def request(self) -> JobRequest | None:
        """Return the request; None where no job was asked for.

        Raises:
            InputError: the file is damaged.
        """
        try:
            return JobRequest.from_text(read_private(self.path / _REQUEST))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"{self.path / _REQUEST}: cannot be read: {error}.") from error

    def log_file(self, step: str, rank: int) -> Path:
        """Return where the log of a step is kept."""
        return self.path / (f"{step}.log" if rank == 0 else f"{step}-{rank}.log")

    def write_log(self, step: str, rank: int, at: int, data: bytes) -> None:
        """Keep a part of a log, from byte `at` on; what cannot be kept is left out."""
        try:
            handle = open_private(self.log_file(step, rank), os.O_WRONLY)
            try:
                os.ftruncate(handle, at)
                os.pwrite(handle, data, at)
            finally:
                os.close(handle)
        except OSError:
            return

    def drop(self) -> None:
        """Remove the request of a launch that came to nothing."""
        (self.path / _REQUEST).unlink(missing_ok=True)


def job_folder(run: str) -> JobFolder:
    """Return the folder of a run's job."""
    return JobFolder(path=job_request_file(run).parent)
