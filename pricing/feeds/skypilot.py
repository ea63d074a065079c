"""Reads the catalog of SkyPilot: a table of machines a cloud, `<cloud>/vms.csv`.

Form: the published tables of github.com/skypilot-org/skypilot-catalog (v8; aws, gcp, runpod, verda
and others, read in 2026), and `sky/catalog/common.py`, `gcp_catalog.py` of skypilot-org/skypilot.
Columns stand in another order for each cloud. A table carries no date: its day is that of its
last commit, which the history of the repository tells.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pricing.errors import InputError, ProviderError
from pricing.feeds.feeds import FEEDS, rows_of, undated
from pricing.hardware import find, has_memory
from pricing.message import Message
from pricing.money import plain, usd
from pricing.refresh.feed_rows import FeedPage, FeedRow, our_name, to_reading
from pricing.refresh.reading import FeedReading, FeedRequest, PriceReading, Question, read_parts

HISTORY = "https://api.github.com/repos/skypilot-org/skypilot-catalog/commits"
"""Tells the day of a table: ?path=...&per_page=1."""

_COLUMNS = frozenset(
    {"InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region"}
)
_MIB_PER_GIB = 1024
_LARGEST_GIB = 512  # no GPU has more; beyond it a figure is in MiB


def read(request: FeedRequest) -> FeedReading:
    """Return one reading a cloud, by name."""
    files = [path for path in request.answers.files if path.name == "vms.csv"]
    if request.answers.files and not files:
        raise InputError(Message("price.no-skypilot"))
    tables = {path.parent.name: path for path in files} or dict.fromkeys(FEEDS["skypilot"].parts)
    return read_parts(
        (str(path or f"SkyPilot {cloud}"), _reader_of(cloud, path, request))
        for cloud, path in sorted(tables.items())
        if request.wants(our_name(cloud))
    )


def _reader_of(
    cloud: str, path: Path | None, request: FeedRequest
) -> Callable[[], PriceReading | None]:
    def read_one() -> PriceReading | None:
        if reason := FEEDS["skypilot"].skipped.get(cloud):
            raise InputError(f"SkyPilot {cloud}: left out: {reason}.")
        name = f"{cloud}/vms.csv"
        where = path
        if where is None:
            answer = request.answers.get(Question(name=name, path=name, changed_only=True))
            if answer is None:
                return None
            where = answer.path
        try:
            data = where.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
        day = request.as_of or _day(cloud, path, request)
        of = FeedPage(provider=our_name(cloud), source=f"SkyPilot catalog {name}", day=day)
        lines = _lines(cloud, rows_of(data, str(path or name), _COLUMNS), of.left_out)
        return to_reading(of, list(lines))

    return read_one


def _day(cloud: str, path: Path | None, request: FeedRequest) -> date:
    """Return the day of the last commit of a table.

    Raises:
        InputError: it is a file: nothing tells the day.
        ProviderError: the history could not be asked.
    """
    if path is not None:
        raise undated(path)
    table = f"catalogs/v8/{cloud}/vms.csv"
    name = f"{cloud}/commits.json"
    asks = f"{HISTORY}?path={table}&per_page=1"
    question = Question(name=name, path=name, publisher_url=asks)
    answer = request.answers.get(question)
    commits = [] if answer is None else json.loads(answer.path.read_text("utf-8"))
    if not commits:
        raise ProviderError(f"SkyPilot {cloud}: its history tells no day of the prices.")
    return datetime.fromisoformat(commits[0]["commit"]["committer"]["date"]).date()


def _lines(
    cloud: str, table: Iterator[Mapping[str, str]], left_out: Counter[str]
) -> Iterator[FeedRow]:
    rows = with_hosts(table, left_out) if cloud == "gcp" else table
    for row in rows:
        if row["AcceleratorName"].startswith("tpu"):
            left_out["an accelerator that is not a GPU"] += 1
        elif row["InstanceType"] and row["AcceleratorName"]:
            yield from _listed(cloud, row, left_out)


def _listed(cloud: str, row: Mapping[str, str], left_out: Counter[str]) -> Iterator[FeedRow]:
    """Yield the on-demand and the spot price of a line, each where it is there."""
    on_demand, spot = row.get("Price") or "", row.get("SpotPrice") or ""
    card, memory_gib = _card(row.get("GpuInfo") or "")
    if spot and (spot == on_demand or not spot.strip("0.")):
        left_out["a spot price of nothing, or that of on demand again"] += 1
        spot = ""
    for price, purchase in ((on_demand, "on_demand"), (spot, "spot")):
        if price:
            yield FeedRow(
                instance_type=row["InstanceType"],
                region=(row.get("AvailabilityZone") if cloud == "runpod" else "") or row["Region"],
                gpu=card or row["AcceleratorName"],
                gpu_count=row["AcceleratorCount"],
                memory_gib=memory_gib,
                vcpus=row["vCPUs"],
                ram_gib=row["MemoryGiB"],
                usd_per_hour=price,
                purchase=purchase,
                community=row["InstanceType"].lower().endswith("_community"),
            )


def _card(text: str) -> tuple[str, tuple[float, ...]]:
    """Return name and memory (GiB) of one GPU as GpuInfo prints them; "" for an empty name.

    Some clouds put GiB into the field of MiB. The name tells the form of the card ("A100 PCIe"),
    where the accelerator's does not.
    """
    try:
        gpu_info = _lowered(_literal(text))["gpus"][0] if text.startswith("{") else {}
        size = float(gpu_info["memoryinfo"]["sizeinmib"])
        name = str(gpu_info.get("name", ""))
    except (ValueError, SyntaxError, LookupError, TypeError, MemoryError, RecursionError):
        return "", ()
    if size <= 0:
        return "", ()
    memory_gib = size if size <= _LARGEST_GIB else size / _MIB_PER_GIB
    gpu = find(name, memory_gib=memory_gib)
    is_plausible = gpu is not None and has_memory(gpu, memory_gib)
    return name if is_plausible else "", (memory_gib,)


def _literal(text: str) -> Any:  # noqa: ANN401 - a literal of any shape
    """Return a literal of Python, or of JSON where a cloud's table holds that."""
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def _lowered(value: Any) -> Any:  # noqa: ANN401 - a literal of any shape
    """Return the literal with its keys in lower case; one cloud prints all of it so."""
    if isinstance(value, dict):
        return {str(key).lower(): _lowered(item) for key, item in value.items()}
    return [_lowered(item) for item in value] if isinstance(value, list) else value


