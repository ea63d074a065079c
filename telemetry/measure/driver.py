"""The NVIDIA driver: what the return codes of NVML mean, and whether the driver answers at all.

Whether it answers is asked before the job starts, in a process of its own: a driver that hangs, or
takes long to wake its devices, does not keep the job waiting. Without an answer in time the job
starts, and the sampler keeps asking.

Codes: nvmlReturn_t of NVIDIA's NVML API reference.
"""

import contextlib
import os
import select
import signal
import tomllib
from enum import Enum, IntEnum
from importlib.resources import files
from typing import Any, TypeAlias

from telemetry.measure.command import let_go

WITHOUT = "To measure without a GPU: gpucost profile --no-gpu -- COMMAND"

Nvml: TypeAlias = Any  # the module pynvml, initialised, and its values: it has no types
Handle: TypeAlias = Any  # of a device or a MIG instance


class Code(IntEnum):
    """The codes that are told apart here."""

    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    DRIVER_NOT_LOADED = 9
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    GPU_NOT_FOUND = 28


class CodeVerdict(Enum):
    """What follows from a failed call."""

    GONE = "the device will answer nothing any more"
    NEVER = "this call will not succeed on this device"
    LATER = "the next try may succeed"


LOST = {
    Code.GPU_IS_LOST: "fell off the bus",
    Code.RESET_REQUIRED: "needs a reset",
    Code.GPU_NOT_FOUND: "is no longer there",
}
LACKING = {
    Code.NOT_SUPPORTED: "the device does not offer it",
    Code.INVALID_ARGUMENT: "the device does not offer it",
    Code.NO_PERMISSION: "this user may not read it",
    Code.FUNCTION_NOT_FOUND: "this driver does not have it; a newer one may",
    Code.ARGUMENT_VERSION_MISMATCH: "this driver does not have it; a newer one may",
    Code.DEPRECATED: "this driver does not have it any more",
}


def failures(nvml: Nvml) -> tuple[type[Exception], ...]:
    """Return what calls of pynvml raise.

    AttributeError: an older package of that name stands in the same environment and lacks the call.
    """
    mismatch: type[Exception] = getattr(nvml, "NVMLLibraryMismatchError", AttributeError)
    return (nvml.NVMLError, mismatch, AttributeError)


def code_of(error: Nvml) -> int:
    """Return the code of what a call of pynvml raised."""
    # The others, of functions that the library or the package does not have, carry none.
    return int(getattr(error, "value", Code.FUNCTION_NOT_FOUND))


def verdict(code: int) -> CodeVerdict:
    """Return what a failed call means; codes that are not listed are worth another try."""
    if code in LOST:
        return CodeVerdict.GONE
    return CodeVerdict.NEVER if code in LACKING else CodeVerdict.LATER


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
        receiver, sender = os.pipe()
        pid = os.fork()
    except OSError:
        return None  # nothing to ask with: the sampler says what it finds
    if pid == 0:
        try:
            let_go(errors=True)
            os.write(sender, _init_code().to_bytes(_BYTES, "little"))
        finally:
            os._exit(0)
    os.close(sender)
    answered, _, _ = select.select([receiver], [], [], within_s)
    answer = os.read(receiver, _BYTES) if answered else b""
    os.close(receiver)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0 if answered else os.WNOHANG)
    code = int.from_bytes(answer, "little")
    return _sentence(code) if code else None


def _init_code() -> int:
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

    return refusal(pynvml.NVMLError(code))


def refusal(error: Nvml) -> str:
    """Return why the driver refused to be opened, and what to type next."""
    text = (files("telemetry.measure") / "refusals.toml").read_text(encoding="utf-8")
    for code, meaning in tomllib.loads(text).items():
        if error.value == Code[code]:
            return f"{meaning} {WITHOUT}"
    return (
        f"the NVIDIA driver refused ({error}), so no GPU can be read. Try `nvidia-smi`. {WITHOUT}"
    )
