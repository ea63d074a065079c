"""Reads the tables that `rocm-smi` and `amd-smi monitor` print for people."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats.amd.table_heads import LONGEST, MONITOR, ROCM, bare
from telemetry.readers import clock
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import names
from telemetry.recording.recording import MEMORY_FRACTION

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "amd-table"
_NAMES = {
    **names("util.kernel_time", "%", "gpu% gfx% gfx_util"),
    **names("util.mem_controller", "%", "mem% mem_util"),
    **names("mem.used_gib", "MiB", "vram_used vram_usage"),
    **names("memory.total", "MiB", "vram_total"),
    **names(MEMORY_FRACTION, "%", "vram%"),
    **names("power.board_w", "W", "power"),
    **names("power.limit_w", "W", "pwrcap"),
    **names("temp.core_c", "C", "temp gpu_t gpu_temp"),
    **names("clock.sm_mhz", "MHz", "sclk gfx_clk gfx_clock"),
}
# What a row of rocm-smi says, release by release; what stands between them differs.
_ROCM_ROW = re.compile(
    r"^(?P<index>\d{1,3})\s.{0,60}?\s(?P<temp>[\d.]+(?=\s*°?[cC]\s)|N/A)\S*\s+"
    r"(?P<power>[\d.]+W|N/A)\s.{0,60}?(?P<sclk>\d{1,6}(?=Mhz)|N/A(?!,))\S*\s.{0,60}?"
    r"(?P<pwrcap>[\d.]+W|N/A|[Uu]nsupported)\s+"
    r"(?P<vram>\d{1,3}%|N/A|[Uu]nsupported)\s+(?P<gpu>\d{1,3}%|N/A)\s*$"
)
_MODEL = re.compile(r"AMD \w[\w ./()-]{0,60}")
_CELL = re.compile(
    r"N/A(?: Mb/s)?|[A-Z_]{4,}|[\d.]{1,12}/[\d.]{1,12} ?[GM]B|"
    r"\d[\d.:T-]{0,30}(?: ?(?:W|°C|C|MHz|%|GB|MB|Mb/s|B))?(?=\s|$)"
)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every row of every table.

    Raises:
        InputError: no row is complete.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows = _rows(payload.text, builder)
    builder.rows_read += len(rows)
    if not rows:
        raise InputError(
            f"{payload.name}: this is a table of AMD's tools, but no GPU in it is complete, so "
            "nothing was measured. Log `amd-smi monitor --csv -w 1` while the job runs."
        )
    return recording(builder, rows, _NAMES, hints)


def _rows(text: str, builder: RecordingBuilder) -> list[SeenDevice]:
    header: list[str] = []
    found: list[SeenDevice] = []
    rocm, time = False, None
    for line in (bare(one) for one in text.splitlines() if len(one) < LONGEST):
        if clock.is_date_line(line):
            time = line
        elif ROCM.match(line):
            rocm, header = True, []
        elif MONITOR.match(line):
            rocm, header = False, line.lower().split()
        elif rocm and (row := _ROCM_ROW.match(line)):
            found.append(_of_rocm(row, time))
        elif rocm and found and _MODEL.fullmatch(line):
            found[-1] = replace(found[-1], model=line)
        elif header and line[:1].isdigit():
            if (seen := _of_monitor(header, _CELL.findall(line), time)) is not None:
                found.append(seen)
            else:
                builder.rows_read += 1
                builder.dropped["cut device"] += 1
        elif line:
            header = []
    return found


def _of_rocm(found: re.Match[str], time: str | None) -> SeenDevice:
    said = found.groupdict()
    cells = {"gpu%": said["gpu"], "vram%": said["vram"], "power": said["power"]}
    cells |= {"temp": said["temp"], "sclk": said["sclk"]}
    # A second die's cap is told as 0 W, its power not at all.
    if said["pwrcap"].strip("0.W"):
        cells["pwrcap"] = said["pwrcap"]
    index = int(said["index"])
    return SeenDevice(device=f"card{index}", cells=cells, index=index, time=time)


def _of_monitor(header: list[str], cells: list[str], time: str | None) -> SeenDevice | None:
    if len(cells) != len(header):
        return None
    said = dict(zip(header, cells, strict=True))
    used, slash, total = said.get("vram_usage", "").partition("/")
    if slash:  # 80.3/192.0 GB, which are GiB
        said |= {"vram_usage": f"{used} GiB", "vram_total": f"{total.rstrip(' GMB')} GiB"}
        if total.endswith("MB"):
            said |= {"vram_usage": f"{used} MiB", "vram_total": f"{total.rstrip(' GMB')} MiB"}
    elif "vram_used" in said:
        said |= {name: _binary(said[name]) for name in ("vram_used", "vram_total") if name in said}
    if not said["gpu"].isdigit():
        return None
    index = int(said["gpu"])
    return SeenDevice(
        device=f"card{index}", cells=said, index=index, time=said.get("timestamp", time)
    )


def _binary(cell: str) -> str:
    return cell.replace("GB", "GiB")
