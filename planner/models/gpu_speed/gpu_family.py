"""The generation whose kernels a GPU shares: what is measured on one member tells of the others."""

from pricing.hardware import Gpu, gpus


def family(gpu: Gpu) -> str:
    """Return the generation of a GPU; B200, GB200 and B300 are one.

    Consumer and workstation boards of Blackwell are another (compute capability 12): they have
    none of the tensor memory that kernels of the data-centre boards are written for.
    """
    if not gpu.architecture.startswith("Blackwell"):
        return gpu.architecture
    return "Blackwell RTX" if (gpu.compute_capability or "").startswith("12") else "Blackwell"


def families(names: frozenset[str]) -> frozenset[str]:
    """Return the families of some GPUs of the hardware table."""
    return frozenset(family(gpus()[name]) for name in names)
