"""Reads what nvidia-smi prints: -q as XML and text, its table, its lists of GPUs and processes."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats import csv_log
from telemetry.readers import csv_text
from telemetry.readers.column_names import names_of
from telemetry.readers.csv_text import number_in
from telemetry.readers.devices import DeviceRow, device_recording
from telemetry.readers.hints import Hints
from telemetry.readers.payload import is_date_line, without_stamp
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.records import csv_rows, whole_of
from telemetry.recording.recording import Recording

_Cells = dict[str, str]
_Tick = dict[tuple[int, str], _Cells]

_TIME = re.compile(r"<timestamp>([^<]{0,80})")
_GPU, _GPU_END = "<gpu ", "</gpu>"
_MOST_CHARACTERS = 4_000_000  # of one device's XML; a real one has 70,000
_LONGEST_TEXT_LINE = 500  # characters; a real one has 160
_LONGEST_TABLE_LINE = 300  # a real one has 91
_DEEPEST = 8


def read_xml(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every complete `<gpu>` element of `nvidia-smi -q -x`.

    Raises:
        InputError: there is none.
    """
    rows = [
        _query_row(element.get("id", ""), index, time, dict(_xml_cells(element)))
        for element, index, time in _elements(builder)
    ]
    mig = any(row.cells.get("mig_mode/current_mig") == "Enabled" for row in rows)
    return device_recording(builder, rows, hints, mig=mig)


def _elements(builder: RecordingBuilder) -> Iterator[tuple[Element, int, str | None]]:
    """Yield each device's element, its place in its document, and the document's time."""
    for document in builder.text.split("<nvidia_smi_log")[1:]:
        time, at = _TIME.search(document), 0
        for index in range(1 << 16):
            begin = document.find(_GPU, at)
            if begin < 0:
                break
            end = document.find(_GPU_END, begin)
            if end < 0:
                builder.leave_out("cut device")
                break
            at = end + len(_GPU_END)
            element = _parsed(document[begin:at])
            if element is None:
                builder.leave_out("damaged device")
                continue
            yield element, index, time and time[1].strip()


def _parsed(text: str) -> Element | None:
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        element: Element = fromstring(text)
    except (ParseError, DefusedXmlException, ValueError):
        return None
    return element


def _xml_cells(element: Element) -> Iterator[tuple[str, str]]:
    """Yield texts by path, of the first two levels: all that is measured lies there."""
    for child in element:
        if len(child) == 0 and child.text:
            yield child.tag, child.text.strip()
        for grandchild in child:
            if len(grandchild) == 0 and grandchild.text:
                yield f"{child.tag}/{grandchild.tag}", grandchild.text.strip()


