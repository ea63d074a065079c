"""Recording rules: what a server notes down itself, so that a month is a small question."""

from __future__ import annotations

import re

from telemetry.readers.column_names import BITMASK, IDENTITY_METRIC, metrics

STEP = "5m"  # Prometheus keeps a point for five minutes; a longer pace leaves holes
STEP_S = 300
_FAMILIES = ("dcgm_fi_", "nvidia_smi_")
_RECORDED = re.compile(rf"gpucost:([A-Za-z0-9_]+):{STEP}")
# Memory must fit at its worst; counters and sets of bits have no mean.
_MOST = ("mem.used_gib", "fraction.memory", "memory.reserved", "memory.total")
_LEAST = ("memory.free",)
_LAST = (BITMASK, "power.limit_w")
NOTE = (
    f"each point is what a recording rule noted for {STEP}: a mean, of memory the most. Peaks of "
    "load that are shorter are not seen."
)


def recording_rules() -> str:
    """Return the rules for DCGM and nvidia_gpu_exporter, as Prometheus and vmalert read them.

    A rule notes each known metric under `gpucost:METRIC:5m`, with all labels.
    """
    names = sorted(name for name in metrics() if name.startswith(_FAMILIES))
    rules = [*names, IDENTITY_METRIC]
    return "\n".join(
        (
            "# Written by gpucost import --recording-rules. With these, ask for the notes:",
            "# gpucost import prometheus+http://HOST:9090 --recorded --since 30d -o profiles/",
            "groups:",
            "  - name: gpucost",
            f"    interval: {STEP}",
            "    rules:",
            *(line for name in rules for line in _rule(name)),
            "",
        )
    )


def metric_of(recorded: str) -> str | None:
    """Return the metric that a rule's series is of; None for series of others."""
    match = _RECORDED.fullmatch(recorded)
    return None if match is None else match[1]


def _rule(name: str) -> tuple[str, str]:
    # DCGM writes its names in capitals, nvidia_gpu_exporter in small letters.
    metric = name.upper() if name.startswith("dcgm_") else name
    holds = metrics().get(name)
    target = holds.target if holds is not None else ""
    how = "avg_over_time"
    if target in _MOST:
        how = "max_over_time"
    elif target in _LEAST:
        how = "min_over_time"
    elif target in _LAST or target.startswith("counter.") or holds is None:
        how = "last_over_time"
    return (
        f"      - record: gpucost:{metric}:{STEP}",
        f"        expr: {how}({metric}[{STEP}])",
    )
