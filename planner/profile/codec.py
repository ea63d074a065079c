"""Reads and writes `profile.json`; a bad file yields every problem at once, with its JSON path."""

import difflib
import json
import math
import re
from collections.abc import Collection
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice, pairwise
from typing import Any

from planner.profile.fields import FieldRule
from planner.profile.kinds import SLOTS
from planner.profile.model import SCHEMA, Profile, Statistics
from pricing.errors import InputError

_NO_STATISTICS = Statistics()
_STATISTICS = tuple(field.name for field in fields(Statistics))
_QUANTILES = ("min", "p05", "p25", "p50", "p75", "p90", "p95", "p99", "max")
_SHOWN = 20
_INFINITE = 2**1024 - 2**970  # the least whole number that is infinite as a float
_LARGEST = 1e15  # beyond any bill, any count and any duration
_DEEPEST = 20
_MOST_UNKNOWN = 100  # keys of one object that are looked at for a misspelling
_MOST_ITEMS = 10_000  # entries of a list; the largest clusters hold fewer GPUs in one job
_ORDER_TOLERANCE = 1e-6


def parse_profiles(data: bytes, origin: str) -> tuple[Profile, ...]:
    """Return the profiles of one JSON document: an object, or an array of them.

    Args:
        data: the bytes of the file.
        origin: the file's name, for messages.

    Raises:
        InputError: it is not JSON or not a profile, or values are wrong; all problems are listed.
    """
    document = _load_json(data, origin)
    items = document if isinstance(document, list) else [document]
    if not items:
        raise InputError(f"{origin}: the list is empty; `gpucost import` writes a profile.")
    problems: list[str] = []
    profiles = tuple(
        _parse_one(item, _Reader(problems, f"{origin}: " + (f"[{i}]." if len(items) > 1 else "")))
        for i, item in enumerate(items)
    )
    if problems:
        hidden = len(problems) - _SHOWN
        raise InputError(problems[:_SHOWN] + [f"{origin}: {hidden} more problems."] * (hidden > 0))
    return profiles


def possible(profile: Profile) -> Profile:
    """Return a profile without the values that no job can have; a note names each.

    What a damaged source says may be beyond what a profile can hold: written, it would be refused.
    """
    problems: list[str] = []
    cleaned = _parse_one(to_json(profile), _Reader(problems, ""))
    if not problems:
        return profile
    left_out = tuple(f"left out: {problem}" for problem in problems[:_SHOWN])
    provenance = cleaned.provenance
    return replace(
        cleaned,
        series=profile.series,
        provenance=replace(provenance, notes=(*provenance.notes, *left_out)),
    )


def _load_json(data: bytes, origin: str) -> object:
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{origin}: byte {error.start} is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        where, before = f"{origin}:{error.lineno}:{error.colno}", text[: error.pos].rstrip()
        why, after = f"{error.msg}.", text[error.pos :].lstrip()
        if before.endswith(",") and after.startswith(("]", "}")):
            why = f"remove the comma at the end of line {before.count(chr(10)) + 1}."
        elif not after or error.msg.startswith("Unterminated"):
            why = f"{error.msg}; the file may be cut short."
        raise InputError(f"{where}: not valid JSON: {why}") from error
    except RecursionError as error:
        raise InputError(f"{origin}: brackets are nested too deeply for a profile.") from error
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{origin}: {error}.") from error
    return document


def _parse_one(item: object, reader: "_Reader") -> Profile:
    if not isinstance(item, dict):
        reader.report("", f"{_brief(item)} is not a profile: a JSON object is wanted.")
        return Profile()
    schema = item.get("schema", SCHEMA)
    if schema != SCHEMA:
        reader.report("schema", f"{_brief(schema)} cannot be read here; {SCHEMA} is wanted.")
        return Profile()
    body = {key: value for key, value in item.items() if key != "schema"}
    reader.foreign = [] if _is_ours(item) else None
    profile: Profile = reader.record(Profile, body, "")
    if reader.foreign:
        notes = (*profile.provenance.notes, *reader.foreign)
        profile = replace(profile, provenance=replace(profile.provenance, notes=notes))
    step = profile.step
    if reader.foreign is None and step and step.data_wait_s is not None and step.mean_s is None:
        reader.report("step.data_wait_s", "needs step.mean_s, the seconds of a whole step, too.")
    if not profile.gpus and not any(key in item for key in ("hardware", "job", "work")):
        reader.report("", "nothing of a profile is in it: no job, hardware or gpus.")
    return profile


