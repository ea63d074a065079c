"""Where the console script starts: our own folder first on the path, and errors for people."""

import sys
from pathlib import Path


def main() -> None:
    """Run the command line and leave with the contract's exit code.

    The packages have generic names, so the folder that gpucost is installed in goes first on the
    path: a `planner.py` elsewhere on PYTHONPATH cannot take the place of ours.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from gpucost.cli import run  # noqa: PLC0415 - after the path is right

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
