"""The probe: what runs inside the user's training process and writes down its steps.

The folder `path` is put first on the child's PYTHONPATH. It holds `sitecustomize.py`, which Python
runs at start, and the package `gpucost_probe`: standard library only, Python 3.8 or newer, because
the child may live in another environment. This package here, which belongs to gpucost itself, only
knows how to start a child with it. What the probe writes is described in
`gpucost_probe/__init__.py`.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).resolve().parent / "path"
FOLDER_VARIABLE = "GPUCOST_PROBE_DIR"
STACKS_VARIABLE = "GPUCOST_PROBE_STACKS"
"""Set to 0, no stack is looked at, neither from inside nor from outside."""
APPLY = "apply.json"
"""In the folder of events: settings by action code, where something is to be applied."""
RUN_EVENTS = "run.jsonl"
"""In the same folder: events of who starts the child, beside those of its processes."""
_REACHED = "reached"
_TRACER = "tracer"  # whose descendants look at stacks
_ROOM_BYTES = 1 << 16
_LANGUAGE = "LC_CTYPE"


def child_environment(environ: Mapping[str, str], events_dir: Path) -> dict[str, str]:
    """Return what must be added to the environment of a child so that the probe starts in it.

    Args:
        environ: the environment that the child would get; its PYTHONPATH is kept, after ours.
        events_dir: existing folder for the event files.
    """
    entries = [
        entry
        for entry in environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry and entry != str(PATH)
    ]
    return {
        "PYTHONPATH": os.pathsep.join((str(PATH), *entries)),
        FOLDER_VARIABLE: str(events_dir.resolve()),
    }


def callers_environment(environ: Mapping[str, str], began_with: bytes) -> dict[str, str]:
    """Return the environment as our caller set it.

    Python adds LC_CTYPE to its own where the locale is C (PEP 538).

    Args:
        environ: ours now.
        began_with: ours as this process began with it: /proc/self/environ.
    """
    names = {entry.partition(b"=")[0] for entry in began_with.split(b"\0")}
    coerced = began_with and os.fsencode(_LANGUAGE) not in names
    return {name: value for name, value in environ.items() if name != _LANGUAGE or not coerced}


def events_folder(environ: Mapping[str, str]) -> str:
    """Make a folder for the event files and return it; its parent is to be removed in the end.

    A job may change its user (`su`, `setpriv`): every user may write into it, but only who is told
    its name finds it.

    Args:
        environ: says where temporary files lie: TMPDIR, TEMP, TMP.

    Raises:
        OSError: it can be made nowhere.
    """
    places = (*(environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp")  # noqa: S108 - as tempfile does
    problem: OSError = FileNotFoundError("no folder for temporary files")
    for folder in filter(None, places):
        outer = Path(folder).absolute() / f"gpucost-probe-{os.urandom(6).hex()}"
        inner = outer / os.urandom(12).hex()
        reached = inner / _REACHED
        try:
            outer.mkdir(0o700)
            inner.mkdir()
            inner.chmod(0o1777)  # of every user
            reached.write_bytes(bytes(_ROOM_BYTES))  # a full disk lets files be made, and no more
            reached.write_bytes(b"")
            reached.chmod(0o666)
            (inner / _TRACER).write_text(str(os.getpid()), encoding="ascii")
            outer.chmod(0o711)  # to be passed through, not listed
        except OSError as error:
            problem = error
            shutil.rmtree(outer, ignore_errors=True)
        else:
            return str(inner)
    raise problem
