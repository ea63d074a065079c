"""Reads Prometheus: answers of its HTTP API, and scrapes of exporters and servers of models."""

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pricing.errors import InputError
from pricing.listing import listed
from pricing.message import Message
from telemetry.formats.serving import recording_by_job
from telemetry.formats.sniff import LABEL
from telemetry.readers.devices import DEFAULT_INTERVAL_S
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents, float_of, mapping_of
from telemetry.readers.series import SampledSeries
from telemetry.recording.recording import Recording

_POINTS = {"matrix": "values", "vector": "value"}


def read_answers(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of answers: a matrix, or a vector as a snapshot.

    A file holds one answer, an array of answers, or one a line.

    Raises:
        InputError: an answer is an error or of another kind, or holds no GPU metric.
    """
    answers = documents(builder)
    problems: list[str] = []
    series: list[SampledSeries] = []
    for number, answer in enumerate(answers):
        where = builder.name if len(answers) == 1 else f"{builder.name}: answer {number + 1}"
        try:
            series += series_of(answer, where, builder)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    if not series:
        raise builder.empty_error()
    return recording_by_job(builder, series, hints)


def series_of(
    answer: dict[str, object], where: str, builder: RecordingBuilder
) -> list[SampledSeries]:
    """Return the series of one answer.

    Raises:
        InputError: it is an error, or of another kind.
    """
    if "timestamps" in answer:  # a line of VictoriaMetrics' /api/v1/export, in milliseconds
        times, values = answer.get("timestamps"), answer.get("values")
        if isinstance(times, list) and isinstance(values, list) and len(times) == len(values):
            seconds = [(float_of(time) or 0.0) / 1000 for time in times]
            item = {**answer, "values": list(map(list, zip(seconds, values, strict=True)))}
            return list(_series(item, "values", builder))
        raise InputError(f"{where}: its times and values are not as many. Export it again.")
    if answer.get("status") != "success":
        reason = f"{answer.get('errorType', 'error')}: {answer.get('error', 'no reason given')}"
        raise InputError(Message("read.prometheus-error", file=where, reason=reason[:200]))
    body = mapping_of(answer.get("data"))
    kind, result = body.get("resultType"), body.get("result")
    if not isinstance(kind, str) or kind not in _POINTS or not isinstance(result, list):
        raise InputError(Message("read.no-series", file=where, kind=repr(kind)))
    points = _POINTS[kind]
    return [member for item in result for member in _series(mapping_of(item), points, builder)]


def _series(
    item: dict[str, object], points_key: str, builder: RecordingBuilder
) -> Iterator[SampledSeries]:
    labels, points = item.get("metric"), item.get(points_key)
    if not isinstance(labels, dict) or not isinstance(points, list):
        builder.leave_out("series of a wrong shape")
        return
    times, values = _columns([points] if points_key == "value" else points, builder)
    named = {str(key).lower(): str(value) for key, value in labels.items()}
    yield SampledSeries(name=named.pop("__name__", ""), labels=named, t_s=times, readings=values)


def _columns(
    points: list[object], builder: RecordingBuilder
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        table = np.array(points, dtype=float).reshape(-1, 2)
    except (ValueError, TypeError, OverflowError):
        pairs = [list(map(float_of, point)) for point in points if isinstance(point, list)]
        pairs = [pair for pair in pairs if len(pair) == 2 and None not in pair]  # noqa: PLR2004
        builder.leave_out("point of a wrong shape", len(points) - len(pairs))
        table = np.array(pairs, dtype=float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


_LINE = re.compile(r"([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d{1,18}))?")

_ESCAPE = re.compile(r"\\(.)")
# As promtool prints series: a head, then points below it, or one beside it.
_HEAD_SIGN = " =>"
_PRINTED = re.compile(r"(?:(\S.*) => )?(\S+) @\[(\d{1,12})(?:\.(\d{1,3})\d*)?\]")
_TYPE = re.compile(r"# TYPE (\S+) (\w+)")

_KINDS = {"counter": True, "gauge": False}
_SHOWN_LINES = 20
NO_VALUE = "line without a plain value"

_Key = tuple[str, tuple[tuple[str, str], ...]]


def read_scrapes(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of one or more scrapes, also hand-elided and appended ones.

    A scrape is one instant. Where a file holds several, one after the other and without times of
    their own, they count as `hints.interval_s` apart.

    Raises:
        InputError: no line is a metric of a GPU or of a server of models.
    """
    scrapes = Scrapes()
    for block in builder.payload.blocks():
        scrapes.read(block.replace("\r", "").removesuffix("\n"))
    builder.rows_read += sum(scrapes.dropped.values())
    builder.dropped += scrapes.dropped
    if scrapes.broken:
        lines = listed([str(line) for line in scrapes.broken], _SHOWN_LINES)
        builder.notes.append(f"labels elided or broken, read by what is left: lines {lines}.")
    timed = scrapes.timed
    step = hints.interval_s or DEFAULT_INTERVAL_S
    series = [
        SampledSeries(
            name=name,
            labels=dict(labels),
            t_s=np.array(column.times)
            if timed
            else step * np.arange(len(column.values), dtype=float),
            readings=np.array(column.values),
            counter=scrapes.counter(name),
        )
        for (name, labels), column in sorted(scrapes.columns.items(), key=lambda item: item[0])
    ]
    return recording_by_job(
        builder,
        series,
        hints,
        clocked=timed or hints.interval_s is not None,
        timed=timed,
        absolute=timed,
    )


@dataclass(slots=True)
class _ScrapeColumn:
    """The points of one series, in the order of their lines.

    Attributes:
        values: as written.
        times: in seconds; fewer than values where some lines have none.
    """

    values: "array[float]" = field(default_factory=lambda: array("d"))
    times: "array[float]" = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Scrapes:
    """What the lines of one source say; labels are parsed once, not once a line.

    Attributes:
        columns: the points by name and labels, labels by name in lower case.
        dropped: lines left out, by reason.
        broken: numbers of lines whose labels were read by what is left of them.
    """

    columns: dict[_Key, _ScrapeColumn] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    broken: list[int] = field(default_factory=list)
    _kinds: dict[str, str] = field(default_factory=dict)
    _by_text: dict[str, _ScrapeColumn] = field(default_factory=dict)
    _line: int = 0
    _printed: str = ""

    @property
    def timed(self) -> bool:
        """Whether every line says when it was read."""
        columns = self.columns.values()
        return bool(columns) and all(len(c.times) == len(c.values) for c in columns)

    def counter(self, name: str) -> bool | None:
        """Return whether a metric is declared a counter; None where nothing is said."""
        kind = self._kinds.get(name) or self._kinds.get(name.removesuffix("_total"), "")
        return _KINDS.get(kind)

    def read(self, block: str) -> None:
        """Add whole lines."""
        for line in block.split("\n"):
            self._line += 1
            self._take(line.strip())

    def _take(self, text: str) -> None:
        """Read a line: of a series, a comment, or one that is damaged."""
        if not text or text.startswith("#"):
            if declared := _TYPE.match(text):
                self._kinds[declared[1]] = declared[2]
            return
        if text.endswith(_HEAD_SIGN):
            self._printed = text.removesuffix(_HEAD_SIGN)
            return
        match, value = _sample_in(text)
        if value is None and (point := _PRINTED.fullmatch(text)):
            text = f"{point[1] or self._printed} {point[2]} {point[3]}{point[4] or '':0<3}"
            match, value = _sample_in(text)
        if match is None or value is None:
            self.dropped[NO_VALUE] += 1
            return
        series = text[: match.start(3)]
        column = self._by_text.get(series)
        if column is None:
            labels = match[2] or ""
            column = self._column(match[1], _labels_of(labels))
            if LABEL.sub("", labels).strip(", "):
                self.broken.append(self._line)
            else:
                self._by_text[series] = column
        column.values.append(value)
        if match[4]:
            column.times.append(int(match[4]) / 1000)

    def _column(self, name: str, labels: dict[str, str]) -> _ScrapeColumn:
        key = (name, tuple(sorted((label.lower(), text) for label, text in labels.items())))
        return self.columns.setdefault(key, _ScrapeColumn())


def _sample_in(text: str) -> tuple[re.Match[str] | None, float | None]:
    match = _LINE.fullmatch(text)
    return match, float_of(match[3]) if match and "_" not in match[3] else None


def _labels_of(text: str) -> dict[str, str]:
    """Return the labels between the braces of a series, what is escaped in them as it is meant."""
    return {
        name: _ESCAPE.sub(lambda escaped: "\n" if escaped[1] == "n" else escaped[1], value)
        for name, value in LABEL.findall(text)
    }
