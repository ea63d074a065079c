"""Reads what monitors print: gpustat, nvtop, nvitop, `dcgmi dmon`, AMD's tools, tegrastats."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pricing.message import Message
from telemetry.formats.sniff import GPUSTAT_LINE, MONITOR_HEAD, ROCM_HEAD, bare_lines
from telemetry.readers import records
from telemetry.readers.column_names import csv_cells, names_of
from telemetry.readers.devices import DeviceRow, device_recording
from telemetry.readers.hints import Hints
from telemetry.readers.payload import date_after, is_date_line, without_stamp
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.recording import Recording

_GPUSTAT_HEAD = re.compile(
    r"(?P<host>\S{1,80})\s+(?P<time>\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})(?:\s.*)?"
)
# The parts of a line that is printed, by the names of `--json`.
_PRINTED = {
    "temperature": "temperature.gpu",
    "utilization": "utilization.gpu",
    "power": "power.draw",
    "limit": "enforced.power.limit",
    "used": "memory.used",
    "total": "memory.total",
}
# TAG/cuda:0 (gpu:3)/memory_used (MiB)/mean. What stands below pid:1234 is of one process.
_NVITOP_KEY = re.compile(r"(?:[^/]+/)?(?:cuda:\d+ \()?gpu:(\d{1,4})\)?/([^/]+)/mean")
_NVITOP_TIME = re.compile(r"(?:[^/]+/)?timestamp")
_DCGMI_ROW = re.compile(r"(GPU|GPU-I|GPU-CI)\s+(\d{1,4})\s+(\S.*)")


def read_gpustat(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every query of `gpustat --json`, or of what gpustat prints.

    Raises:
        InputError: no GPU is in any of them.
    """
    if GPUSTAT_LINE.search(builder.text):
        rows = list(_gpustat_lines(builder.text))
    else:
        rows = [r for query in records.objects(builder, "cut query") for r in _gpustat_query(query)]
    return device_recording(builder, rows, hints)


def _gpustat_query(query: dict[str, object]) -> Iterator[DeviceRow]:
    host, time = records.text_of(query.get("hostname")), records.text_of(query.get("query_time"))
    for position, gpu in enumerate(records.mappings_in(query.get("gpus"))):
        number = records.whole_of(gpu.get("index"))
        index = position if number is None else number
        yield DeviceRow(
            cells=records.texts_of(gpu, names_of("gpustat")),
            index=index,
            uuid=records.text_of(gpu.get("uuid")),
            model=records.text_of(gpu.get("name")),
            time=time,
            host=host,
        )


def _gpustat_lines(text: str) -> Iterator[DeviceRow]:
    """Yield the GPUs of every query, by gpustat's names of their readings; "?" is missing."""
    host = time = None
    for line in text.splitlines():
        head = _GPUSTAT_HEAD.fullmatch(line.strip(" \t>"))
        if head is not None and is_date_line(head["time"]):
            host, time = head["host"], head["time"]
        elif gpu := GPUSTAT_LINE.match(line):
            yield DeviceRow(
                cells={
                    name: gpu[part]
                    for part, name in _PRINTED.items()
                    if (gpu[part] or "").isdigit()
                },
                index=int(gpu["index"]),
                model=gpu["model"].strip(),
                time=time,
                host=host,
            )