def read_query(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every GPU of every text log of `nvidia-smi -q`.

    Raises:
        InputError: no GPU is in it.
    """
    rows = list(_sections(builder))
    mig = any(row.cells.get("mig_mode/current") == "Enabled" for row in rows)
    return device_recording(builder, rows, hints, mig=mig)


def _sections(builder: RecordingBuilder) -> Iterator[DeviceRow]:
    """Yield each GPU with its cells by their path: sections are told by indentation."""
    time, index, bus = None, -1, None
    cells: _Cells = {}
    path: list[tuple[int, str]] = []
    for indent, name, cell in _text_lines(builder):
        if indent > 0:
            above = [part for part in path if part[0] < indent][:_DEEPEST]
            path = [*above, (indent, "_".join(name.lower().split()))]
            # The first of a name is meant: those of processes and MIG instances come many times.
            if cell:
                cells.setdefault("/".join(part for _, part in path), cell)
            continue
        if bus is not None and name.startswith(("GPU ", "Timestamp")):
            yield _query_row(bus, index, time, cells)
            bus = None
        if name == "Timestamp":
            time, index = cell or None, -1
        elif name.startswith("GPU ") and not cell:
            bus, index, cells, path = name[4:].strip(), index + 1, {}, []
    if bus is not None:
        yield _query_row(bus, index, time, cells)


def _query_row(bus: str, index: int, time: str | None, cells: _Cells) -> DeviceRow:
    return DeviceRow(
        device=f"bus {bus}" if bus else f"place {index}",
        cells=cells,
        index=index,
        uuid=cells.get("uuid", cells.get("gpu_uuid")),
        model=cells.get("product_name"),
        time=time,
    )


def _text_lines(builder: RecordingBuilder) -> Iterator[tuple[int, str, str]]:
    """Yield indentation, name and value of each line."""
    for line in builder.text.split("\n"):
        if len(line) > _LONGEST_TEXT_LINE:
            builder.leave_out("line too long")
            continue
        name, _, cell = line.partition(" : ")
        if name.strip():
            yield len(name) - len(name.lstrip()), name.strip(), cell.strip()


# The first line of a GPU says which it is, the next what it does. Drivers 390 to 610 differ in the
# widths.
_TABLE_DEVICE = re.compile(
    r"\|\s{1,8}(\d{1,3})\s{1,8}(\S.{0,40}?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|"
    r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s"
)
_TABLE_READINGS = re.compile(
    r"\|\s*(?:\d{1,3}%|N/A|ERR!)\s+(?P<temperature>\d{1,3}|N/A|ERR!)C?\s+(?:P\d{1,2}|N/A|ERR!)\s+"
    r"(?P<power>\d{1,5}W|N/A|ERR!)\s*/\s*(?P<limit>\d{1,5}W|N/A|ERR!)\s*\|"
    r"\s*(?P<used>\d{1,8}MiB|N/A)\s*(?:/\s*(?P<total>\d{1,8}MiB|N/A))?\s*\|"
    r"\s*(?P<utilization>\d{1,3}%|N/A|ERR!)\s"
)


def read_table(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every table; of the CSV rows, where a log of tables goes on as CSV.

    Raises:
        InputError: neither a GPU of a table nor a row of CSV is complete.
    """
    text = builder.text
    log = csv_text.split([text], hints)
    if log is not None and any(table.rows for table in log.tables.values()):
        return csv_log.read_rows(RecordingBuilder(builder.payload, "nvidia-smi-csv"), log, hints)
    rows = list(_table_rows(text, builder))
    _refuse_several_machines(builder.name, rows)
    return device_recording(builder, rows, hints, mig="MIG devices:" in text)


def _refuse_several_machines(name: str, rows: list[DeviceRow]) -> None:
    """Refuse a page on which tables of different machines are kept: not a log of one job."""
    models: dict[int | None, set[str | None]] = defaultdict(set)
    for row in rows:
        models[row.index].add(row.model)
    for index, names in sorted(models.items(), key=str):
        if len(names) > 1:
            shown = sorted(map(str, names))
            raise InputError(
                Message("read.several-models", file=name, index=str(index), models=shown)
            )


def _table_rows(text: str, builder: RecordingBuilder) -> Iterator[DeviceRow]:
    time: str | None = None
    device: re.Match[str] | None = None
    for line in (line.lstrip(" \t>") for line in text.split("\n")):  # as quoted in a page of text
        if len(line) > _LONGEST_TABLE_LINE:
            device = None
        elif match := _TABLE_DEVICE.match(line):
            builder.leave_out("cut device", int(device is not None))
            device = match
        elif device is not None:
            readings = _TABLE_READINGS.match(line)
            if readings is None and "ERR!" not in line and "GPU is lost" not in line:
                builder.leave_out("cut device")
            else:
                yield DeviceRow(
                    device=f"bus {device[3]}",
                    cells=readings.groupdict("") if readings else {},
                    index=int(device[1]),
                    model=device[2].strip(),  # a name that is too long ends in dots
                    time=time,
                )
            device = None
        elif line[:1].isalpha() and is_date_line(line):
            time = line.strip()
    builder.leave_out("cut device", int(device is not None))


def read_dmon(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of `nvidia-smi dmon`, whatever columns were asked for.

    Without `-o T` rows are `hints.interval_s` apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    listed = list(_listed_rows(builder, {"gpu"}, exact=True))
    names = {name for cells in listed for name in cells}
    rows = [
        DeviceRow(cells=dict.fromkeys(names, "-") | cells, index=index, time=_listed_time(cells))
        for cells in listed
        if (index := whole_of(cells["gpu"])) is not None
    ]
    return device_recording(builder, rows, hints, counted=True)


def read_pmon(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the sums over the processes of each GPU in `nvidia-smi pmon`.

    Without `-o T` they are an interval apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    rows = [row for time, tick in _ticks(builder) for row in _sums_of_tick(time, tick)]
    builder.notes.append("a GPU's readings are the sums over its processes.")
    return device_recording(builder, rows, hints, counted=True)


def _listed_rows(builder: RecordingBuilder, needed: set[str], *, exact: bool) -> Iterator[_Cells]:
    """Yield the rows of a list by the names of the `#` header above them.

    Args:
        builder: where rows are counted.
        needed: names that a header has.
        exact: whether a row has as many words as the header; else the last may hold blanks.
    """
    header: list[str] = []
    is_stamped = False
    for text in builder.text.split("\n"):
        time, line = without_stamp(text)
        is_header = line.lstrip().startswith("#")
        is_stamped = time is not None if is_header else is_stamped
        line = line if is_stamped else text  # a row may begin with a time of its own
        spaced = line.replace(",", " ") if exact else line
        columns = spaced.split()
        if not columns:
            continue
        if is_header:
            names = spaced.replace("#", " ", 1).lower().split()
            header = names if needed <= set(names) else header
            continue
        cells = dict(zip(header, columns, strict=False))
        if len(columns) < len(header):
            builder.leave_out("cut line")
        elif whole_of(cells.get("gpu")) is None or (exact and len(columns) > len(header)):
            builder.leave_out("not a row")
        else:
            builder.rows_read += 1
            yield {"time": time} | cells if time and is_stamped else cells


def _listed_time(cells: _Cells) -> str | None:
    if "time" not in cells:
        return None
    day = cells.get("date", "")
    dated = len(day) == 8 and day.isdecimal()  # noqa: PLR2004 - YYYYMMDD
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{cells['time']}" if dated else cells["time"]


def _ticks(builder: RecordingBuilder) -> Iterator[tuple[str | None, _Tick]]:
    """Yield the rows of each instant: it ends where a process of a GPU comes again."""
    tick: _Tick = {}
    time: str | None = None
    for cells in _listed_rows(builder, {"gpu", "pid"}, exact=False):
        key, now = (int(cells["gpu"]), cells["pid"]), _listed_time(cells)
        if tick and (now != time or key in tick):
            yield time, tick
            tick = {}
        time, tick[key] = now, cells
    if tick:
        yield time, tick


def _sums_of_tick(time: str | None, tick: _Tick) -> Iterator[DeviceRow]:
    """Yield the sums over the processes of each GPU; a row without a process is a sum of none."""
    for gpu in sorted({gpu for gpu, _ in tick}):
        rows = [cells for (own, _), cells in tick.items() if own == gpu]
        sums: _Cells = {}
        for name in rows[0].keys() & names_of("nvidia-smi-pmon"):
            numbers = [n for cells in rows if (n := number_in(cells.get(name, ""))) is not None]
            has_sum = numbers or all(cells["pid"] == "-" for cells in rows)
            sums[name] = repr(float(sum(numbers))) if has_sum else "-"
        yield DeviceRow(cells=sums, index=gpu, time=time)


_USED = "used_gpu_memory"


def read_processes(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the memory of all listed processes by GPU and instant, or the driver's accounts.

    These are `nvidia-smi --query-compute-apps` and `--query-accounted-apps`. An account is a job of
    its own where a GPU has several.

    Raises:
        InputError: no process is listed, or none with a complete reading.
    """
    processes = list(_processes(builder))
    if not processes:
        raise builder.empty_error()
    accounts = "max_memory_usage" in processes[0] or "gpu_utilization" in processes[0]
    return device_recording(
        builder,
        list((_accounts if accounts else _sums)(processes, builder)),
        hints,
        counted=True,
        empty=Message("read.no-process-reading", n=len(processes)),
        **({"timed": True, "active": True} if accounts else {}),
    )


def _processes(builder: RecordingBuilder) -> Iterator[_Cells]:
    for cells in csv_rows(builder, "wrong number of fields", "pid"):
        builder.rows_read += 1
        named = {re.sub(r"\s*\[[^\]]*\]$", "", name): cell for name, cell in cells.items()}
        yield {_USED if name == "used_memory" else name: cell for name, cell in named.items()}


def _device(cells: Mapping[str, str]) -> str:
    return real_uuid(cells.get("gpu_uuid")) or f"bus {cells.get('gpu_bus_id', '')}"


def _sums(processes: list[_Cells], builder: RecordingBuilder) -> Iterator[DeviceRow]:
    """Yield the sum over the processes of a GPU at an instant; nothing where one is unknown."""
    ticks: dict[tuple[str, str], list[_Cells]] = defaultdict(list)
    for cells in processes:
        ticks[cells.get("timestamp", ""), _device(cells)].append(cells)
    builder.notes.append("device memory of all processes listed, as the job's.")
    for (time, _), members in ticks.items():
        mib = [number_in(cells.get(_USED, "")) for cells in members]
        if None in mib:
            builder.dropped["process whose memory the driver does not tell"] += len(members)
            continue
        total = sum(value or 0.0 for value in mib)
        yield _process_row(members[0], {_USED: repr(total)}, time or None, None)


def _accounts(processes: list[_Cells], builder: RecordingBuilder) -> Iterator[DeviceRow]:
    """Yield each account twice, for the halves of a life.

    The driver does not tell when a process began, so all begin at 0.
    """
    several = max(Counter(_device(cells) for cells in processes).values()) > 1
    builder.notes.append("means over the life of a process, by the driver's accounts.")
    for cells in processes:
        length_ms = re.match(r"\d{1,15}", cells.get("time", ""))
        if length_ms is None or int(length_ms[0]) == 0:
            builder.dropped["process that still ran"] += 1
            continue
        job = f"pid {cells['pid']}"[:40] if several else None
        length_s = int(length_ms[0]) / 1000
        row = _process_row(cells, cells, None, job)
        yield from row.at(length_s / 4, length_s * 3 / 4)


def _process_row(process: _Cells, cells: _Cells, time: str | None, job: str | None) -> DeviceRow:
    return DeviceRow(
        device=_device(process),
        cells=cells,
        uuid=process.get("gpu_uuid"),
        model=process.get("gpu_name"),
        time=time,
        job=job,
    )
