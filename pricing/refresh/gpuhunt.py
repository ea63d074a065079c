"""Reads a catalog of gpuhunt: the published zip, or one `<provider>.csv` of it."""

import csv
import io
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath

from pricing.errors import InputError
from pricing.refresh.other_catalogs import (
    MOST_BYTES,
    Listed,
    check_size,
    day_of,
    our_name,
    to_reading,
)
from pricing.refresh.reading import PriceReading

_COLUMNS = frozenset(
    {
        "instance_name",
        "location",
        "price",
        "cpu",
        "memory",
        "gpu_count",
        "gpu_name",
        "gpu_memory",
        "spot",
    }
)


def read_gpuhunt(path: Path, as_of: date | None = None) -> tuple[PriceReading, ...]:
    """One reading a provider, by name.

    Args:
        path: catalog.zip, or a CSV file that is named after its provider.
        as_of: day of the prices; None: the day the file was last changed.

    Raises:
        InputError: it cannot be read or is not a catalog.
    """
    try:
        check_size(path)
        day = day_of(path, as_of)
        tables = _unpacked(path) if zipfile.is_zipfile(path) else {path.stem: path.read_bytes()}
        readings = [
            to_reading(our_name(name), _lines(name, data, path), f"gpuhunt catalog {name}.csv", day)
            for name, data in sorted(tables.items())
        ]
    except (OSError, ValueError, csv.Error, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read as a catalog of gpuhunt: {reason}.") from error
    if not readings:
        raise InputError(f"{path}: holds no PROVIDER.csv; the catalog of gpuhunt does.")
    return tuple(readings)


def _unpacked(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".csv")]
        if sum(member.file_size for member in members) > MOST_BYTES:
            raise InputError(f"{path}: unpacks to more than {MOST_BYTES // 2**20} MiB.")
        return {PurePosixPath(m.filename).stem: archive.read(m) for m in members}


def _lines(name: str, data: bytes, path: Path) -> Iterator[Listed]:
    table = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""), restval="")
    missing = sorted(_COLUMNS - set(table.fieldnames or ()))
    if missing:
        raise InputError(f"{path}: {name}.csv is none of gpuhunt, without {', '.join(missing)}.")
    for row in table:
        if row["gpu_name"] and _is_count(row["gpu_count"]):
            yield _listed(row)


def _is_count(text: str) -> bool:
    return text.strip() not in ("", "0", "0.0")


def _listed(row: Mapping[str, str]) -> Listed:
    memory_gib: tuple[float, ...]
    try:
        memory_gib = (float(row["gpu_memory"]),)
    except ValueError:
        memory_gib = ()
    return Listed(
        instance_type=row["instance_name"],
        region=row["location"],
        gpu=row["gpu_name"],
        gpu_count=row["gpu_count"],
        memory_gib=memory_gib,
        vcpus=row["cpu"],
        ram_gib=row["memory"],
        disk_gib=row.get("disk_size") or "",
        usd_per_hour=row["price"],
        purchase="spot" if row["spot"].lower() == "true" else "on_demand",
    )