def read_nvtop(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every snapshot of `nvtop -s`; they carry no time.

    GPUs are of NVIDIA, AMD and Intel; readings are strings with units.

    Raises:
        InputError: no GPU is in any of them.
    """
    rows = [
        DeviceRow(
            cells=records.texts_of(gpu, names_of("nvtop")),
            index=index,
            model=records.text_of(gpu.get("device_name")),
        )
        for snapshot in records.values(builder, "cut snapshot")
        for index, gpu in enumerate(snapshot if isinstance(snapshot, list) else [snapshot])
        if isinstance(gpu, dict)
    ]
    return device_recording(builder, rows, hints)


def read_nvitop(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the means of every collection of nvitop's `ResourceMetricCollector`.

    It is written as JSON lines or as CSV; min and max within a collection are not read.

    Raises:
        InputError: no row names a reading of a GPU.
    """
    is_json = builder.text.lstrip()[:1] in ("{", "[")
    collections = (records.objects if is_json else records.csv_rows)(builder, "cut line")
    rows = [row for collection in collections for row in _nvitop_rows(collection)]
    return device_recording(builder, rows, hints)


def _nvitop_rows(collection: Mapping[str, object]) -> Iterator[DeviceRow]:
    cells: dict[int, dict[str, str]] = defaultdict(dict)
    time: str | None = None
    for key, value in collection.items():
        text = records.text_of(value)
        if text is None or "pid:" in key:
            continue
        if (reading := _NVITOP_KEY.fullmatch(key)) is not None:
            cells[int(reading[1])][reading[2]] = text
        elif _NVITOP_TIME.fullmatch(key):
            time = text
    for index, readings in sorted(cells.items()):
        yield DeviceRow(cells=readings, index=index, time=time)


def read_dcgmi(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of `dcgmi dmon`: fields by short names, under headers that come again.

    Rows carry no time but what `ts` put before them; else they are `hints.interval_s` apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    rows = list(_dcgmi_rows(builder))
    boards = {row.index for row in rows if row.partition is None}
    if len(boards) == 1:  # of several it is not told which one an instance is part of
        (board,) = boards
        rows = [
            row
            if row.partition is None
            else replace(row, index=board, device=f"GPU {board}/{row.device}")
            for row in rows
        ]
    return device_recording(builder, rows, hints, mig=any(row.partition for row in rows))


def _dcgmi_rows(builder: RecordingBuilder) -> Iterator[DeviceRow]:
    header: list[str] = []
    for line in builder.text.split("\n"):
        time, text = without_stamp(line.strip())
        if text.startswith("#"):
            names = text.lstrip("# ").lower().split()
            header = names[1:] if names[:1] == ["entity"] else header
            continue
        row = _DCGMI_ROW.match(text)
        if row is None:
            continue  # the line of units, and words at the end
        cells = row[3].split()
        if len(cells) != len(header):
            builder.leave_out("cut line" if len(cells) < len(header) else "not a row")
            continue
        is_device = row[1] == "GPU"
        yield DeviceRow(
            device=f"{row[1]} {row[2]}",
            cells=dict(zip(header, cells, strict=True)),
            index=int(row[2]) if is_device else None,
            partition=None if is_device else f"instance {row[2]}",
            time=time,
        )


_TEGRA = re.compile(
    r"(?P<name>RAM|GR3D|EMC|VDD_IN|POM_5V_IN|GPU@)(?:_FREQ)?\s*"
    r"(?P<value>[\d.]+)(?:%|C|mW)?(?:/(?P<most>\d+))?(?=\D|$)",
    re.IGNORECASE,
)
_TEGRA_TIME = re.compile(r"\d\d-\d\d-\d{4} \d\d:\d\d:\d\d")


def read_tegrastats(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of `tegrastats`: one GPU, which shares its memory with the CPU.

    Raises:
        InputError: no line is complete.
    """
    rows = []
    for line in builder.text.splitlines():
        cells: dict[str, str] = {}
        for figure in _TEGRA.finditer(line):
            name = figure["name"].lower().replace("gpu@", "gpu_temperature")
            cells.setdefault(name, figure["value"])
            if name == "ram" and figure["most"]:
                cells["ram_total"] = figure["most"]
        if "ram" not in cells:
            builder.leave_out("not a row", int(bool(line.strip())))
            continue
        time = _TEGRA_TIME.search(line)
        rows.append(DeviceRow(cells=cells, index=0, time=time[0] if time else None))
    builder.notes.append("CPU and GPU share the memory: what is used is of both.")
    return device_recording(builder, rows, hints)


# Boards of AMD in partitions (CPX, DPX): tools list each as a GPU. Its number, from 0, stands with
# it, or how many there are with the first, whose readings are the board's. What the others say is
# N/A, 0 or the same again (ROCm/ROCm#4750, ROCm/amdsmi#134) but for the memory that each uses.
_PART, _PARTS = "xcp", "partitions"
_OF_PARTS = ("mem.used_gib", "fraction.memory")


def _of_boards(builder: RecordingBuilder, rows: Sequence[DeviceRow], hints: Hints) -> Recording:
    """Return the readings of boards, and the memory of the partitions of each."""
    numbered = list(_numbered(rows))
    divided = {board.key for _, board, number in numbered if number}
    if divided:
        builder.notes.append(Message("read.partitions", n=len(divided)))
    names = [n for n, holds in names_of(builder.form).items() if holds.target in _OF_PARTS]
    devices: list[DeviceRow] = []
    for row, board, number in numbered:
        if not number:
            left_out = names if row.key in divided else ()
            cells = {n: cell for n, cell in row.cells.items() if n not in left_out}
            devices.append(replace(row, cells=cells))
        if board.key in divided:
            cells = {name: row.cells[name] for name in names if name in row.cells}
            own = replace(board, time=row.time, cells=cells, partition=f"xcp {number}")
            devices.append(replace(own, device=f"{board.key}/{own.partition}"))
    return device_recording(builder, devices, hints)


def _numbered(rows: Iterable[DeviceRow]) -> Iterator[tuple[DeviceRow, DeviceRow, int]]:
    """Yield each row with the first one of its board, and its number among the partitions."""
    board, number = None, 0
    for row in rows:
        stated = row.cells.get(_PART, "")
        if stated.isdecimal():
            number = int(stated)
        else:
            several = board is not None and number + 1 < int(board.cells.get(_PARTS, "1"))
            number = number + 1 if several else 0
        if board is None or not number:
            board, number = row, 0
        yield row, board, number


_DEEPEST = 4
_JSON_LINE = re.compile(r"^\s*[\[{]", re.MULTILINE)


def read_amd_smi(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every GPU of `amd-smi metric` and `monitor`, JSON or CSV.

    Raises:
        InputError: no GPU is in it.
    """
    # `--watch` prints a line for people before the JSON; a cell of CSV may hold a list.
    if _JSON_LINE.search(builder.text):
        items = _gpus(records.values(builder, "cut answer"))
    else:
        items = records.csv_rows(builder, "cut line", "gpu")
    return _of_boards(builder, [row for i in items if (row := _amd_smi_row(i)) is not None], hints)


def _gpus(answers: Iterable[object]) -> Iterator[Mapping[str, object]]:
    for answer in answers:
        yield from records.mappings_in(
            answer.get("gpu_data", [answer]) if isinstance(answer, dict) else answer
        )


def _amd_smi_row(item: Mapping[str, object]) -> DeviceRow | None:
    index = records.whole_of(item.get("gpu", item.get("GPU")))
    if index is None:
        return None
    cells: dict[str, str] = {}
    _flatten(item, cells, 0)
    by_part = records.mapping_of(records.mapping_of(item.get("usage")).get("gfx_busy_inst"))
    return DeviceRow(
        cells=cells | ({_PARTS: str(len(by_part))} if by_part else {}),
        index=index,
        uuid=cells.get("uuid"),
        model=cells.get("market_name", cells.get("product_name")),
        time=cells.get("timestamp"),
    )


_TEMPERATURES = frozenset({"edge", "hotspot"})


def _flatten(item: Mapping[str, object], cells: dict[str, str], depth: int) -> None:
    """Put every figure under the last part of its name, the first of a name first."""
    of_temperature = not _TEMPERATURES.isdisjoint(map(str.lower, item))
    for name, value in item.items():
        key = str(name).lower()
        if key == "mem" and of_temperature:  # of `monitor` it is the controller's time
            key = "temperature_mem"
        if isinstance(value, dict) and "value" in value:
            number, unit = records.text_of(value["value"]), records.text_of(value.get("unit"))
            text = None if number is None else f"{number} {unit or ''}".strip()
        elif isinstance(value, dict):
            if depth < _DEEPEST:
                _flatten(value, cells, depth + 1)
            continue
        else:
            text = records.text_of(value)
        if text is not None and key != "gpu":
            cells.setdefault(key, text)


_MODELS = ("card_series", "card_model", "device_name")
_CARD = re.compile(r"(?:card|gpu)?(\d{1,4})")
_ID = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_TIME = "time"
# People put a date before every line, with a comma or without; then the header has one, too.
_CSV_HEADER = re.compile(r"(?P<before>[^,]*(?:,[^,]*)??[\s,])?device(?P<after>,.*)", re.IGNORECASE)
_CSV_ROW = re.compile(
    r"(?P<before>.*?[\s,])??(?P<card>(?:card|gpu)?\d{1,4})(?P<after>,.*)", re.IGNORECASE
)


def read_rocm_smi(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every card of `rocm-smi --json` and `--csv`.

    Names differ from release to release; answers carry no time of their own.

    Raises:
        InputError: no card is in it.
    """
    is_json = builder.text.lstrip()[:1] in ("{", "[")
    answers = records.objects(builder, "cut answer") if is_json else _rocm_smi_csv(builder.text)
    return _of_boards(builder, [row for answer in answers for row in _cards(answer)], hints)


def _cards(answer: Mapping[str, object]) -> Iterator[DeviceRow]:
    for name, figures in answer.items():
        card = _CARD.fullmatch(name)
        if card is None or not isinstance(figures, dict):
            continue
        cells = {
            "_".join(str(name).lower().split()): text.strip("() ")
            for name, value in figures.items()
            if (text := records.text_of(value)) is not None
        }
        unique = cells.get("unique_id", "")
        models = (cells.get(name, "") for name in _MODELS)
        yield DeviceRow(
            cells=cells,
            index=int(card[1]),
            uuid=unique if _ID.fullmatch(unique) and unique.strip("0x") else None,
            # Older releases give an id for the series of a card that is new.
            model=next((m for m in models if m not in {"", "N/A"} and not _ID.fullmatch(m)), None),
            time=cells.get(_TIME),
        )


def _rocm_smi_csv(text: str) -> Iterator[dict[str, object]]:
    """Yield the rows of `--csv`; the header comes again with every call."""
    header: list[str] = []
    date = ""
    for line in text.splitlines():
        if is_date_line(line):
            date = date_after(date, line)
        elif names := _CSV_HEADER.fullmatch(line.strip()):
            header = csv_cells(names["after"])[1:]
        elif header and (row := _CSV_ROW.fullmatch(line.strip())) is not None:
            cells = csv_cells(row["after"])[1:]
            time = (row["before"] or "").strip(" ,\t[]") or date
            if len(cells) == len(header):
                figures = dict(zip(header, cells, strict=True)) | ({_TIME: time} if time else {})
                yield {row["card"].lower(): figures}


# What a row of rocm-smi says, release by release; what stands between them differs.
_ROCM_ROW = re.compile(
    r"^(?P<index>\d{1,3})\s.{0,60}?\s(?P<temp>[\d.]+(?=\s*°?[cC]\s)|N/A)\S*\s+"
    r"(?P<power>[\d.]+W|N/A)\s+(?:[\w/]+, +[\w/]+, +(?P<xcp>\d{1,3})\s)?"
    r".{0,60}?(?P<sclk>\d{1,6}(?=Mhz)|N/A(?!,))\S*\s.{0,60}?"
    r"(?P<pwrcap>[\d.]+W|N/A|[Uu]nsupported)\s+"
    r"(?P<vram>\d{1,3}%|N/A|[Uu]nsupported)\s+(?P<gpu>\d{1,3}%|N/A)\s*$"
)
_MODEL = re.compile(r"AMD \w[\w ./()-]{0,60}")
_CELL = re.compile(
    r"N/A(?: Mb/s)?|[A-Z_]{4,}|[\d.]{1,12}/ {0,9}[\d.]{1,12} ?[GM]B|"
    r"\d[\d.:T-]{0,30}(?: ?(?:W|°C|C|MHz|%|GB|MB|Mb/s|B))?(?=\s|$)"
)


def read_tables(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of the tables that `rocm-smi` and `amd-smi monitor` print for people.

    Raises:
        InputError: no row is complete.
    """
    return _of_boards(builder, _table_rows(builder), hints)


def _table_rows(builder: RecordingBuilder) -> list[DeviceRow]:
    header: list[str] = []
    rows: list[DeviceRow] = []
    is_rocm, time = False, None
    for line in bare_lines(builder.text):
        if is_date_line(line):
            time = date_after(time or "", line)
        elif ROCM_HEAD.match(line):
            is_rocm, header = True, []
        elif MONITOR_HEAD.match(line):
            is_rocm, header = False, line.lower().split()
        elif is_rocm and (match := _ROCM_ROW.match(line)):
            rows.append(_rocm_row(match, time))
        elif is_rocm and rows and _MODEL.fullmatch(line):
            rows[-1] = replace(rows[-1], model=line)
        elif header and line[:1].isdigit():
            if (row := _monitor_row(header, _CELL.findall(line), time)) is not None:
                rows.append(row)
            else:
                builder.leave_out("cut device")
        elif line:
            header = []
    return rows


def _rocm_row(row: re.Match[str], time: str | None) -> DeviceRow:
    cells = {"gpu%": row["gpu"], "vram%": row["vram"]}
    cells |= {name: row[name] for name in ("power", "temp", "sclk", _PART) if row[name]}
    # A second die's cap is told as 0 W, its power not at all.
    if row["pwrcap"].strip("0.W"):
        cells["pwrcap"] = row["pwrcap"]
    return DeviceRow(cells=cells, index=int(row["index"]), time=time)


def _monitor_row(header: list[str], cells: list[str], time: str | None) -> DeviceRow | None:
    if len(cells) != len(header):
        return None
    row = dict(zip(header, cells, strict=True))
    used, slash, total = row.get("vram_usage", "").partition("/")
    if slash:  # 80.3/192.0 GB, which are GiB
        unit = "MiB" if total.endswith("MB") else "GiB"
        row |= {"vram_usage": f"{used} {unit}", "vram_total": f"{total.strip(' GMB')} {unit}"}
    elif "vram_used" in row:
        memory = ("vram_used", "vram_total")
        row |= {name: row[name].replace("GB", "GiB") for name in memory if name in row}
    if not row["gpu"].isdigit():
        return None
    return DeviceRow(cells=row, index=int(row["gpu"]), time=row.get("timestamp", time))