def _is_ours(item: dict[str, Any]) -> bool:
    """Return whether gpucost wrote a profile: it names what it read by its digest.

    Another version may have fields that this one does not know; a person has misnamed one.
    """
    provenance = item.get("provenance")
    sources = provenance.get("sources") if isinstance(provenance, dict) else None
    listed = sources if isinstance(sources, list) else []
    return any(isinstance(source, dict) and source.get("sha256") for source in listed)


class _Reader:
    """Walks JSON beside the declared fields and collects what is wrong."""

    def __init__(self, problems: list[str], prefix: str) -> None:
        self._problems = problems
        self._prefix = prefix
        self.foreign: list[str] | None = None
        """Fields of another version, where the file was written by gpucost; None: by a person."""

    def report_unknown(self, path: str, name: str, names: Collection[str], kind: str) -> None:
        """Tell that a name is not known, with the nearest one that is.

        Where another version of gpucost wrote it, it is noted and left alone.
        """
        near = difflib.get_close_matches(name, names, 1, 0.0)
        text = f"is not a known {kind}; did you mean {near[0]}?" if near else "is not known."
        if self.foreign is None:
            self.report(path, text)
        else:
            self.foreign.append(f"{path} {text} It was left alone.")

    def report(self, path: str, sentence: str) -> None:
        where = f"{self._prefix}{path}".rstrip(".")
        joint = "" if where.endswith(": ") else " "
        self._problems.append(f"{where}{joint}{sentence}")

    def record(self, cls: type, raw: object, path: str) -> Any:  # noqa: ANN401 - any record
        if not isinstance(raw, dict):
            self.report(path, f"is {_brief(raw)}: an object is wanted.")
            return cls()
        declared = rules(cls)
        for key in islice((key for key in raw if key not in declared), _MOST_UNKNOWN):
            self.report_unknown(_join(path, key), key, declared, "field")
        values = {
            name: self._value(rule, raw[name], _join(path, name))
            for name, rule in declared.items()
            if raw.get(name) is not None
        }
        return cls(**{name: value for name, value in values.items() if value is not None})

    def _value(self, rule: FieldRule, raw: object, path: str) -> Any:  # noqa: ANN401 - any value
        by_rule = {
            "number": self._number,
            "integer": self._integer,
            "text": self._text,
            "record": self._record,
            "records": self._records,
            "texts": self._texts,
            "numbers": self._numbers,
        }
        if rule.kind in by_rule:
            return by_rule[rule.kind](rule, raw, path)
        converters = {
            "flag": self._flag,
            "time": self._time,
            "statistics": self._metrics,
            "any": self._any,
        }
        return converters[rule.kind](raw, path)

    def _any(self, raw: object, path: str) -> Any:  # noqa: ANN401 - any value
        if _depth(raw) > _DEEPEST:
            self.report(path, f"is nested more than {_DEEPEST} deep.")
            return None
        if not _finite(raw):
            self.report(path, "holds a number that is not finite; write null.")
            return None
        if not _is_writable(json.dumps(raw, ensure_ascii=False)):
            self.report(path, "holds half of a surrogate pair (a broken \\u escape).")
            return None
        return tuple(raw) if isinstance(raw, list) else raw

    def _texts(self, rule: FieldRule, raw: object, path: str) -> tuple[str, ...] | None:
        if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
            self.report(path, f"is {_brief(raw)}: a list of texts is wanted ({rule.doc}).")
            return None
        return tuple(item for item in raw if _is_writable(item))

    def _numbers(self, rule: FieldRule, raw: object, path: str) -> tuple[float, ...] | None:
        if not isinstance(raw, list) or len(raw) not in rule.counts:
            counts = " or ".join(map(str, rule.counts))
            self.report(path, f"is {_brief(raw)}: a list of {counts} numbers is wanted.")
            return None
        read = [self._number(rule, item, f"{path}[{i}]") for i, item in enumerate(raw)]
        return tuple(number for number in read if number is not None)

    def _number(self, rule: FieldRule, raw: object, path: str) -> float | None:
        if raw.__class__ is bool or not isinstance(raw, (int, float)):  # a tuple: twice as fast
            self.report(path, f"is {_brief(raw)}: a number is wanted ({rule.doc}).")
        elif not -_LARGEST <= raw <= _LARGEST:
            finite = -_INFINITE < raw < _INFINITE  # nor NaN
            why = f"no job measures that much ({rule.doc})"
            why = why if finite else "leave out what was not measured, or write null"
            self.report(path, f"is {raw!r:.20}: {why}.")
        elif sentence := _out_of_range(rule, raw):
            self.report(path, f"is {raw!r:.40}: {sentence}")
        else:
            return float(raw)
        return None

    def _integer(self, rule: FieldRule, raw: object, path: str) -> int | None:
        value = self._number(rule, raw, path)
        if value is not None and value != int(value):
            self.report(path, f"is {raw}: a whole number is wanted ({rule.doc}).")
            return None
        return None if value is None else int(value)

    def _flag(self, raw: object, path: str) -> bool | None:
        if isinstance(raw, bool):
            return raw
        self.report(path, f"is {_brief(raw)}: true or false is wanted.")
        return None

    def _text(self, rule: FieldRule, raw: object, path: str) -> str | None:
        if not isinstance(raw, str):
            self.report(path, f"is {_brief(raw)}: text is wanted ({rule.doc}).")
            return None
        if not raw.strip():
            return None
        if not _is_writable(raw):
            self.report(path, "holds half of a surrogate pair (a broken \\u escape).")
            return None
        if rule.choices and raw not in rule.choices:
            self.report(path, f"is {_brief(raw)}: one of {', '.join(rule.choices)} is wanted.")
            return None
        if rule.pattern and not re.fullmatch(rule.pattern, raw):
            self.report(path, f"is {_brief(raw)}: {rule.doc} is wanted.")
            return None
        return raw

    def _time(self, raw: object, path: str) -> datetime | None:
        try:
            parsed = datetime.fromisoformat(raw if isinstance(raw, str) else "")
            instant = parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.report(path, f'is {_brief(raw)}: write it as "2026-11-01T10:00:00Z".')
            return None
        return instant

    def _record(self, rule: FieldRule, raw: object, path: str) -> Any:  # noqa: ANN401 - any record
        if rule.record is Statistics:
            return self._statistics(rule, raw, path)
        return self.record(record_class(rule), raw, path)

    def _records(self, rule: FieldRule, raw: object, path: str) -> tuple[Any, ...] | None:
        if not isinstance(raw, list):
            self.report(path, f"is {_brief(raw)}: a list is wanted ({rule.doc}).")
            return None
        if len(raw) > _MOST_ITEMS:
            self.report(path, f"has {len(raw):,} entries; at most {_MOST_ITEMS:,} are read.")
            return None
        cls = record_class(rule)
        return tuple(self.record(cls, item, f"{path}[{i}]") for i, item in enumerate(raw))

    def _metrics(self, raw: object, path: str) -> dict[str, Statistics] | None:
        if not isinstance(raw, dict):
            self.report(path, f"is {_brief(raw)}: an object from slot to statistics is wanted.")
            return None
        metrics: dict[str, Statistics] = {}
        for name in sorted(raw):
            if name not in SLOTS:
                self.report_unknown(_join(path, name), name, SLOTS, "metric")
            elif raw[name] is not None:
                metrics[name] = self._statistics(_of_slot(name), raw[name], _join(path, name))
        return {name: value for name, value in metrics.items() if value != _NO_STATISTICS}

    def _statistics(self, rule: FieldRule, raw: object, path: str) -> Statistics:
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            raw = {"mean": raw}  # a hand-written single figure
        if not isinstance(raw, dict):
            self.report(path, f'is {_brief(raw)}: write {{"mean": ..., "p95": ...}}.')
            return Statistics()
        for key in raw:
            if key not in _STATISTICS:
                self.report(_join(path, key), f"is not one of {', '.join(_STATISTICS)}.")
        values = {
            name: self._number(rule, number, f"{path}.{name}")
            for name in _STATISTICS
            if (number := raw.get(name)) is not None
        }
        self._check_order(values, path)
        return Statistics(**values)

    def _check_order(self, values: dict[str, float | None], path: str) -> None:
        quantiles = [(name, v) for name in _QUANTILES if (v := values.get(name)) is not None]
        pairs = list(pairwise(quantiles))
        mean = values.get("mean")
        if mean is not None and quantiles:
            pairs += [(edge, ("mean", mean)) for edge in quantiles[:1] if edge[0] == "min"]
            pairs += [(("mean", mean), edge) for edge in quantiles[-1:] if edge[0] == "max"]
        for (low_name, low), (high_name, high) in pairs:
            if low > high and low > high + _ORDER_TOLERANCE * max(abs(low), abs(high), 1.0):
                self.report(path, f"has {low_name} {low:g} above {high_name} {high:g}.")


