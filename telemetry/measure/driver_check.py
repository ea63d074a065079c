"""Asks before the job starts whether the NVIDIA driver answers at all; quickly, and never in vain.

The question is put in a process of its own: a driver that hangs, or takes long to wake its devices,
does not keep the job waiting. Without an answer in time the job starts, and the sampler asks on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

from telemetry.measure.command.witness import let_go
from telemetry.measure.nvml.codes import Code

_WITHIN_S = 0.25
_LIBRARY = "libnvidia-ml.so.1"
_NO_ATTACH = 2  # NVML_INIT_FLAG_NO_ATTACH: no device is woken
_BYTES = 4


def driver_problem(within_s: float = _WITHIN_S) -> str | None:
    """Return why the driver refuses, in a sentence; None where it answers, or says nothing in time.

    Args:
        within_s: the longest time to wait for it.
    """
    try:
        told, tell = os.pipe()
        pid = os.fork()
    except OSError:
        return None  # nothing to ask with: the sampler says what it finds
    if pid == 0:
        try:
            let_go(errors=True)
            os.write(tell, _asked().to_bytes(_BYTES, "little"))
        finally:
            os._exit(0)
    os.close(tell)
    answered, _, _ = select.select([told], [], [], within_s)
    answer = os.read(told, _BYTES) if answered else b""
    os.close(told)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0 if answered else os.WNOHANG)
    code = int.from_bytes(answer, "little")
    return _sentence(code) if code else None


def _asked() -> int:
    import ctypes  # noqa: PLC0415 - in this process alone

    try:
        library = ctypes.CDLL(_LIBRARY)
        return int(library.nvmlInitWithFlags(_NO_ATTACH))
    except OSError:
        return Code.LIBRARY_NOT_FOUND
    except AttributeError:
        return Code.FUNCTION_NOT_FOUND


def _sentence(code: int) -> str:
    import pynvml  # noqa: PLC0415 - only where it refuses

    from telemetry.measure.nvml.reader import refusal  # noqa: PLC0415 - the same

    return refusal(pynvml.NVMLError(code))
