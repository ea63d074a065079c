"""Fits everything that predictions ship with: `python -m planner.evaluation.fit DATA DAY`.

Writes planner/data/*.toml and allreduce.csv. Needs scipy (prior widths) and pyarrow (two of the
all-reduce files): `pip install gpucost[accuracy]`.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from planner.evaluation import collectives, host, several_gpus, small_work
from planner.evaluation.cross_gpu import (
    cases,
    fitted_runs,
    near_quantile,
    plain_quantile,
    scaled_quantile,
)
from planner.evaluation.effects import Fit, fit, likeliest_widths
from planner.evaluation.throughput import runs, specs_of
from planner.speed_model import coefficients

_OUT = Path(__file__).resolve().parent.parent / "data"
_BY_MAKE = "Written by `make fit`; do not edit."
_SPEED = f"""\
# Coefficients of planner/speed_model.py. {_BY_MAKE}
# Source: our own regression on lambdal/deeplearning-benchmark (GitHub; no licence stated):
# published PyTorch training throughput of one GPU (v1, v2). No figure of theirs is reproduced.
# Widths: likeliest on the older runs (v0) of the same repository.
"""
_SCALE = f"""\
# Overheads of several GPUs, planner/overhead.py. {_BY_MAKE}
# Sources: inside, growth: lambdal/deeplearning-benchmark, 1 to 8 GPUs (no licence stated); between:
# AdaptDL traces of siasosp23, two full nodes at the largest batches (none stated). Quantiles only.
"""
_HOST = f"""\
# Loader, power cap and power on another GPU: planner/loader.py, planner/power.py. {_BY_MAKE}
# Sources: msr-fiddle/synergy (MIT), ml-energy/zeus (Apache-2.0). Our own fits.
"""
_FAMILIES = {"half": "fp16", "single": "fp32"}


def speed(folder: Path, widths: Mapping[str, float], day: date) -> str:
    """Return speed.toml, but for its intervals."""
    known = fitted_runs(folder)
    model = fit(known, widths)
    lines = [_SPEED, f"fitted = {day.isoformat()}", f"runs = {len(known)}"]
    lines += [f"memory = {model.effect('memory'):.4f}", f"geforce = {model.effect('geforce'):.4f}"]
    lines += ["", "[widths]", *(f"{name} = {width}" for name, width in widths.items())]
    gpus = sorted({run.gpu for run in known})
    architectures = sorted({specs_of(gpu, "fp16").architecture for gpu in gpus})
    for family, precision in _FAMILIES.items():
        lines += ["", f"[{family}]"]
        for name in ("peak", "bandwidth"):
            slope = model.effect("slope", name) + model.effect("slope-precision", name, precision)
            lines.append(f"{name} = {slope:.4f}")
        for group, names in (("architecture", architectures), ("gpu", gpus)):
            lines += ["", f"[{family}.{group}]"]
            lines += [f'"{name}" = {_both(model, group, name, precision):.4f}' for name in names]
    return "\n".join(lines) + "\n"


def _both(model: Fit, group: str, name: str, precision: str) -> float:
    return model.effect(group, name) + model.effect(f"{group}-precision", name, precision)


def speed_intervals(folder: Path) -> str:
    """Return intervals and small work of speed.toml, whose widths must have been written."""
    known = fitted_runs(folder)
    tasks_left = cases(known, "task")
    scale, unseen = scaled_quantile(tasks_left), plain_quantile(cases(known, "both"))
    pairs = small_work.small_pairs(folder)
    lines = (
        "\n[interval]",
        f"scale = {scale:.3f}",
        f"near = {math.exp(near_quantile(tasks_left)):.3f}",
        f"unseen_gpu = {math.exp(unseen):.3f}",
        "\n[small]  # batches up to 15 % of the largest: AdaptDL traces of siasosp23, one GPU",
        f"exponent = {small_work.fitted_exponent(pairs)}",
        f"factor = {small_work.small_factor(pairs):.3f}",
    )
    return "\n".join(lines) + "\n"


def scale(folder: Path, day: date) -> str:
    """Return scale.toml."""
    boxes = several_gpus.boxes(folder, 1, 2, 8)
    lines = [_SCALE, f"fitted = {day.isoformat()}"]
    lines.append(f"geforce_growth = {several_gpus.geforce_growth(boxes):.3f}")
    lines.append(f"probe_factor = {several_gpus.probe_factor(folder):.3f}")
    for link in ("nvlink", "pcie", "geforce"):
        found = several_gpus.overheads(boxes[boxes.link == link])
        lines += ["", f"[inside.{link}]", *_ends(found.good, found.mid, found.bad)]
    for name, found in several_gpus.network_overheads(folder).items():
        lines += ["", f"[between.{name}]", *_ends(found.good, found.mid, found.bad)]
    return "\n".join(lines) + "\n"


def _ends(good: float, mid: float, bad: float) -> tuple[str, ...]:
    return f"good = {good:.4f}", f"mid = {mid:.4f}", f"bad = {bad:.4f}"


def host_table(folder: Path, day: date) -> str:
    """Return host.toml."""
    rates, power = host.loader_rates(folder), host.power_runs(folder)
    law = host.fitted_cap_law(power)
    lines = [
        _HOST,
        f"fitted = {day.isoformat()}",
        f"loader_power = {host.fitted_power(rates)}",
        f"loader_factor = {host.loader_factor(rates):.3f}",
        f"other_gpu_power_factor = {host.other_gpu_factor(power):.3f}",
        "",
        "[power_cap]",
        f"linear = {law.linear:.3f}",
        f"square = {law.square:.3f}",
        f"reached = {law.reached}",
        f"factor = {host.cap_factor(power):.3f}",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Fit and write, from a folder of data sets, dated with a day (2026-11-21)."""
    folder, day = Path(arguments[0]), date.fromisoformat(arguments[1])
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder; the data sets are needed to fit anew.")
    path = _OUT / "speed.toml"
    path.write_text(speed(folder, likeliest_widths(runs(folder, "v0")), day), encoding="utf-8")
    coefficients.cache_clear()
    with path.open("a", encoding="utf-8") as file:
        file.write(speed_intervals(folder))
    (_OUT / "scale.toml").write_text(scale(folder, day), encoding="utf-8")
    (_OUT / "host.toml").write_text(host_table(folder, day), encoding="utf-8")
    (_OUT / "allreduce.csv").write_text(collectives.table(folder, day), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
