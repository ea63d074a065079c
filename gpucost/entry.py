"""Where the console script starts: our own folder first on the path, and errors for people."""

import gc
import os
import sys
from io import TextIOWrapper
from pathlib import Path

# A command lives for a second: looking through a whole catalog for cycles every 700 objects costs
# a tenth of that and frees nothing.
_OBJECTS_A_COLLECTION = 50_000


def main() -> None:
    """Run the command line and leave with the contract's exit code.

    The packages have generic names, so the folder that gpucost is installed in goes first on the
    path: a `planner.py` elsewhere on PYTHONPATH cannot take the place of ours.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller (2>&-)
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 still gets text
    try:
        from gpucost.cli import run  # noqa: PLC0415 - after the path is right

        code = run(sys.argv[1:])
        if code < 0:  # a measured command was ended by a signal
            from telemetry.measure.command import leave_as  # noqa: PLC0415 - the same

            leave_as(code)
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