@cache
def _of_slot(name: str) -> FieldRule:
    slot = SLOTS[name]
    return FieldRule(kind="record", doc=slot.unit, low=slot.low, high=slot.high)


def _out_of_range(rule: FieldRule, value: float) -> str | None:
    if rule.above is not None and value <= rule.above:
        return f"more than {rule.above:g} is wanted ({rule.doc})."
    if rule.low is not None and value < rule.low:
        return f"less than {rule.low:g} is not possible ({rule.doc})."
    if rule.high is not None and value > rule.high:
        if (rule.low, rule.high) == (0.0, 1.0) and value <= 100.0:  # noqa: PLR2004 - percent
            return f"a fraction runs from 0 to 1; for {value:g} % write {value / 100:g}."
        return f"more than {rule.high:g} is not possible ({rule.doc})."
    return None


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _depth(raw: object) -> int:
    """Return how deep lists and objects are nested, without recursion."""
    depth, level = 0, list[object]([raw])
    while level := [
        i
        for x in level
        if isinstance(x, dict | list)
        for i in (x.values() if isinstance(x, dict) else x)
    ]:
        depth += 1
        if depth > _DEEPEST:
            break
    return depth


def _finite(raw: object) -> bool:
    if isinstance(raw, float):
        return math.isfinite(raw)
    items = raw.values() if isinstance(raw, dict) else raw if isinstance(raw, list) else ()
    return all(_finite(item) for item in items)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _brief(raw: object) -> str:
    shown = json.dumps(raw, default=str) if isinstance(raw, str | int | float) else None
    named = {dict: "an object", list: "a list", type(None): "null"}
    return named.get(type(raw), "a value") if shown is None else shown[:40]


