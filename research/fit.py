"""Fits everything that predictions ship with: `python -m research.fit DATA DAY`.

Writes planner/models/data/*.toml and allreduce.csv, one or all (`... DATA DAY classes`). Needs
scipy (prior widths): `pip install -e .[research]`.
"""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from planner.models.coefficients import fitted_as
from planner.models.communication import Overhead
from research import (
    class_fits,
    co_location,
    collectives,
    delays,
    growth,
    host,
    probed,
    published,
    several_gpus,
    slice_probe,
    slices,
    small_work,
    tensor_parallel,
    turns,
)
from research.cross_gpu import cases, fitted_runs, intervals
from research.effects import fit, likeliest_widths, speed_table
from research.throughput import runs

_OUT = Path(__file__).resolve().parent.parent / "planner" / "models" / "data"
_BY_MAKE = "Written by `make fit`; do not edit."
_SPEED = f"""\
# Coefficients of planner/models/gpu_speed.py. {_BY_MAKE}
# Source: our own regression on lambdal/deeplearning-benchmark (GitHub; no licence stated):
# published PyTorch training throughput of one GPU (v1, v2). No figure of theirs is reproduced.
# Widths: likeliest on the older runs (v0) of the same repository.
"""
_SCALE = f"""\
# Overheads of several GPUs, planner/models/communication.py. {_BY_MAKE}
# Sources: inside, growth: lambdal/deeplearning-benchmark, 1 to 8 GPUs (no licence stated); between:
# AdaptDL traces of siasosp23, two full nodes at the largest batches (none stated); tensor:
# LLM-Inference-Bench (BSD-3), llm-inference-benchmarks of IOG (Apache-2.0). Quantiles only.
"""
_HOST = f"""\
# Loader, power cap and power on another GPU: planner/models. {_BY_MAKE}
# Sources: msr-fiddle/synergy (MIT), ml-energy/zeus (Apache-2.0). Our own fits.
"""
_SHARING = f"""\
# Sharing a GPU, planner/prediction: sharing.py, slices.py. {_BY_MAKE}
# Sources: factor, pair: stanford-futuredata/gavel (MIT), pairs of jobs on a K80 and a P100;
# again, delay: our own pairs on an H200 (research/measured/side_by_side, 2026-11-26);
# slice.width, probe: MISO (MIT), training jobs on slices of an A100;
# growth: alibaba/clusterdata v2026, 72 serving pods over 23 h. Quantiles and our own regression.
"""
_CLASSES = f"""\
# Laws of the classes of work, planner/models/gpu_speed.py. {_BY_MAKE}
# Source: one regression of ours on published measurements; no figure of theirs is reproduced:
# mosaicml/llm-foundry, NVIDIA-NeMo/Megatron-Bridge, MLCommons results (Training v4.0, v5.0, v5.1,
# Inference v4.1, v5.1, v6.0), pytorch-image-models, ai-dynamo/aiconfigurator, TensorRT-LLM's
# overview, gpustack (Apache-2.0), LLM-Inference-Bench (BSD-3), NeuSight's labels,
# ml-energy/leaderboard, GPU-Benchmarks-on-LLM-Inference (none stated).
# peak, bandwidth, power: exponents; family, gpu: ln; measured: by this class itself;
# trust: how far it is gone by, the rest being the geometric mean of peak and bandwidth; unseen: the
# same with a GPU that the class did not measure; both decided on models and GPUs left out;
# seen, unseen, strange: 90 % quantiles of scaled errors, whole models, GPUs, generations left out.
"""


def speed(folder: Path, widths: Mapping[str, float], day: date) -> str:
    """Return speed.toml, but for its intervals."""
    known = fitted_runs(folder)
    table = {"fitted": day, "runs": len(known), **speed_table(fit(known, widths), known)}
    return toml(_SPEED, table)


