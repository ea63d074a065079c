"""The names under which servers of models count, by the tables in serving_metrics.toml.

A prefix in front of them (`ray_`, `kserve_`) and `_` in place of `:` are known, too.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pricing.tables import Json, JsonObject

FRAMEWORKS = {"vllm": "vllm", "sglang": "sglang", "nv_inference": "triton", "tgi": "tgi"}
_SERVER = re.compile(rf"(?:^|[_:])({'|'.join(FRAMEWORKS)})[:_](\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName:
    """What a name holds: a part of what is served, and the factor to milliseconds of a time."""

    part: str
    to_ms: float = 1.0


ENDS = ("_bucket", "_sum", "_count")


def _names(table: Mapping[str, Any]) -> dict[str, MetricName]:
    """Return what the names of one server hold, those of times with the endings of their series."""
    names = {
        name: MetricName(part=part) for part, names in table["figures"].items() for name in names
    }
    for kind, ends in (("times", ("", *ENDS)), ("sums", ("",))):
        for part, stems in table.get(kind, {}).items():
            metric = MetricName(part=part, to_ms=table["to-ms"])
            names |= {name + end: metric for name in stems for end in ends}
    return names


_FILE = Path(__file__).with_suffix(".toml")
NAMES: Mapping[str, Mapping[str, MetricName]] = {
    server: _names(table)
    for server, table in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
# What stands at the moment; all else counts up, but for the quantiles of a summary.
GAUGES = frozenset(("running", "waiting", "cache"))
QUANTILE = "quantile"
# Requests that ended otherwise than answered: what they are instead, None for nothing that is told.
_REASON = "finished_reason"
_ENDED: Mapping[str, str | None] = {"error": "failed", "abort": None}
# Ranks of one engine tell the same figure; copies of a server add up.
RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")


def server_of(name: str) -> tuple[str, str] | None:
    """Return the server and the name that a metric has there, None for a metric of no server."""
    match = _SERVER.search(name.lower())
    if match is None or match[2] not in NAMES[match[1]]:
        return None
    return match[1], match[2]


def metric_of(name: str, labels: Mapping[str, str]) -> tuple[str, str, MetricName] | None:
    """Return the server, the name there and what the sample is, by its labels, too."""
    named = server_of(name)
    if named is None:
        return None
    server, own = named
    metric = NAMES[server][own]
    part = _ENDED.get(labels.get(_REASON, ""), metric.part)
    return None if part is None else (server, own, replace(metric, part=part))


def stem(name: str) -> str:
    """Return the name of the histogram or summary that a series is of, or the name itself."""
    end = next((end for end in ENDS if name.endswith(end)), "")
    return name.removesuffix(end)


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
    from prometheus_client import parser  # noqa: PLC0415 - brings a server that few starts need

    lines = [line for line in text.split("\n") if server_of(re.split("[{ ]", line, maxsplit=1)[0])]
    samples = [
        (named, sample)
        for family in parser.text_string_to_metric_families("\n".join([*lines, ""]))
        for sample in family.samples
        if (named := metric_of(sample.name, sample.labels)) is not None
    ]
    servers = {named[0] for named, _ in samples}
    server = next((name for name in _FIRST if name in servers), None)
    counts: dict[Key, dict[Labels, float]] = defaultdict(dict)
    gauges: dict[Key, dict[Labels, float]] = defaultdict(dict)
    for (owner, _, metric), sample in samples:
        # Below 0 and NaN stand for "nothing to tell yet".
        if owner != server or not sample.value >= 0:
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


def _together(key: Key, values: list[float]) -> float:
    """Return what engines hold together; of a share or a quantile of several the mean."""
    name, labels = key
    named = metric_of(name, dict(labels))
    share = named is not None and named[2].part not in GAUGES - {_CACHE}
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
                # A counter that fell was started anew and counts from 0.
                grown = value - before.get(own, 0.0)
                grown = (grown if grown >= 0 else value) if self.pages else 0.0
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
