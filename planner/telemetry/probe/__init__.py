"""The probe: what runs inside the user's training process and writes down its steps.

The folder `path` is put first on the child's PYTHONPATH. It holds `sitecustomize.py`, which Python
runs at start, and the package `gpucost_probe`: standard library only, Python 3.8 or newer, because
the child may live in another environment. This package here, which belongs to gpucost itself, only
knows how to start a child with it. What the probe writes is described in
`gpucost_probe/__init__.py`.
"""

import os
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).resolve().parent / "path"
FOLDER_VARIABLE = "GPUCOST_PROBE_DIR"


def child_environment(environ: Mapping[str, str], events_dir: Path) -> dict[str, str]:
    """Return what must be added to the environment of a child so that the probe starts in it.

    Args:
        environ: the environment that the child would get; its PYTHONPATH is kept, after ours.
        events_dir: existing folder for the event files.
    """
    others = [
        entry
        for entry in environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry and entry != str(PATH)
    ]
    return {
        "PYTHONPATH": os.pathsep.join((str(PATH), *others)),
        FOLDER_VARIABLE: str(events_dir.resolve()),
    }
