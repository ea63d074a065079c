"""The labelled set: profiles and recordings with the verdict that a domain expert would give.

Cases stand in `cases/*.toml`, each with its label and the reason for it. A case is one of: readings
of a profile, a series generated from phases, or the name of a published recording, which skips
where the optional data folder is absent.
"""

import csv
import gzip
import io
import json
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from planner.profile.codec import parse_profiles
from planner.profile.kinds import SLOTS
from planner.profile.model import SCHEMA, Hardware, Host, Profile, Statistics
from telemetry.readers.hints import Hints
from tests.telemetry.reading import read_source

FOLDER = Path(__file__).parent / "cases"
_RUN = ("system", "task", "precision", "run")
_PRECISIONS = {"FP16": "amp-fp16", "AMP": "amp-fp16", "FP32": "fp32"}
_LIMIT = "power.limit [W]"
_COLUMNS = ("utilization.gpu [%]", "memory.used [MiB]", "power.draw [W]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledCase:
    """One case.

    Attributes:
        name: what it is about, unique.
        label: the verdict: the code that must come first.
        why: the reason for the label, for people who doubt it.
        also: codes that must be among the findings.
        absent: codes that must not.
        useful: whether the GPU does useful work, so that it must not be called idle or too large.
        recorded: whether it is a published recording.
        egress: share of the bill that is for data sent out, 0-1; None where there is no bill.
        spare_copies: share of a service's copies that no request needs, 0-1; None where unknown.
        scaling: signals of a probe on fewer GPUs; none where there was no probe.
        held_out: whether no rule was written with it in mind.
        given: the readings, as the TOML states them.
    """

    name: str
    label: str
    why: str
    also: tuple[str, ...]
    absent: tuple[str, ...]
    useful: bool
    recorded: bool
    egress: float | None
    spare_copies: float | None
    scaling: Mapping[str, float]
    held_out: bool
    given: Mapping[str, Any]

    def profile(self, shared: Path | None) -> Profile | None:
        """Return the profile; None where the published data is absent."""
        if not self.recorded:
            return _from_series(self) if "series" in self.given else _from_readings(self)
        if shared is None:
            return None
        return _from_lambda(self, shared) if "lambda" in self.given else _from_sample(self, shared)


@cache
def cases() -> tuple[LabelledCase, ...]:
    """Return every case, by file and in its order."""
    return tuple(
        LabelledCase(
            name=given["name"],
            label=given["label"],
            why=given["why"],
            also=tuple(given.get("also", ())),
            absent=tuple(given.get("absent", ())),
            useful=given.get("useful", False),
            recorded="lambda" in given or "sample" in given,
            egress=given.get("egress"),
            spare_copies=given.get("spare_copies"),
            scaling={f"scaling.{name}": value for name, value in given.get("scaling", {}).items()},
            held_out=path.stem == "held_out",
            given=given,
        )
        for path in sorted(FOLDER.glob("*.toml"))
        for given in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    )


def nudged(profile: Profile, scale: float) -> Profile:
    """Return the profile with each reading of GPU and host multiplied; fractions end at 1."""

    def nudge(statistics: Statistics, high: float | None) -> Statistics:
        values = {name: getattr(statistics, name) for name in Statistics.__struct_fields__}
        known = {name: v * scale for name, v in values.items() if v is not None}
        return Statistics(**{n: v if high is None else min(v, high) for n, v in known.items()})

    gpus = tuple(
        replace(gpu, metrics={n: nudge(s, SLOTS[n].high) for n, s in gpu.metrics.items()})
        for gpu in profile.gpus
    )
    host = profile.host and replace(
        profile.host,
        **{
            name: nudge(s, 1.0 if name == "cpu_util" else None)
            for name in Host.__struct_fields__
            if (s := getattr(profile.host, name)) is not None
        },
    )
    return replace(profile, gpus=gpus, host=host)


def _statistics(readings: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, Mapping) else {"mean": v} for k, v in readings.items()}


