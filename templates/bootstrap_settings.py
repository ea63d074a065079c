"""What a machine is given whatever runs on it: places of MPS."""

from collections.abc import Mapping
from types import MappingProxyType

MPS: Mapping[str, str] = MappingProxyType(
    {
        "CUDA_MPS_PIPE_DIRECTORY": "/run/gpucost-mps",
        "CUDA_MPS_LOG_DIRECTORY": "/var/log/gpucost-mps",
    }
)
"""Where jobs find the control daemon of MPS; bootstrap.sh starts it there."""
