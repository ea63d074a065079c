"""Writes values as JSON values: money as text, days and times as ISO 8601, fields in order."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import msgspec

from planner.plan_document.document import PlanDocument
from planner.plan_document.jobs import JobDocument

Way = Callable[[Any], Any]

IF_KNOWN: Mapping[str, bool] = MappingProxyType({"if_known": True})
"""Metadata of a field that is left out of the file where it is None."""


def encode(value: Any) -> Any:  # noqa: ANN401 - walks values of every kind
    """Return a value of plan.json, or of another document, as JSON values."""
    return _VALUES.way(value.__class__)(value)


def to_text(value: object) -> str:
    """Return the text of a file that holds a value of plan.json.

    Raises:
        ValueError: a number is not finite.
    """
    try:
        packed = msgspec.json.encode(_TEXT.way(value.__class__)(value))
    except UnicodeEncodeError:  # half of a character in a name: no file can hold it
        return json.dumps(encode(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return msgspec.json.format(packed, indent=1).decode() + "\n"


def job_text(job: JobDocument) -> str:
    """Return the lines of a job as they stand in the text of a plan, no comma after them.

    Raises:
        ValueError: a number is not finite.
    """
    return to_text({"jobs": [job]}).removeprefix(_JOBS_BEGIN).removesuffix(_JOBS_END)


def text_around(plan: PlanDocument) -> tuple[str, str]:
    """Return the text of a plan before its jobs, and after them.

    Between the two stand the texts of the jobs, `,` and a line break between them.
    """
    before, after = to_text(replace(plan, jobs=())).split('\n "jobs": []', 1)
    return f'{before}\n "jobs": [\n', f"\n ]{after}"


def if_shared(text: str, job: JobDocument) -> str:
    """Return the text of a job with the GPU that it is to share, where it was not known before.

    Args:
        text: of the job alone (`job_text`).
        job: where it is to share, and how sure that is; what else it holds is not looked at.
    """
    if job.placement is None:
        return text
    sure = to_text({"jobs": [{"confidence": job.confidence}]})
    told = sure.removeprefix(f"{_JOBS_BEGIN}  {{").removesuffix(f"\n  }}{_JOBS_END}")
    placed = text.replace(_ALONE, f"{_ALONE[:-4]}{job.placement}", 1)
    return _SURE.sub(lambda _: told, placed, count=1)


def plan_id(plan: PlanDocument) -> str:
    """Return the SHA-256 of a plan's values, whatever the white space of its file."""
    return plan.id or digest(encode(plan))


def digest(document: object) -> str:
    """Return the SHA-256 of JSON values."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def canonical(value: object) -> str:
    """Return the one text of JSON values: keys sorted, no white space, ASCII alone."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def name_in_file(one: "Field[Any]") -> str:
    """Return what a field is called in the file."""
    return str(one.metadata.get("name", one.name))


class _Walk:
    """How values of each class become JSON values; looked up once for each class.

    Args:
        number: what becomes of a float; None leaves it.
    """

    def __init__(self, number: Way | None) -> None:
        self._known: dict[Any, Way] = {}
        self._number = number

    def way(self, kind: Any) -> Way:  # noqa: ANN401 - a class
        """Return what makes JSON values of the values of a class."""
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = self._find(kind)
        return known

    def _find(self, kind: Any) -> Way:  # noqa: ANN401 - a class
        if is_dataclass(kind):
            return self._record(kind)
        ways = (
            (Decimal, "{:f}".format),
            (datetime, lambda value: f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"),
            (date, date.isoformat),
            (Mapping, self._mapping),
            ((tuple, list), self._sequence),
            (float, self._number or _as_it_is),
        )
        return next((way for kinds, way in ways if issubclass(kind, kinds)), _as_it_is)

    def _mapping(self, value: Mapping[str, Any]) -> dict[str, Any]:
        way = self.way
        return {key: way(inner.__class__)(inner) for key, inner in value.items()}

    def _sequence(self, value: Sequence[Any]) -> list[Any]:
        way = self.way
        return [way(inner.__class__)(inner) for inner in value]

    def _record(self, kind: Any) -> Way:  # noqa: ANN401 - a dataclass
        written = [one for one in fields(kind) if one.metadata.get("written", True)]
        names = [name_in_file(one) for one in written]
        if_known = {name_in_file(one) for one in written if one.metadata.get("if_known")}
        values = attrgetter(*(one.name for one in written), "__class__")  # always a tuple
        way = self.way

        def whole(value: Any) -> dict[str, Any]:  # noqa: ANN401 - of the dataclass
            return {
                name: one if one.__class__ in _PLAIN else way(one.__class__)(one)
                for name, one in zip(names, values(value), strict=False)
            }

        def known(value: Any) -> dict[str, Any]:  # noqa: ANN401 - of the dataclass
            made = whole(value).items()
            return {name: one for name, one in made if one is not None or name not in if_known}

        return known if if_known else whole


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return value


def _as_python_writes(value: float) -> float | msgspec.Raw:
    """Return a number such that it is written as Python does: 1e-05, where others write 0.00001."""
    if _SMALL <= value < _LARGE or value == 0.0 or _SMALL <= -value < _LARGE:
        return value
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number; a file cannot hold it")
    return msgspec.Raw(repr(value).encode())


_JOBS_BEGIN, _JOBS_END = '{\n "jobs": [\n', "\n ]\n}\n"
_ALONE = '\n   "placement": null'  # a line break stands in no JSON string, so this is the field
_SURE = re.compile(r'\n   "confidence": \{.*?\n   \}', re.DOTALL)
_PLAIN = frozenset((str, int, bool, type(None)))
_SMALL, _LARGE = 1e-4, 1e16  # between them all writers agree
_VALUES, _TEXT = _Walk(None), _Walk(_as_python_writes)
