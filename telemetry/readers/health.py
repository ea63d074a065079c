"""What a log says of the health of a GPU: errors of its memory, its link, its power limit."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING

from telemetry.readers.column_names import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

_XID, _MEMORY, _REMAP = "xid", "memory errors", "remap failure"
_WIDTH, _WIDTH_MOST = "lanes", "lanes at most"
_LIMIT, _LIMIT_DEFAULT = "limit", "limit by default"
_KINDS = {
    _XID: r"(dcgm_fi_dev_)?xid_errors?",
    _MEMORY: r"ecc_errors_uncorrected_volatile_total|dcgm_fi_dev_ecc_dbe_vol_total",
    _REMAP: r"remapped_rows_failure|dcgm_fi_dev_row_remap_failure",
    _WIDTH: r"pcie_link_width_current|dcgm_fi_dev_pcie_link_width",
    _WIDTH_MOST: r"pcie_link_width_(gpu)?max|dcgm_fi_dev_pcie_max_link_width",
    _LIMIT: r"enforced_power_limit|power_limit|dcgm_fi_dev_(enforced_power_limit|power_mgmt_limit)",
    _LIMIT_DEFAULT: r"power_default_limit|dcgm_fi_dev_power_mgmt_limit_def",
}
# Xid errors of hardware, by NVIDIA's Health Validation (48), its notes on GPU operational events
# (79) and stas00/ml-engineering (64), all read 2026-11-27; others may be the program's.
_HARDWARE_XIDS = {
    48: "double bit memory error",
    64: "a row of memory could not be remapped",
    79: "fallen off the bus",
}
_CAPPED = 0.9  # of the limit by default; drivers round limits by a few watts
_ELSEWHERE = "Ask for another machine."


@cache
def kind_of(name: str) -> str | None:
    """Return what a column or metric says of health; None for any other."""
    folded = fold(name)[0]
    return next((kind for kind, sign in _KINDS.items() if re.fullmatch(sign, folded)), None)


def findings(readings: Iterable[tuple[str, str, float]]) -> list[str]:
    """Return a sentence for each thing that is wrong with a GPU.

    Args:
        readings: which GPU, the kind of reading, and the greatest value that it had.
    """
    by_gpu: dict[str, dict[str, float]] = defaultdict(dict)
    for gpu, kind, value in readings:
        if isfinite(value):
            by_gpu[gpu][kind] = max(value, by_gpu[gpu].get(kind, value))
    return [
        f"{gpu}: {sentence}"
        for gpu, values in sorted(by_gpu.items())
        for sentence in _sentences(values)
    ]


def _sentences(values: dict[str, float]) -> Iterable[str]:
    xid = int(values.get(_XID, 0))
    if xid in _HARDWARE_XIDS:
        yield f"the card is failing (Xid {xid}: {_HARDWARE_XIDS[xid]}). {_ELSEWHERE}"
    if values.get(_MEMORY, 0) > 0:
        yield f"the card is failing ({values[_MEMORY]:g} uncorrected memory errors). {_ELSEWHERE}"
    if values.get(_REMAP, 0) > 0:
        yield f"the card is failing (its memory could not be remapped). {_ELSEWHERE}"
    lanes, most = values.get(_WIDTH, 0), values.get(_WIDTH_MOST, 0)
    if 0 < lanes < most:
        times = f"copies take {most / lanes:.3g}x as long"
        yield f"{lanes:g} of {most:g} PCIe lanes: {times}. {_ELSEWHERE}"
    limit, default = values.get(_LIMIT, 0), values.get(_LIMIT_DEFAULT, 0)
    if 0 < limit < _CAPPED * default:
        yield f"power is capped at {limit:g} W of {default:g} W, so it cannot reach full speed."
