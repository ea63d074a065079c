"""The user's own record of predictions and outcomes: a private file that nothing sends anywhere."""

import fcntl
import os
from pathlib import Path

from planner.models.track_record import (
    PastPrediction,
    TrackRecord,
    outcome_line,
    parse_outcomes,
    track_record,
)
from pricing.errors import InputError
from pricing.message import Message
from providers.private_files import open_private, private_folder

NAME = "outcomes.jsonl"


def record_outcome(folder: Path, outcome: PastPrediction) -> bool:
    """Add an outcome to the record in the state folder; return whether it is new there.

    The same runs held against the same option are recorded once. A last line that a crash cut off
    is taken out.

    Raises:
        NotOursError: the folder or the file is not the user's own.
        OSError: it cannot be written.
    """
    private_folder(folder)
    handle = open_private(folder / NAME, os.O_RDWR)
    with os.fdopen(handle, "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        data = stream.read()
        complete = data[: data.rfind(b"\n") + 1]
        if f'"id":"{outcome.id}"'.encode() in complete:
            return False
        stream.truncate(len(complete))
        stream.seek(len(complete))
        stream.write(outcome_line(outcome).encode())
        stream.flush()
        os.fsync(stream.fileno())
    return True


def read_outcomes(path: Path) -> tuple[PastPrediction, ...]:
    """Return the outcomes in a record; none where there is no such file yet.

    Raises:
        InputError: it cannot be read, or a line of it is not an outcome.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    return parse_outcomes(text, str(path))


def read_history(name: str) -> TrackRecord:
    """Return what the record in a file teaches.

    Raises:
        InputError: there is no such file, or it is not a record of outcomes.
    """
    if not name or not Path(name).is_file():
        raise InputError(Message("input.no-history", name=repr(name)))
    return track_record(Path(name).name, read_outcomes(Path(name)))
