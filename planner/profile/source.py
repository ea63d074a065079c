"""The GPU that a profile was measured on."""

from planner.profile.model import Profile
from pricing import hardware
from pricing.errors import InputError, UnknownGpuError
from pricing.hardware import Gpu


def source_gpu(profile: Profile) -> Gpu:
    """Return the GPU that was profiled.

    Raises:
        InputError: the profile names none.
        UnknownGpuError: it is not in the hardware table; the nearest are named.
    """
    if profile.hardware.gpu is None:
        raise InputError(
            f"{profile.job.name}: hardware.gpu is missing, so no other GPU can be compared; "
            "add it to the profile, give `gpucost import --gpu MODEL`, or say where it runs: "
            "--current PROVIDER/TYPE."
        )
    try:
        return hardware.resolve(profile.hardware.gpu, memory_gib=profile.hardware.gpu_memory_gib)
    except UnknownGpuError as error:
        raise UnknownGpuError(
            f"{profile.job.name}: hardware.gpu: {problem}" for problem in error.problems
        ) from error
