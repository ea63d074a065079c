"""The JSON Schema of a line of a capture: the first line, declarations, readings, events, the end.

The first line, facts and events hold what the machine and the probe know, so they are open: what
is always there is told.
"""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from gpucost.schemas.documents import one_of
from planner.models.json_schema import Schema
from telemetry.recording.recording import CAPTURE_SCHEMA, GpuIdentity

_NUMBER = {"type": ["number", "null"]}


class CaptureBegin(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: what is measured, and on what. It is open.

    Attributes:
        capture: `gpucost.capture/v1`.
        t_s: when it began, since 1970 UTC.
        job: its name; None for the whole machine.
        interval_s: between readings.
    """

    capture: str
    t_s: float
    job: str | None
    interval_s: float


class CaptureFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What became known, or changed, since the first line.

    Attributes:
        facts: by name, in place of the earlier ones.
    """

    facts: Mapping[str, object]


class CaptureSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A series of readings, of a GPU or of the host.

    Attributes:
        columns: what its rows hold: slots, or fields of the host.
        id: the number that its rows begin with.
        gpu: the device; left out of the host's.
        host: true, of the host's series; left out of others.
    """

    columns: tuple[str, ...]
    id: int
    gpu: GpuIdentity | UnsetType = UNSET
    host: bool | UnsetType = UNSET


class CaptureBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Readings of one series over a stretch of a long capture, as distributions.

    Attributes:
        folded: the number of the series.
        t_s: when it begins and ends, since 1970 UTC.
        n: instants that were read.
        points: by reading, values and the seconds that they stood.
        means: by reading, of each of equal parts of the time.
        counts: by counter, where each part begins.
    """

    folded: int
    t_s: tuple[float, float]
    n: int
    points: Mapping[str, tuple[tuple[float, float], ...]]
    means: Mapping[str, tuple[float | None, ...]]
    counts: Mapping[str, tuple[float | None, ...]]


class CaptureEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe in the program wrote down. It is open.

    Attributes:
        event: what happened.
    """

    event: str


class CaptureNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of the profile should know.

    Attributes:
        note: one sentence.
    """

    note: str


class CaptureDeviceNotes(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known of the devices.

    Attributes:
        device_notes: sentences, in place of the earlier ones.
    """

    device_notes: tuple[str, ...]


class CaptureEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The last line; where it is missing, the measurement was cut off.

    Attributes:
        end: when, since 1970 UTC [s].
    """

    end: float


_KINDS = (
    CaptureBegin,
    CaptureFacts,
    CaptureSeries,
    CaptureBlock,
    CaptureEvent,
    CaptureNote,
    CaptureDeviceNotes,
    CaptureEnd,
)


def schema() -> Schema:
    """Return the JSON Schema (2020-12) of a line of a capture."""
    document = one_of("capture", "A line of a capture.", _KINDS)
    definitions = document["$defs"]
    definitions["CaptureBegin"]["properties"]["capture"]["const"] = CAPTURE_SCHEMA
    for kind in ("CaptureBegin", "CaptureEvent"):
        definitions[kind]["additionalProperties"] = True
    definitions["CaptureReadings"] = {
        "description": "Readings of one instant: the number of the series, seconds since 1970 UTC, "
        "and a value for each of its columns; null where there was none.",
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "number"}],
        "items": _NUMBER,
        "minItems": 3,
    }
    document["anyOf"].append({"$ref": "#/$defs/CaptureReadings"})
    return document
