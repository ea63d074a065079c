"""How a machine ends itself at its deadline: the files of the watch, and when it gives up waiting.

The watch is a service that systemd starts before anything that waits for cloud-init, keeps alive
when it dies, and that a timer starts anew should somebody stop it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

ENDS = ("poweroff", "api", "none")
"""How a machine ends: by powering off, which terminates it; by its provider's API; not at all."""

GRACE_S = 900
"""How long a machine stays whose bootstrap failed, so that its log can be read."""

SILENT_S = 1800
"""How long after boot a bootstrap may say nothing until it counts as failed."""

SERVICE = """[Unit]
Description=Ends this machine at its deadline
DefaultDependencies=no
StartLimitIntervalSec=0

[Service]
ExecStart=/opt/gpucost/deadline.sh
Restart=always
RestartSec=5
OOMScoreAdjust=-1000

[Install]
WantedBy=multi-user.target
"""
"""Without default dependencies: those wait for sysinit.target, which waits for cloud-init."""

_TIMER = """[Unit]
Description=Starts what ends this machine, should it not run
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target

[Timer]
OnBootSec=30
OnUnitInactiveSec=30
OnCalendar={deadline}
OnBootSec={ttl_s}s
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
"""

SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "/opt/gpucost/deadline.sh": "deadline.sh.j2",
        "/opt/gpucost/end.sh": "end.sh.j2",
        "/opt/gpucost/armed": "armed.sh.j2",
    }
)
"""Where each script of the watch lies on a machine, and its template."""


def deadline_values(deadline: datetime) -> dict[str, int | str]:
    """Return what the scripts need to know of a deadline, an aware time."""
    return {
        "deadline": _calendar(deadline),
        "deadline_s": int(deadline.timestamp()),
        "grace_s": GRACE_S,
        "silent_s": SILENT_S,
    }


def units(deadline: datetime, ttl_s: int) -> dict[str, str]:
    """Return the units of systemd, by path."""
    folder = "/etc/systemd/system/gpucost-deadline"
    timer = _TIMER.format(deadline=_calendar(deadline), ttl_s=ttl_s)
    return {f"{folder}.service": SERVICE, f"{folder}.timer": timer}


def _calendar(at: datetime) -> str:
    """Return a time as systemd and people read it: 2026-11-21 20:15:00 UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
