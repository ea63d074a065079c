"""Reads `nvidia-smi -q -x`, one document or many, by what each version of it calls a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from pricing.errors import InputError
from telemetry.readers.column_names import FLAG
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import SLOWDOWNS, Meaning, names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvidia-smi-xml"
# Power readings: `power_readings` until v11, `gpu_power_readings` since v12; those of the module
# (GPU and CPU) are others.
_POWER = ("gpu_power_readings", "power_readings")
_NAMES = {
    "utilization/gpu_util": Meaning(target="util.kernel_time", unit="%"),
    "utilization/memory_util": Meaning(target="util.mem_controller", unit="%"),
    "utilization/encoder_util": Meaning(target="util.encoder", unit="%"),
    "utilization/decoder_util": Meaning(target="util.decoder", unit="%"),
    "fb_memory_usage/used": Meaning(target="mem.used_gib", unit="MiB"),
    "fb_memory_usage/total": Meaning(target="memory.total", unit="MiB"),
    **names(
        "power.board_w",
        "W",
        " ".join(
            f"{block}/{draw}"
            for draw in ("power_draw", "average_power_draw", "instant_power_draw")
            for block in _POWER
        ),
    ),
    **names(
        "power.limit_w",
        "W",
        " ".join(
            f"{block}/{limit}"
            for limit in ("enforced_power_limit", "current_power_limit", "power_limit")
            for block in _POWER
        ),
    ),
    "temperature/gpu_temp": Meaning(target="temp.core_c", unit="C"),
    "clocks/sm_clock": Meaning(target="clock.sm_mhz", unit="MHz"),
    **{
        f"clocks_{word}_reasons/clocks_{word}_reason_{cause}": Meaning(target=FLAG)
        for word in ("event", "throttle")
        for cause in SLOWDOWNS
    },
    **{
        f"clocks_event_reasons_counters/clocks_event_reasons_counters_{cause}": Meaning(
            target="counter.throttle_s", unit="us"
        )
        for cause in ("sw_power_cap", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake")
    },
}
_TIME, _GPU, _END = "<timestamp>", "<gpu ", "</gpu>"
_MOST_CHARACTERS = 4_000_000  # of one device; a real one has 70,000


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every complete `<gpu>` element.

    Raises:
        InputError: there is none.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows = [_row(element, place, time) for element, place, time in _elements(payload.text, builder)]
    if not rows:
        raise InputError(
            f"{payload.name}: no complete <gpu> element in it, so nothing was measured. Let "
            "`nvidia-smi -q -x` end before the file is copied."
        )
    mig = any(row.cells.get("mig_mode/current_mig") == "Enabled" for row in rows)
    return recording(builder, rows, _NAMES, hints, mig=mig)


def _elements(text: str, builder: RecordingBuilder) -> Iterator[tuple[Element, int, str | None]]:
    """Yield each device's element, its place in its document, and the document's time."""
    for document in text.split("<nvidia_smi_log")[1:]:
        time, at = _between(document, _TIME, "</timestamp>"), 0
        for place in range(1 << 16):
            begin = document.find(_GPU, at)
            if begin < 0:
                break
            builder.rows_read += 1
            end = document.find(_END, begin)
            if end < 0:
                builder.dropped["cut device"] += 1
                break
            at = end + len(_END)
            element = _parsed(document[begin:at])
            if element is None:
                builder.dropped["damaged device"] += 1
                continue
            yield element, place, time


def _between(text: str, begin: str, end: str) -> str | None:
    _, found, rest = text.partition(begin)
    return rest.partition(end)[0].strip()[:80] if found else None


def _parsed(text: str) -> Element | None:
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        element: Element = fromstring(text)
    except (ParseError, DefusedXmlException, ValueError):
        return None
    return element


def _row(element: Element, place: int, time: str | None) -> SeenDevice:
    cells = dict(_cells(element))
    uuid, bus = cells.get("uuid"), element.get("id", "")
    return SeenDevice(
        device=f"bus {bus}" if bus else f"place {place}",
        cells=cells,
        index=place,
        uuid=uuid,
        model=cells.get("product_name"),
        time=time,
    )


def _cells(element: Element) -> Iterator[tuple[str, str]]:
    """Yield texts by path, of the first two levels: all that is measured lies there."""
    for child in element:
        if len(child) == 0 and child.text:
            yield child.tag, child.text.strip()
        for grandchild in child:
            if len(grandchild) == 0 and grandchild.text:
                yield f"{child.tag}/{grandchild.tag}", grandchild.text.strip()
