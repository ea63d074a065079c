"""How a machine ends itself at its deadline: the files of the watch, and when it gives up waiting.

The watch is a service that systemd starts before anything that waits for cloud-init, keeps alive
when it dies, and that a timer starts anew should somebody stop it.
"""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from types import MappingProxyType

ENDS = ("poweroff", "api", "none")
"""How a machine ends: by powering off, which terminates it; by its provider's API; not at all."""

GRACE_S = 900
"""How long a machine stays whose bootstrap failed, so that its log can be read."""

ANY_DAY = datetime(2100, 1, 1, tzinfo=UTC)
"""In place of a deadline that nobody knows yet: the length of its life ends the machine."""

SILENT_S = 1800
"""How long after boot a bootstrap may say nothing until it counts as failed."""

TICK_S = 10
"""Seconds between two looks of the watch."""

LOOK_S, ASK_S = 9, 4
"""Most seconds for an answer about the GPUs, less than a tick, and for each question in it."""

POLL_S = 5
"""Seconds between two looks for a spot notice, as the EC2 User Guide recommends."""

BLIND_S = 60
"""How long the GPUs may be unreadable before what they may have done counts as work."""

LEAST_IDLE_S = 60
"""The shortest idle time after which a machine may end itself: several looks."""

_IDLE_WARNING_S = 300

RETRY_S = 60
"""Seconds until the end is asked for again."""

ID_S, CALL_S = 10, 30
"""Most seconds that a machine waits for its own id, and for the answer to the call that ends it."""

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
        "poweroff": TICK_S + RETRY_S * len(POWER_OFFS),
        "api": TICK_S + ID_S + CALL_S,
        "cluster": CLUSTER_S,
        "none": 0,
    }
)
"""Most seconds from the deadline until the bill ends, where the provider answers; by how it ends.

The watch looks up to a tick late. A power-off that programs hold up is forced by the last try; the
API's first answer ends the bill.
"""

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

NOTICES_SERVICE = """[Unit]
Description=Asks whether the provider takes this spot machine back

[Service]
ExecStart=/opt/gpucost/notices.sh
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""
"""The unit that looks for notices on a spot machine."""

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


def deadline_values(
    deadline: datetime, idle_s: int | None
) -> dict[str, float | str | tuple[str, ...]]:
    """Return what the scripts need to know of a deadline, an aware time, and of the idle rule."""
    return {
        "ends_at": "by its length of life" if deadline == ANY_DAY else f"at {_calendar(deadline)}",
        "deadline": _calendar(deadline),
        "deadline_s": int(deadline.timestamp()),
        "grace_s": GRACE_S,
        "silent_s": SILENT_S,
        "tick_s": TICK_S,
        "retry_s": RETRY_S,
        "id_s": ID_S,
        "call_s": CALL_S,
        "power_offs": POWER_OFFS,
        "look_s": LOOK_S,
        "ask_s": ASK_S,
        "poll_s": POLL_S,
        "blind_s": BLIND_S,
        "idle_warning_s": min(_IDLE_WARNING_S, (idle_s or 0) // 2),
    }


def units(deadline: datetime, ttl_s: int) -> dict[str, str]:
    """Return the units of systemd, by path."""
    folder = "/etc/systemd/system/gpucost-deadline"
    timer = _TIMER.format(deadline=_calendar(deadline), ttl_s=ttl_s)
    return {f"{folder}.service": SERVICE, f"{folder}.timer": timer}


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


NOTICES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (files("templates.bootstrap") / "notices.toml").read_text(encoding="utf-8")
)
"""By provider: header of the call, where to ask, what the answer holds, seconds left at least.

`at_risk_url` and `at_risk_says`: the same of what comes later, or perhaps; it stops nothing yet.
"""