def speed_intervals(folder: Path) -> str:
    """Return intervals and small work of speed.toml, whose widths must have been written."""
    known = fitted_runs(folder)
    pairs = small_work.small_pairs(folder)
    table = {
        "interval": intervals(cases(known, "both"), cases(known, "task")),
        # Batches up to 15 % of the largest: AdaptDL traces of siasosp23, one GPU.
        "small": {
            "exponent": small_work.fitted_exponent(pairs),
            "factor": round(small_work.small_factor(pairs), 3),
        },
    }
    return "\n".join(_lines(table, "")) + "\n"


def classes(folder: Path, day: date) -> str:
    """Return classes.toml."""
    fits = class_fits.left_out(published.cases(folder))
    return toml(
        _CLASSES, {"fitted": day, **{work: fits.shipped(work) for work in class_fits.WORKS}}
    )


def toml(head: str, table: Mapping[str, Any]) -> str:
    """Return a table of plain values and tables as TOML below some comments."""
    return "\n".join((head, *_lines(table, ""))) + "\n"


def _lines(table: Mapping[str, Any], name: str) -> Iterator[str]:
    if name:
        yield f"\n[{name}]"
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name}.{_key(key)}" if name else _key(key))


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() else json.dumps(key)


def _value(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else json.dumps(value)


def scale(folder: Path, day: date) -> str:
    """Return scale.toml."""
    boxes = several_gpus.boxes(folder, 1, 2, 8)
    lines = [_SCALE, f"fitted = {day.isoformat()}"]
    lines.append(f"geforce_growth = {several_gpus.geforce_growth(boxes):.3f}")
    lines.append(f"probe_factor = {several_gpus.probe_factor(folder):.3f}")
    lines.append(f"probe_factor_nodes = {probed.nodes_factor(probed.cases(folder)):.3f}")
    for link, found in several_gpus.inside(boxes).items():
        lines += ["", f"[inside.{link}]", *_ends(found)]
    for name, found in several_gpus.network_overheads(folder).items():
        lines += ["", f"[between.{name}]", *_ends(found)]
    for link, row in tensor_parallel.fitted(tensor_parallel.pairs(folder)).items():
        lines += ["", f"[tensor.{link}]", *(f"{key} = {value}" for key, value in row.items())]
    return "\n".join(lines) + "\n"


def _ends(found: Overhead) -> tuple[str, ...]:
    return tuple(f"{end} = {value:.4f}" for end, value in found._asdict().items())


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


def _speed(folder: Path, day: date) -> None:
    path = _OUT / "speed.toml"
    text = speed(folder, likeliest_widths(runs(folder, "v0")), day)
    with fitted_as(speed=tomllib.loads(text)):
        path.write_text(text + speed_intervals(folder), encoding="utf-8")


def _text(name: str, made: Callable[[Path, date], str]) -> Callable[[Path, date], None]:
    def write(folder: Path, day: date) -> None:
        (_OUT / name).write_text(made(folder, day), encoding="utf-8")

    return write


def sharing(folder: Path, day: date) -> str:
    """Return sharing.toml."""
    factor = co_location.factor(co_location.pairs(folder))
    width = slices.width(slices.runs(folder))
    table = {
        "fitted": day,
        "growth": growth.fitted(growth.read(folder)),
        "factor": round(factor, 3),
        **delays.fitted(),
        "slice": {"width": round(width, 3)},
        "probe": slice_probe.fitted(slice_probe.pairs(folder)),
        "pair": turns.shipped(turns.beside_others(folder)),
    }
    return toml(_SHARING, table)


PARTS: Mapping[str, Callable[[Path, date], None]] = {
    "speed": _speed,
    "classes": _text("classes.toml", classes),
    "scale": _text("scale.toml", scale),
    "sharing": _text("sharing.toml", sharing),
    "host": _text("host.toml", host_table),
    "allreduce": _text("allreduce.csv", collectives.table),
}


def main(arguments: Sequence[str]) -> None:
    """Fit and write, from a folder of data sets, dated with a day (2026-11-21)."""
    folder, day = Path(arguments[0]), date.fromisoformat(arguments[1])
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder; the data sets are needed to fit anew.")
    for name in arguments[2:] or PARTS:
        PARTS[name](folder, day)


if __name__ == "__main__":
    main(sys.argv[1:])
