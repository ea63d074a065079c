"""How a machine ends itself at its deadline: the files of the watch, and when it gives up waiting.

The watch is a service that systemd starts before anything that waits for cloud-init, keeps alive
when it dies, and that a timer starts anew should somebody stop it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from types import MappingProxyType

import msgspec

_FOLDER = files("templates.bootstrap")
ENDS = ("poweroff", "api", "none")
"""How a machine ends: by powering off, which terminates it; by its provider's API; not at all."""

ANY_DAY = datetime(2100, 1, 1, tzinfo=UTC)
"""In place of a deadline that nobody knows yet: the length of its life ends the machine."""

WATCH: Mapping[str, int] = msgspec.toml.decode(
    (_FOLDER / "watch.toml").read_bytes(), type=dict[str, int]
)
"""What the scripts of the watch wait for, in seconds."""

LEAST_IDLE_S = 60
"""The shortest idle time after which a machine may end itself: several looks."""

_IDLE_WARNING_S = 300

CLUSTER_S = 240
"""What looks after pools in a cluster looks each minute, has a pod to start, and calls of 20 s."""

POWER_OFFS = (
    "systemctl poweroff",
    "systemctl poweroff",
    "systemctl poweroff --force",
    "systemctl poweroff --force --force",
)
"""With time for programs to save, then without; what comes after these nothing can hold up."""

END_S: Mapping[str, int] = MappingProxyType(
    {
        "poweroff": WATCH["tick_s"] + WATCH["retry_s"] * len(POWER_OFFS),
        "api": WATCH["tick_s"] + WATCH["id_s"] + WATCH["call_s"],
        "cluster": CLUSTER_S,
        "none": 0,
    }
)
"""Most seconds from the deadline until the bill ends, where the provider answers; by how it ends.

The watch looks up to a tick late. A power-off that programs hold up is forced by the last try; the
API's first answer ends the bill.
"""

SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "/opt/gpucost/deadline.sh": "deadline.sh.j2",
        "/opt/gpucost/end.sh": "end.sh.j2",
        "/opt/gpucost/armed": "armed.sh.j2",
    }
)
"""Where each script of the watch lies on a machine, and its template."""

UNITS: Mapping[str, str] = MappingProxyType(
    {
        "/etc/systemd/system/gpucost-deadline.service": "deadline.service",
        "/etc/systemd/system/gpucost-deadline.timer": "deadline.timer.j2",
    }
)
"""The same of its units. The service has no default dependencies: those wait for sysinit.target,
which waits for cloud-init."""


def deadline_values(deadline: datetime, idle_s: int | None) -> dict[str, object]:
    """Return what the scripts need to know of a deadline, an aware time, and of the idle rule."""
    return {
        **WATCH,
        "power_offs": POWER_OFFS,
        "ends_at": "by its length of life" if deadline == ANY_DAY else f"at {_calendar(deadline)}",
        "deadline": _calendar(deadline),
        "deadline_s": int(deadline.timestamp()),
        "idle_warning_s": min(_IDLE_WARNING_S, (idle_s or 0) // 2),
    }


def _calendar(at: datetime) -> str:
    """Return a time as systemd and people read it: 2026-11-21 20:15:00 UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


MPS: Mapping[str, str] = MappingProxyType(
    {
        "CUDA_MPS_PIPE_DIRECTORY": "/run/gpucost-mps",
        "CUDA_MPS_LOG_DIRECTORY": "/var/log/gpucost-mps",
    }
)
"""Where jobs find the control daemon of MPS; bootstrap.sh starts it there."""


NOTICES: Mapping[str, Mapping[str, str]] = msgspec.toml.decode(
    (_FOLDER / "notices.toml").read_bytes(), type=dict[str, dict[str, str]]
)
"""By provider: header of the call, where to ask, what the answer holds, seconds left at least.

`at_risk_url` and `at_risk_says`: the same of what comes later, or perhaps; it stops nothing yet.
"""
