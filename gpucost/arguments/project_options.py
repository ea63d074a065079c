"""What a `gpucost.toml` in the current folder may set: a list, and nothing that is not on it.

Such a file comes with a repository that somebody cloned. It may say what is planned and how it is
printed. It may not say what is launched, ended, spent, believed without asking, or written where:
that is decided on the command line, in the environment or in the user's own file.
"""

from collections.abc import Mapping
from types import MappingProxyType

_PRINTING = ("quiet", "verbose", "no-color")
_FORMAT = ("format", *_PRINTING)

MAY_SET: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        command: frozenset(options)
        for command, options in {
            "profile": (
                "interval",
                "duration",
                "gpus",
                "no-gpu",
                "no-metadata",
                "name",
                "kind",
                "precision",
                "batch",
                *_PRINTING,
            ),
            "import": (
                "gpu",
                "kind",
                "precision",
                "batch",
                "work",
                "tz",
                "map",
                "interval",
                "name",
                "job",
                *_FORMAT,
            ),
            "diagnose": _FORMAT,
            "plan": (
                "objective",
                "deadline",
                "budget",
                "provider",
                "region",
                "gpu",
                "gpus",
                "purchase",
                "hours-per-month",
                "work-total",
                "egress",
                "storage",
                "slo-ms",
                "consolidate",
                "no-consolidate",
                "allow-gpu-change",
                "max-slowdown",
                "max-moves",
                "time-limit",
                "current",
                "include",
                "engineer-rate",
                "price",
                "whole-machine",
                "horizon",
                "launchable",
                "egress-to",
                "as-of",
                "history",
                "lang",
                "fx",
                "probe",
                "base",
                "spot-trace",
                "checkpoint-time",
                "restart-time",
                "fail-over",
                "fail-over-increase",
                "grid-g-per-kwh",
                "pue",
                "host-power-share",
                *_FORMAT,
            ),
            "capacity": (
                "max-wait",
                "order",
                "map",
                "gpu",
                "as-of",
                *_FORMAT,
            ),
            "report": ("style", "lang", "fx", *_PRINTING),
            "quote": (
                "addresses",
                "as-of",
                "boot",
                "control-plane",
                "count",
                "duration",
                "egress",
                "idle-tail",
                "ingress",
                "inter-region",
                "inter-zone",
                "monthly",
                "nat-gateways",
                "nat-traffic",
                "object-egress",
                "object-storage",
                "option",
                "purchase",
                "snapshots",
                "start",
                "storage",
                "storage-kind",
                *_FORMAT,
            ),
            "prices": (
                "provider",
                "gpu",
                "gpus",
                "region",
                "max-price",
                "purchase",
                "sort",
                "group-by",
                "as-of",
                *_FORMAT,
            ),
            "recipe": ("option", "numeric", *_PRINTING),
            "export": ("to", "option", "focus-version", *_PRINTING),
            "reconcile": ("option", *_FORMAT),
            "diff": _FORMAT,
            "fleet": _FORMAT,
            "list": _FORMAT,
            "show": _FORMAT,
            "iam-policy": ("provider", "read-only", *_PRINTING),
            "explain": _FORMAT,
            "doctor": _FORMAT,
        }.items()
    }
)
"""Command -> its long options that a project's file may set; a command that is not here: none.

`provision`, `down`, `reap` and `watch` are not here: even `quiet` would hide what they ask about.
"""