_FAMILIES = {"a2-highgpu": "A100", "a2-megagpu": "A100", "g2-standard": "L4"}
"""Family -> its GPU, as the rows of GPUs call it."""

_WITH_SSD = re.compile(r"a2-ultragpu-|a3-|a4x?-")
"""Families that come with local SSDs, which Google bills with the machine and no row here has."""

_L4_OF_VCPUS = {"4": 1, "8": 1, "12": 1, "16": 1, "32": 1, "24": 2, "48": 4, "96": 8}

_TYPE = re.compile(r"(a2-highgpu|a2-megagpu|g2-standard)-(\d+)(g?)")
_N1 = re.compile(r"n1-standard-(\d+)")

_ATTACHED = {"T4": (4, 8, 16), "V100": (4, 8), "P100": (4, 8, 16)}
"""GPU that is attached to hosts by hand -> the vCPUs a GPU of the hosts that are read: Google takes
12 a V100 and 16 a P100 at most (cloud.google.com/compute/docs/gpus)."""

_PRICES = ("Price", "SpotPrice")

_Row = Mapping[str, str]


def with_hosts(rows: Iterator[_Row], left_out: Counter[str]) -> Iterator[_Row]:
    """Yield each machine with GPUs once, at the price of its host and its GPUs in its zone."""
    hosts: list[_Row] = []
    gpus: dict[tuple[str, str, str], _Row] = {}
    for row in rows:
        if row["InstanceType"] and not row["AcceleratorName"]:
            hosts.append(row)
        elif row["InstanceType"]:
            yield row
        else:
            count = row["AcceleratorCount"].removesuffix(".0")
            gpus[row["AcceleratorName"], count, row.get("AvailabilityZone", "")] = row
    for host in hosts:
        if _WITH_SSD.match(host["InstanceType"]):
            left_out["a machine with local SSDs, which are billed and not in the table"] += 1
            continue
        for model, name, count in _gpus_of(host["InstanceType"]):
            attached = gpus.get((name, count, host.get("AvailabilityZone", "")))
            if attached is not None:
                sums = {of: _sum(host.get(of) or "", attached.get(of) or "") for of in _PRICES}
                yield {**host, **sums, "AcceleratorName": model, "AcceleratorCount": count}
            elif name not in _ATTACHED:
                left_out["no price of its GPUs in the zone"] += 1


def _gpus_of(host: str) -> Iterator[tuple[str, str, str]]:
    """Yield model, the table's name of it and count of the GPUs of a host, or that it may have."""
    if match := _TYPE.fullmatch(host):
        family, size, gpus = match.groups()
        name = _FAMILIES[family]
        yield name, name, size if gpus else str(_L4_OF_VCPUS.get(size, ""))
    elif match := _N1.fullmatch(host):
        for name, vcpus in _ATTACHED.items():
            model = name.replace("P100", "P100-PCIe-16GB")  # Google has the card
            counts = (n for n in (1, 2, 4, 8) if int(match[1]) / n in vcpus)
            yield from ((model, name, str(n)) for n in counts)


def _sum(host: str, gpus: str) -> str:
    """Add both prices; "" where one is missing; the texts where one is not an amount."""
    if not host or not gpus:
        return ""
    try:
        parts = usd(host), usd(gpus)
    except InputError:
        return f"{host} + {gpus}"
    return plain(sum(parts[1:], parts[0])) if min(parts) > 0 else plain(min(parts))