def _from_readings(case: LabelledCase) -> Profile:
    given = case.given
    each = given.get("gpus") or [given["gpu"]] * given.get("each", 1)
    document = {
        "schema": SCHEMA,
        "job": {"name": "case", **given["job"]},
        "hardware": given["hardware"],
        "gpus": [{"index": i, "metrics": _statistics(one)} for i, one in enumerate(each)],
        "step": given.get("step"),
        "window": given.get("window"),
        "work": given.get("work"),
        "phases": given.get("phases", []),
        "host": _statistics(given["host"]) if "host" in given else None,
        "waits": given.get("waits", []),
        "health": given.get("health", []),
        "provenance": {"notes": given.get("notes", [])},
    }
    (profile,) = parse_profiles(json.dumps(document).encode(), case.name)
    return profile


def _from_series(case: LabelledCase) -> Profile:
    series, job = case.given["series"], case.given["job"]
    groups = series.get("gpus") or [[1, series["phases"] * series.get("repeat", 1)]]
    each = [phases for count, phases in groups for _ in range(count)]
    width = len(each[0][0]) - 1
    header = ["timestamp", "index", *_COLUMNS[:width]]
    header += ["memory.total [MiB]"] if "memory_mib" in series else []
    header += [_LIMIT] if "limit_w" in series else []
    constant = [series[key] for key in ("memory_mib", "limit_w") if key in series]
    rows: list[list[Any]] = []
    for index, phases in enumerate(each):
        start = 0
        for seconds, *readings in phases:
            ticks = range(start, start + seconds, series["interval_s"])
            rows += [[_clock(t_s), index, *readings, *constant] for t_s in ticks]
            start += seconds
    rows.sort(key=lambda row: (row[0], row[1]))
    profile = _read(header, rows, Hints(gpu=case.given["hardware"]["gpu"], kind=job["kind"]))
    hardware = {**case.given["hardware"], "gpu": profile.hardware.gpu}
    known = {f: getattr(profile.hardware, f) for f in Hardware.__struct_fields__}
    return replace(
        profile,
        job=replace(profile.job, **{k: v for k, v in job.items() if k != "kind"}),
        hardware=Hardware(**{**known, **hardware}),
    )


def _clock(t_s: float) -> str:
    hours, rest = divmod(int(t_s), 3600)
    days, hours = divmod(hours, 24)
    return f"2026/11/{1 + days:02d} {hours:02d}:{rest // 60:02d}:{rest % 60:02d}.000"


def _read(header: Sequence[str], rows: Sequence[Sequence[Any]], hints: Hints) -> Profile:
    """Return what the real reader makes of a CSV, so that windows and notes are tested too."""
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "smi.csv"
        path.write_text(text.getvalue(), encoding="utf-8")
        (profile,) = read_source(str(path), hints)
    return profile


def _from_sample(case: LabelledCase, shared: Path) -> Profile:
    sample = case.given["sample"]
    hints = Hints(gpu=sample.get("gpu"), kind=sample["kind"], precision=sample.get("precision"))
    (profile,) = read_source(str(shared / "samples" / sample["path"]), hints)
    return profile


def _from_lambda(case: LabelledCase, shared: Path) -> Profile:
    run = case.given["lambda"]
    rows = _lambda_rows(shared)[tuple(run[key] for key in _RUN)]
    header = ["timestamp", "utilization.gpu [%]", "memory.used [MiB]", "memory.total [MiB]"]
    table = [
        [_clock(t_s), util, held, run["memory_mib"], temperature]
        for t_s, util, held, temperature in rows
    ]
    precision = _PRECISIONS[run["precision"]]
    hints = Hints(gpu=run["gpu"], kind="training", precision=precision)
    return _read([*header, "temperature.gpu"], table, hints)


@cache
def _lambda_rows(shared: Path) -> Mapping[tuple[str, ...], list[tuple[float, str, str, str]]]:
    """Return the samples of the runs that cases name: seconds, percent, MiB, degrees."""
    named = (case.given["lambda"] for case in cases() if "lambda" in case.given)
    wanted = {tuple(run[key] for key in _RUN) for run in named}
    found: dict[tuple[str, ...], list[tuple[float, str, str, str]]] = defaultdict(list)
    for key, row in _lambda_series(shared / "datasets" / "lambda" / "monitor.csv.gz"):
        if key in wanted:
            found[key].append(row)
    return found


def _lambda_series(path: Path) -> Iterator[tuple[tuple[str, ...], tuple[float, str, str, str]]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] for name in _RUN)
            values = (row["util_gpu_pct"], row["mem_used_mib"], row["temp_c"])
            yield key, (float(row["t_s"]), *values)
