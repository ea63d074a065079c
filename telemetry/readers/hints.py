"""What the command line says about a source that the source does not say itself."""

from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from re import fullmatch
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.profile.kinds import KINDS, PRECISIONS
from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers.units import mapping_problem

# What `--label` may name, and the field of `model.Job`.
LABELS = {"team": "team", "owner": "owner", "cost-center": "cost_center"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Gaps filled by the user; where a hint contradicts the source, the source wins with a note.

    Attributes:
        format: the input's format, as `sniff.FORMATS` names it; None recognises it by content.
        gpu: GPU model.
        kind: what sort of job, as `kinds.KINDS` names it.
        precision: numeric format, as `kinds.PRECISIONS` names it.
        batch: items a GPU takes at a time.
        work: unit and number of units done over the whole source, as ("image", 2900000.0).
        tz: zone of local times, an IANA name or an offset such as +08:00; None takes them as UTC.
        map: pairs of a source's column and what it fills (`units.MAPPABLE`); a slot may end
            in `:UNIT`. Columns of a file without a header are numbered from 1.
        name: the job's name.
        job: which of several jobs in the source to read.
        interval_s: seconds between samples of a source without timestamps.
        job_label: the label or column that names jobs.
        labels: whose the jobs are, as pairs of a name of LABELS and its text.
        machine: what the jobs run on: PROVIDER/TYPE or PROVIDER/TYPE/REGION.
        cores: CPU cores that a job may use.
        cpu_fraction: share of these cores in use, 0 to 1.

    Raises:
        InputError: an unknown zone, slot, kind or precision, or a number that is not above 0.
    """

    format: str | None = None
    gpu: str | None = None
    kind: str | None = None
    precision: str | None = None
    batch: int | None = None
    work: tuple[str, float] | None = None
    tz: str | None = None
    map: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    job: str | None = None
    interval_s: float | None = None
    job_label: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    machine: str | None = None
    cores: float | None = None
    cpu_fraction: float | None = None

    def __post_init__(self) -> None:
        problems = [
            problem
            for column, slot in self.map
            if (problem := mapping_problem(column, slot)) is not None
        ]
        problems += [
            f"{option} {word}: not known. Use one of: {', '.join(choices)}."
            for option, word, choices in (
                ("--kind", self.kind, KINDS),
                ("--precision", self.precision, PRECISIONS),
            )
            if word is not None and word not in choices
        ]
        problems += [
            f"--label {name}={value}: not known. Use one of: {', '.join(LABELS)}, each with a text."
            for name, value in self.labels
            if name not in LABELS or not value.strip()
        ]
        if self.tz is not None and _zone(self.tz) is None:
            problems.append(Message("read.bad-zone", zone=self.tz))
        numbers = {
            "--batch": self.batch,
            "--interval": self.interval_s,
            "--cores": self.cores,
            "--cpu": self.cpu_fraction,
        }
        if self.work is not None:
            numbers[f"--work {self.work[0]}"] = self.work[1]
        problems += [
            f"{option} must be above 0, not {value:g}; leave it out if it is not known."
            for option, value in numbers.items()
            if value is not None and not 0 < value < float("inf")
        ]
        if problems:
            raise InputError(problems)

    @property
    def job_labels(self) -> dict[str, str]:
        """The labels by the fields of `model.Job`."""
        return {LABELS[name]: value.strip() for name, value in self.labels}

    @property
    def zone(self) -> tzinfo | None:
        """The zone of local times; None when none was given."""
        return _zone(self.tz) if self.tz is not None else None


def _zone(name: str) -> tzinfo | None:
    if offset := fullmatch(r"([+-])(\d{1,2}):?(\d{2})?", name):
        sign = -1 if offset[1] == "-" else 1
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(sign * timedelta(minutes=minutes)) if minutes <= 14 * 60 else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
