"""What the metrics pages of a server add up to while it is measured, in bounded memory.

Counters and histograms count from the server's start: what a measurement sees of them is how much
they grew, page by page; one that fell was started anew meanwhile and counts from 0.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from telemetry.serving.names import (
    FRAMEWORKS,
    GAUGES,
    QUANTILE,
    RANKS,
    metric_of,
    server_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pricing.tables import Json, JsonObject

# Of a server that shows the metrics of another, which it runs: whose figures count.
_FIRST = ("vllm", "sglang", "tgi", "nv_inference")
_CACHE = "cache"
_KEPT = ("le", QUANTILE, "finished_reason")

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]
"""A name, and those of its labels that say what a sample is; the others only say whose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page, reduced to what is known of it.

    Attributes:
        server: whose page it is, a key of `FRAMEWORKS`; None where nothing on it is known.
        counts: what has been counted since the server's start, by whose it is.
        gauges: what stands at the moment, all engines together.
    """

    server: str | None = None
    counts: Mapping[Key, Mapping[Labels, float]] = field(default_factory=dict)
    gauges: Mapping[Key, float] = field(default_factory=dict)


def page_of(text: str) -> Page:
    """Return what a page of metrics says; an unknown page gives an empty one.

    Raises:
        ValueError: a line with a known name is not in the text format of Prometheus.
    """
    kept = [line for line in text.split("\n") if server_of(_name_of(line)) is not None]
    found = [
        (known, sample)
        for family in text_string_to_metric_families("\n".join([*kept, ""]))
        for sample in family.samples
        if (known := metric_of(sample.name, sample.labels)) is not None
    ]
    servers = {known[0] for known, _ in found}
    server = next((one for one in _FIRST if one in servers), None)
    counts: dict[Key, dict[Labels, float]] = defaultdict(dict)
    gauges: dict[Key, dict[Labels, float]] = defaultdict(dict)
    for (whose, _, metric), sample in found:
        # Below 0 and NaN stand for "nothing to tell yet".
        if whose != server or not sample.value >= 0:
            continue
        now = metric.part in GAUGES or QUANTILE in sample.labels
        labels = sample.labels.items()
        key = (sample.name, tuple(sorted((k, v) for k, v in labels if k in _KEPT)))
        own = tuple(sorted((k, v) for k, v in labels if k not in _KEPT and k not in RANKS))
        where = gauges[key] if now else counts[key]
        where[own] = max(where.get(own, 0.0), float(sample.value))
    return Page(
        server=server,
        counts=counts,
        gauges={key: _together(key, [*values.values()]) for key, values in gauges.items()},
    )


def _name_of(line: str) -> str:
    return line.partition("{")[0].partition(" ")[0]


def _together(key: Key, values: list[float]) -> float:
    """Return what engines hold together; of a share or a quantile of several the mean."""
    name, labels = key
    known = metric_of(name, dict(labels))
    share = known is not None and known[2].part not in GAUGES - {_CACHE}
    return sum(values) / len(values) if share else sum(values)


@dataclass(slots=True)
class ServingTally:
    """What the pages of one server add up to.

    Attributes:
        pages: how many were taken.
        server: whose pages they are, None before the first that is known.
        from_s: when the first was taken.
        to_s: when the last was.
    """

    pages: int = 0
    server: str | None = None
    from_s: float = 0.0
    to_s: float = 0.0
    _last: dict[Key, dict[Labels, float]] = field(default_factory=dict)
    _grown: dict[Key, float] = field(default_factory=dict)
    _gauges: dict[Key, tuple[float, int]] = field(default_factory=dict)

    def take(self, t_s: float, page: Page) -> None:
        """Add a page; pages come in the order of their times.

        Args:
            t_s: when it was taken, seconds since 1970 UTC.
            page: what it says; one that is not known is left out.
        """
        if page.server is None:
            return
        if not self.pages:
            self.server, self.from_s = page.server, t_s
        for key, series in page.counts.items():
            before = self._last.setdefault(key, {})
            for own, value in series.items():
                grown = _growth(before.get(own, 0.0), value) if self.pages else 0.0
                self._grown[key] = self._grown.get(key, 0.0) + grown
                before[own] = value
        for key, value in page.gauges.items():
            total, n = self._gauges.get(key, (0.0, 0))
            self._gauges[key] = (total + value, n + 1)
        self.pages, self.to_s = self.pages + 1, t_s

    def as_json(self) -> JsonObject:
        """Return the tally: `grown` and `means` are lists of name, labels, value."""
        grown: list[Json] = [_row(key, value) for key, value in self._grown.items()]
        means: list[Json] = [_row(key, total / n) for key, (total, n) in self._gauges.items()]
        return {
            "server": None if self.server is None else FRAMEWORKS[self.server],
            "pages": self.pages,
            "from_s": round(self.from_s, 3),
            "to_s": round(self.to_s, 3),
            "grown": grown,
            "means": means,
        }


def _row(key: Key, value: float) -> Json:
    name, labels = key
    return [name, dict(labels), round(value, 9)]


def _growth(before: float, now: float) -> float:
    """Return how much a counter grew; one that fell was started anew and counts from 0."""
    return now - before if now >= before else now
