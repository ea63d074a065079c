"""Reads a SkyPilot catalog folder: `<cloud>/vms.csv`, columns as published with its catalogs."""

import ast
import csv
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from pricing.errors import InputError
from pricing.refresh.other_catalogs import Listed, check_size, day_of, our_name, to_reading
from pricing.refresh.reading import PriceReading

_COLUMNS = frozenset(
    {"InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region"}
)
_MIB_PER_GIB = 1024
_LARGEST_GIB = 512  # no GPU has more; beyond it a figure is in MiB


def read_skypilot(folder: Path, as_of: date | None = None) -> tuple[PriceReading, ...]:
    """One reading a cloud, by name.

    Args:
        folder: holds a folder for each cloud with a vms.csv in it.
        as_of: day of the prices; None: the day each file was last changed.

    Raises:
        InputError: there is no such file, or one is not a catalog; all of them at once.
    """
    paths = sorted(folder.glob("*/vms.csv"))
    if not paths:
        raise InputError(
            f"{folder}: no catalog of SkyPilot; it has CLOUD/vms.csv files, such as "
            "~/.sky/catalogs/v8/aws/vms.csv, and its folder is ~/.sky/catalogs/v8."
        )
    readings, problems = [], []
    for path in paths:
        cloud = path.parent.name
        try:
            check_size(path)
            day = day_of(path, as_of)
            lines = list(_lines(path))
        except (OSError, ValueError, csv.Error) as error:
            problems.append(f"{path}: cannot be read: {error}")
        except InputError as error:
            problems += error.problems
        else:
            source = f"SkyPilot catalog {cloud}/vms.csv"
            readings.append(to_reading(our_name(cloud), lines, source, day))
    if problems:
        raise InputError(problems)
    return tuple(readings)


def _lines(path: Path) -> Iterator[Listed]:
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file, restval="")
        missing = sorted(_COLUMNS - set(table.fieldnames or ()))
        if missing:
            raise InputError(f"{path}: no vms.csv of SkyPilot, without {', '.join(missing)}.")
        for row in table:
            if row["InstanceType"] and row["AcceleratorName"]:
                yield from _listed(row)


def _listed(row: Mapping[str, str]) -> Iterator[Listed]:
    """The on-demand and the spot price of a line, each where it is there."""
    for column, purchase in (("Price", "on_demand"), ("SpotPrice", "spot")):
        price = row.get(column) or ""
        if price:
            yield Listed(
                instance_type=row["InstanceType"],
                region=row["Region"],
                gpu=row["AcceleratorName"],
                gpu_count=row["AcceleratorCount"],
                memory_gib=_memory(row.get("GpuInfo") or ""),
                vcpus=row["vCPUs"],
                ram_gib=row["MemoryGiB"],
                usd_per_hour=price,
                purchase=purchase,
                community=row["InstanceType"].lower().endswith("_community"),
            )


def _memory(text: str) -> tuple[float, ...]:
    """Memory of one GPU in GiB as GpuInfo prints it; some clouds put GiB into that MiB field."""
    try:
        told = _lowered(ast.literal_eval(text)) if text.startswith("{") else {}
        size = float(told["gpus"][0]["memoryinfo"]["sizeinmib"])
    except (ValueError, SyntaxError, LookupError, TypeError, MemoryError, RecursionError):
        return ()
    if size <= 0:
        return ()
    return (size,) if size <= _LARGEST_GIB else (size / _MIB_PER_GIB,)


def _lowered(value: Any) -> Any:  # noqa: ANN401 - a literal of any shape
    """The literal with its keys in lower case; one cloud prints all of it so."""
    if isinstance(value, dict):
        return {str(key).lower(): _lowered(item) for key, item in value.items()}
    return [_lowered(item) for item in value] if isinstance(value, list) else value