@cache
def rules(cls: type) -> dict[str, FieldRule]:
    """Return the declared rule of each field of a record class, by name."""
    return {f.name: f.metadata["rule"] for f in fields(cls) if "rule" in f.metadata}


def record_class(rule: FieldRule) -> type[Any]:
    """Return the value class that a record rule declares."""
    if rule.record is None:
        raise TypeError(f"the field {rule.doc!r} declares no record class")
    return rule.record


def to_json(profile: Profile) -> dict[str, object]:
    """Return the profile as JSON values, in the order of the declaration."""
    return {"schema": SCHEMA, **_encode(profile)}


def dump(profiles: tuple[Profile, ...]) -> str:
    """Return the text of a file: an object for one profile, an array for several."""
    items = [to_json(profile) for profile in profiles]
    document = items[0] if len(items) == 1 else items
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _encode(value: object) -> Any:  # noqa: ANN401 - JSON values
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, Statistics):
        return {
            f.name: _short(v) for f in fields(value) if (v := getattr(value, f.name)) is not None
        }
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: _encode(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    return _short(value) if isinstance(value, float) else value


def _short(value: float) -> float | int:
    """Return ten significant digits, whole numbers without a point."""
    rounded = float(f"{value:.10g}")
    if not math.isfinite(rounded):
        return rounded
    return int(rounded) if rounded == int(rounded) else rounded


_Definitions = dict[str, dict[str, object]]


def schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of `profile.json`, from the declared fields.

    What several fields share stands once, under `$defs`: each record by the name of its class, the
    statistics by their limits.
    """
    definitions: _Definitions = {}
    properties = _properties(Profile, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gpucost:profile:v1",
        "title": "gpucost profile",
        "type": "object",
        "properties": {"schema": {"const": SCHEMA}, **properties},
        "additionalProperties": False,
        "anyOf": [
            *({"required": [name]} for name in ("hardware", "job", "work")),
            {"required": ["gpus"], "properties": {"gpus": {"type": "array", "minItems": 1}}},
        ],
        "$defs": dict(sorted(definitions.items())),
    }


def _object_schema(cls: type, definitions: _Definitions) -> dict[str, object]:
    properties = _properties(cls, definitions)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _properties(cls: type, definitions: _Definitions) -> dict[str, dict[str, object]]:
    defaults = {f.name: f for f in fields(cls)}
    return {
        name: _rule_schema(rule, defaults[name], definitions) for name, rule in rules(cls).items()
    }


def _record(rule: FieldRule, definitions: _Definitions) -> dict[str, object]:
    cls = record_class(rule)
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = {}  # a record may hold its own kind
        definitions[cls.__name__] = _object_schema(cls, definitions)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _rule_schema(
    rule: FieldRule, declared: "Field[Any]", definitions: _Definitions
) -> dict[str, object]:
    kinds: dict[str, dict[str, object]] = {
        "text": {"type": ["string", "null"]},
        "time": {"type": ["string", "null"], "format": "date-time"},
        "integer": {"type": ["integer", "null"]},
        "flag": {"type": ["boolean", "null"]},
        "number": {"type": ["number", "null"]},
        "texts": {"type": ["array", "null"], "items": {"type": "string"}},
        "numbers": {"type": ["array", "null"], "items": {"type": "number", **_limits(rule)}},
        "any": {},
    }
    if rule.kind in kinds:
        body = kinds[rule.kind] | ({} if rule.kind == "numbers" else _limits(rule))
        if rule.choices:
            body["enum"] = [*rule.choices, None]
        if rule.pattern:
            body["pattern"] = f"^(?:{rule.pattern})$"
    elif rule.kind == "statistics":
        body = {
            "type": ["object", "null"],
            "properties": _slot_schemas(definitions),
            "additionalProperties": False,
        }
    elif rule.record is Statistics:
        body = _statistics(rule.low, rule.high, definitions)
    elif rule.kind == "record":
        body = {"anyOf": [_record(rule, definitions), {"type": "null"}]}
    else:
        body = {"type": ["array", "null"], "items": _record(rule, definitions)}
    if declared.default not in (None, MISSING) and isinstance(declared.default, str | int):
        body["default"] = declared.default
    return {"description": rule.doc, **body}


def _limits(rule: FieldRule) -> dict[str, float]:
    named = (("minimum", rule.low), ("exclusiveMinimum", rule.above), ("maximum", rule.high))
    return {name: limit for name, limit in named if limit is not None}


def _statistics(
    low: float | None, high: float | None, definitions: _Definitions
) -> dict[str, object]:
    """Return a reference to statistics within these limits: an object, or the mean alone."""
    limits = (("from", low), ("to", high))
    limits_text = [f"{word}{limit:g}" for word, limit in limits if limit is not None]
    name = "-".join(("Statistics", *limits_text))
    if name not in definitions:
        rule = FieldRule(kind="number", doc="", low=low, high=high)
        numbers: dict[str, object] = {"type": ["number", "null"], **_limits(rule)}
        body = {
            "type": "object",
            "properties": {f.name: numbers for f in fields(Statistics)},
            "additionalProperties": False,
        }
        definitions[name] = {"anyOf": [body, numbers]}
    return {"$ref": f"#/$defs/{name}"}


def _slot_schemas(definitions: _Definitions) -> dict[str, object]:
    return {
        slot.name: {
            "description": f"{slot.meaning} [{slot.unit}]",
            **_statistics(slot.low, slot.high, definitions),
        }
        for slot in SLOTS.values()
    }
