"""Reads the catalog of gpuhunt: an archive a provider with `<provider>.csv` in it, and its day.

Form: `_internal/catalog.py`, `_internal/storage.py` and `.github/scripts/publish_catalog.sh` of
github.com/dstackai/gpuhunt at 3584151 (2026-08-19): `v3/PROVIDER/version` holds "20260819-123",
`v3/PROVIDER/VERSION/catalog.zip` the table. Meaning of the flags: `providers/*.py` of the same.
"""

import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path, PurePosixPath

from pricing.errors import InputError
from pricing.feeds.feeds import FEEDS, rows_of, undated
from pricing.refresh.feed_rows import FeedPage, FeedRow, our_name, to_reading
from pricing.refresh.reading import (
    FeedReading,
    FeedRequest,
    PriceReading,
    Question,
    read_parts,
    required,
)

MOST_BYTES = 256 * 2**20
"""An archive that unpacks to more is refused; the largest published table has about 30 MB."""

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

_HOST = "n1-standard-"  # of the machines that GPUs are attached to, one row of sizes
_OLDEST = 2020  # archives print 1980 where no time was kept
_COUNTRY = 2  # letters of a country's code


def read(request: FeedRequest) -> FeedReading:
    """Return one reading a provider, by name."""
    files = [path for path in request.answers.files if path.suffix.lower() in (".zip", ".csv")]
    if request.answers.files and not files:
        raise InputError("no catalog of gpuhunt: it is catalog.zip or PROVIDER.csv.")
    if files:
        return read_parts(part for path in files for part in _of_file(path, request))
    names = [name for name in FEEDS["gpuhunt"].parts if request.wants(our_name(name))]
    return read_parts((f"gpuhunt {name}", _of_server(name, request)) for name in names)


def _of_server(name: str, request: FeedRequest) -> Callable[[], PriceReading | None]:
    def read_one() -> PriceReading | None:
        question = Question(name=f"{name}/version", path=f"{name}/version")
        version = required(request.answers.get(question), question).path.read_text("ascii").strip()
        day = date.fromisoformat(version[:8])
        archive = Question(
            name=f"{name}/catalog.zip", path=f"{name}/{version}/catalog.zip", changed_only=True
        )
        answer = request.answers.get(archive)
        if answer is None:
            return None
        tables = _unpacked(answer.path, archive.name)
        if name not in tables:
            raise InputError(f"{archive.name}: holds no {name}.csv.")
        return _reading(name, tables[name][0], request.as_of or day)

    return read_one


def _of_file(
    path: Path, request: FeedRequest
) -> Iterator[tuple[str, Callable[[], PriceReading | None]]]:
    try:
        if zipfile.is_zipfile(path):
            tables = _unpacked(path, str(path))
        elif path.suffix.lower() == ".zip":
            raise InputError(f"{path}: cannot be read: not a whole archive.")
        else:
            tables = {path.stem: (path.read_bytes(), None)}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    if not tables:
        raise InputError(f"{path}: holds no PROVIDER.csv; the catalog of gpuhunt does.")
    for name, (data, day) in sorted(tables.items()):
        if request.wants(our_name(name)):
            yield str(path), _of_table(path, name, data, request.as_of or day)


def _of_table(
    path: Path, name: str, data: bytes, day: date | None
) -> Callable[[], PriceReading | None]:
    def read_one() -> PriceReading:
        if day is None:
            raise undated(path)
        return _reading(name, data, day)

    return read_one


def _unpacked(path: Path, name: str) -> dict[str, tuple[bytes, date | None]]:
    """Return each table of an archive, and the day on which it was written."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".csv")]
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise InputError(f"{name}: unpacks to more than {MOST_BYTES // 2**20} MiB.")
            return {PurePosixPath(m.filename).stem: (archive.read(m), _written(m)) for m in members}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{name}: cannot be read: not a whole archive ({error}).") from error


def _written(member: zipfile.ZipInfo) -> date | None:
    year, month, day = member.date_time[:3]
    try:
        return date(year, month, day) if year >= _OLDEST else None
    except ValueError:
        return None


def _reading(name: str, data: bytes, day: date) -> PriceReading:
    of = FeedPage(provider=our_name(name), source=f"gpuhunt catalog {name}.csv", day=day)
    return to_reading(of, list(_lines(name, data, of.left_out)))


def _lines(name: str, data: bytes, left_out: Counter[str]) -> Iterator[FeedRow]:
    for row in rows_of(data, f"{name}.csv", _COLUMNS):
        if row["gpu_count"].strip() in ("", "0", "0.0"):
            continue
        reason = next(_reasons(row), "")
        if reason:
            left_out[reason] += 1
        else:
            yield _listed(name, row)


def _reasons(row: Mapping[str, str]) -> Iterator[str]:
    for flag in (row.get("flags") or "").split():
        strange = f"flag {flag[:40]} is not known and may mean another way of selling"
        if why := FEEDS["gpuhunt"].skipped.get(flag, strange):
            yield why
    if (row.get("gpu_vendor") or "nvidia") not in ("nvidia", "amd") or not row["gpu_name"]:
        yield "an accelerator that is not a GPU"
    if row["instance_name"].startswith("n1-") and not row["instance_name"].startswith(_HOST):
        yield "n1 hosts other than n1-standard, to which the same GPUs can be attached"


def _listed(name: str, row: Mapping[str, str]) -> FeedRow:
    memory_gib: tuple[float, ...]
    try:
        memory_gib = (float(row["gpu_memory"]),)
    except ValueError:
        memory_gib = ()
    return FeedRow(
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
        community=name == "runpod" and len(row["location"]) == _COUNTRY,
    )
