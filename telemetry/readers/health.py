"""What a log says of the health of a GPU: errors of its memory, its link, its power limit."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from math import isfinite

from planner.profile.kinds import HARDWARE_XIDS
from planner.profile.model import Health
from telemetry.readers.column_names import fold

XID, MEMORY, _REMAP = "xid", "memory errors", "remap failure"
_WIDTH, _WIDTH_MOST = "lanes", "lanes at most"
_LIMIT, _LIMIT_DEFAULT = "limit", "limit by default"
_KINDS = {
    XID: r"(dcgm_fi_dev_)?xid_errors?",
    MEMORY: r"ecc_errors_uncorrected_volatile_total|dcgm_fi_dev_ecc_dbe_vol_total",
    _REMAP: r"remapped_rows_failure|dcgm_fi_dev_row_remap_failure",
    _WIDTH: r"pcie_link_width_current|dcgm_fi_dev_pcie_link_width",
    _WIDTH_MOST: r"pcie_link_width_(gpu)?max|dcgm_fi_dev_pcie_max_link_width",
    _LIMIT: r"enforced_power_limit|power_limit|dcgm_fi_dev_(enforced_power_limit|power_mgmt_limit)",
    _LIMIT_DEFAULT: r"power_default_limit|dcgm_fi_dev_power_mgmt_limit_def",
}
_GIVEN = {XID: "xid", MEMORY: "memory", _REMAP: "remapping"}
# Xid errors of hardware (`HARDWARE_XIDS`): by NVIDIA's Health Validation (48), its notes on GPU
# operational events (79) and stas00/ml-engineering (64), all read 2026-11-27.
_CAPPED = 0.9  # of the limit by default; drivers round limits by a few watts


@cache
def kind_of(name: str) -> str | None:
    """Return what a column or metric says of health; None for any other."""
    folded = fold(name)[0]
    return next((kind for kind, sign in _KINDS.items() if re.fullmatch(sign, folded)), None)


def findings(readings: Iterable[tuple[str, str, float]]) -> list[Health]:
    """Return each thing that is wrong with a GPU.

    Args:
        readings: which GPU, the kind of reading, and the greatest value that it had.
    """
    by_gpu: dict[str, dict[str, float]] = defaultdict(dict)
    for gpu, kind, value in readings:
        if isfinite(value):
            by_gpu[gpu][kind] = max(value, by_gpu[gpu].get(kind, value))
    return [fault for gpu, values in sorted(by_gpu.items()) for fault in _faults(gpu, values)]


def _faults(gpu: str, values: dict[str, float]) -> Iterator[Health]:
    for kind, code in _GIVEN.items():
        value = values.get(kind, 0.0)
        if value in HARDWARE_XIDS if kind == XID else value > 0:
            yield Health(gpu=gpu, code=code, value=value)
    lanes, full_lanes = values.get(_WIDTH, 0.0), values.get(_WIDTH_MOST, 0.0)
    if 0 < lanes < full_lanes:
        yield Health(gpu=gpu, code="lanes", value=lanes, most=full_lanes)
    limit, default = values.get(_LIMIT, 0.0), values.get(_LIMIT_DEFAULT, 0.0)
    if 0 < limit < _CAPPED * default:
        yield Health(gpu=gpu, code="power-cap", value=limit, most=default)
