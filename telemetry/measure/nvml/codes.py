"""What NVML's return codes mean for a reading: gone, never to be had, or worth another try.

Codes: nvmlReturn_t of NVIDIA's NVML API reference.
"""

from enum import Enum, IntEnum
from typing import Any, TypeAlias

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
