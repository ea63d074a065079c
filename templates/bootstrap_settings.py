"""What a machine is given whatever runs on it: places of MPS, and the units of its deadline."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

MPS: Mapping[str, str] = MappingProxyType(
    {
        "CUDA_MPS_PIPE_DIRECTORY": "/run/gpucost-mps",
        "CUDA_MPS_LOG_DIRECTORY": "/var/log/gpucost-mps",
    }
)
"""Where jobs find the control daemon of MPS; bootstrap.sh starts it there."""


def deadline_units(values: Mapping[str, Any]) -> tuple[str, str]:
    """The systemd service and timer that end the machine at its deadline.

    The timer knows the deadline as a time of day and as a time since boot, so that neither a wrong
    clock nor a reboot outlives it.
    """
    service = (
        "[Unit]\nDescription=End this machine at its deadline\n\n"
        "[Service]\nType=simple\nExecStart=/opt/gpucost/end.sh\n"
    )
    timer = (
        "[Unit]\nDescription=Deadline of this machine\n\n"
        f"[Timer]\nOnCalendar={values['deadline']}\nOnBootSec={values['ttl_s']}s\n"
        "AccuracySec=1s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    return service, timer
