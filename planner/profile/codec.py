"""Reads and writes `profile.json`; a bad file yields every problem at once, with its JSON path."""

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from planner.json_schema import (
    Schema,
    as_json,
    is_number,
    json_schema,
    leaves,
    meanings,
    path,
    validator,
)
from planner.profile.fields import LARGEST, Record
from planner.profile.kinds import SLOTS, JobKind, Parallelism
from planner.profile.model import SCHEMA, Host, Profile, Statistics
from pricing.errors import InputError
from pricing.message import Message, restore, save

if TYPE_CHECKING:
    from jsonschema import ValidationError

_STATISTICS = Statistics.__struct_fields__
_QUANTILES = ("min", "p05", "p25", "p50", "p75", "p90", "p95", "p99", "max")
_FIGURES = frozenset((*SLOTS, *Host.__struct_fields__))  # what statistics are of
_SHOWN = 20
_DEEPEST = 25
_MOST_UNKNOWN = 100  # keys of one object that are looked at for a misspelling
_ORDER_TOLERANCE = 1e-6

Steps = tuple[str | int, ...]
Problems = dict[Steps, str]
"""What is wrong with a value, by the steps to it."""


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
    profiles: list[Profile] = []
    for number, item in enumerate(items):
        wrong: Problems = {}
        profiles.append(_parse_one(item, wrong))
        first: Steps = (number,) if len(items) > 1 else ()
        sentences = (f"{path((*first, *steps))} {text}" for steps, text in wrong.items())
        problems += [f"{origin}: {sentence.lstrip()}" for sentence in sentences]
    if problems:
        hidden = len(problems) - _SHOWN
        raise InputError(problems[:_SHOWN] + [f"{origin}: {hidden} more problems."] * (hidden > 0))
    return tuple(profiles)


def possible(profile: Profile) -> Profile:
    """Return a profile without the values that no job can have; a note names each.

    What a damaged source says may be beyond what a profile can hold: written, it would be refused.
    """
    item = _tidied(_plain(profile))
    if _fitting(item) is not None:
        return profile
    wrong = _wrong_values(item)
    cleaned = _fitting(_without(item, wrong)) or Profile()
    texts = [f"left out: {path(steps)} {text}" for steps, text in wrong.items()]
    notes = (*cleaned.provenance.notes, *texts[:_SHOWN])
    provenance = msgspec.structs.replace(cleaned.provenance, notes=notes)
    return msgspec.structs.replace(cleaned, series=profile.series, provenance=provenance)


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


def _parse_one(raw: object, wrong: Problems) -> Profile:
    """Return the profile of a JSON value; what is wrong with it is added to `wrong`."""
    if not isinstance(raw, dict):
        wrong[()] = f"{_brief(raw)} is not a profile: a JSON object is wanted."
        return Profile()
    if raw.get("schema", SCHEMA) != SCHEMA:
        wrong["schema",] = f"{_brief(raw['schema'])} cannot be read here; {SCHEMA} is wanted."
        return Profile()
    try:
        item = _tidied({key: value for key, value in raw.items() if key != "schema"})
    except RecursionError:
        wrong[()] = "brackets are nested too deeply for a profile."
        return Profile()
    is_ours = _is_ours(raw)
    notes: tuple[str, ...] = ()
    profile = _fitting(item)
    if profile is None and is_ours:
        foreign = _unknown_names(item)
        notes = tuple(f"{path(at)} {text} It was left alone." for at, text in foreign.items())
        profile = _fitting(_without(item, foreign))
    if profile is None:
        wrong |= _wrong_values(item)
    step = item.get("step")
    if not is_ours and isinstance(step, dict) and "data_wait_s" in step and "mean_s" not in step:
        wrong["step", "data_wait_s"] = "needs step.mean_s, the seconds of a whole step, too."
    if not raw.get("gpus") and not any(key in raw for key in ("hardware", "job", "work")):
        wrong[()] = "nothing of a profile is in it: no job, hardware or gpus."
    if profile is None:
        return Profile()
    provenance = profile.provenance
    again = (restore(note, provenance.messages or {}) for note in provenance.notes)
    provenance = msgspec.structs.replace(provenance, notes=(*again, *notes), messages=None)
    return msgspec.structs.replace(profile, provenance=provenance)


def _is_ours(item: dict[str, Any]) -> bool:
    """Return whether gpucost wrote a profile: it names what it read by its digest.

    Another version may have fields that this one does not know; a person has misnamed one.
    """
    provenance = item.get("provenance")
    sources = provenance.get("sources") if isinstance(provenance, dict) else None
    listed = sources if isinstance(sources, list) else []
    return any(isinstance(source, dict) and source.get("sha256") for source in listed)


@cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all fields and slots, and of the fields that hold text."""
    hints = [hint for cls in Record.__subclasses__() for hint in get_type_hints(cls).items()]
    texts = (
        name
        for name, kind in hints
        if get_origin(kind) is not tuple
        and any(
            isinstance(part, type) and issubclass(part, str) for part in (kind, *get_args(kind))
        )
    )
    return frozenset((*(name for name, _ in hints), *SLOTS)), frozenset(texts)


_AS_IT_IS = ("provenance", "messages")  # whose parameters have names of their own


def _tidied(raw: Any, *keys: str) -> Any:  # noqa: ANN401 - JSON values
    """Return JSON values as a profile has them, wherever they are what a person may write.

    Without nulls, blank texts and statistics of nothing; whole numbers as such, a single figure as
    statistics, the start as an instant.

    Raises:
        RecursionError: they are nested too deeply for a profile.
    """
    if isinstance(raw, float):
        return int(raw) if raw.is_integer() and abs(raw) <= LARGEST else raw
    if not isinstance(raw, dict | list):
        return raw
    if len(keys) > _DEEPEST:
        raise RecursionError
    if isinstance(raw, list):
        return [_tidied(part, *keys, "[]") for part in raw]
    names, texts = _names()
    tidied = {}
    for key in sorted(raw):
        inner = (*keys, str(key))
        value = raw[key] if inner == _AS_IT_IS else _tidied(raw[key], *inner)
        if key in _FIGURES and isinstance(value, int | float) and not isinstance(value, bool):
            value = {"mean": value}
        is_blank = key in texts and isinstance(value, str) and not value.strip()
        if not (is_blank or (value is None and key in names) or (value == {} and key in _FIGURES)):
            tidied[key] = _instant(value) if key == "start" else value
    return tidied


def _instant(raw: object) -> object:
    """Return a text as the instant that it names, in UTC where it has no zone; else as it is."""
    try:
        parsed = datetime.fromisoformat(raw if isinstance(raw, str) else "")
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return raw


def _fitting(item: Any) -> Profile | None:  # noqa: ANN401 - JSON values
    """Return the profile that tidied values are; None where something is wrong with them."""
    try:
        json.dumps(item, ensure_ascii=False, allow_nan=False, default=str).encode()
        profile = msgspec.convert(item, Profile, builtin_types=(datetime,))
    except (ValueError, msgspec.ValidationError):
        return None
    figures = [figure for gpu in profile.gpus for figure in gpu.metrics.items()]
    for part in filter(None, (profile.host, profile.machine)):
        named = ((name, getattr(part, name, None)) for name in Host.__struct_fields__)
        figures += [(name, statistics) for name, statistics in named if statistics is not None]
    return profile if all(_is_sound(name, statistics) for name, statistics in figures) else None


def _is_sound(name: str, statistics: Statistics) -> bool:
    if name not in _FIGURES:
        return False
    low, high = _limits(name)
    values = msgspec.structs.asdict(statistics)
    in_range = all(low <= value <= high for value in values.values() if value is not None)
    return in_range and not any(_disorder(values))


def _limits(name: str) -> tuple[float, float]:
    """Return the least and the greatest value that a slot, or a figure of the host, can have."""
    slot = SLOTS.get(name)
    low, high = (
        (0, 1 if name.startswith("cpu_") else None) if slot is None else (slot.low, slot.high)
    )
    return -LARGEST if low is None else low, LARGEST if high is None else high


def _disorder(values: Mapping[str, float | None]) -> Iterator[str]:
    """Yield which of the quantiles are not in order."""
    quantiles = [(name, v) for name in _QUANTILES if (v := values.get(name)) is not None]
    pairs, mean = list(pairwise(quantiles)), values.get("mean")
    if mean is not None and quantiles:
        pairs += [(edge, ("mean", mean)) for edge in quantiles[:1] if edge[0] == "min"]
        pairs += [(("mean", mean), edge) for edge in quantiles[-1:] if edge[0] == "max"]
    for (low_name, low), (high_name, high) in pairs:
        if low > high and low > high + _ORDER_TOLERANCE * max(abs(low), abs(high), 1.0):
            yield f"has {low_name} {low:g} above {high_name} {high:g}."


def _without(item: Any, places: Iterable[Steps]) -> Any:  # noqa: ANN401 - JSON values
    """Return JSON values without those at some places, or without the list that they are in."""
    for steps in sorted(places, key=len, reverse=True):
        names = steps
        while names and isinstance(names[-1], int):
            names = names[:-1]
        parent = item
        for step in names[:-1]:
            parent = parent[step]
        if names:
            parent.pop(names[-1], None)
    return item


def _wrong_values(item: object) -> Problems:
    """Return everything that is wrong with tidied values."""
    wrong = _unknown_names(item)
    for steps, value in _every_value(item):
        if type(value) in (int, float) and not is_number(value):
            wrong[steps] = f"is {value!r:.20}: leave out what was not measured, or write null."
        elif steps[-1:] == ("start",) and not isinstance(value, datetime):
            wrong[steps] = f'is {_brief(value)}: write it as "2026-11-01T10:00:00Z".'
        elif isinstance(value, str) and value.encode(errors="ignore").decode() != value:
            wrong[steps] = "holds half of a surrogate pair (a broken \\u escape)."
    for error in _errors(item):
        if error.validator != "additionalProperties":
            wrong.setdefault(tuple(error.absolute_path), _sentence(error))
    for steps, value in _every_value(item):
        if steps and steps[-1] in _FIGURES and isinstance(value, dict):
            numbers = {k: v for k, v in value.items() if (*steps, k) not in wrong}
            for text in _disorder(numbers):
                wrong.setdefault(steps, text)
    return wrong or {(): "is not a profile that can be read."}


def _every_value(part: object, steps: Steps = ()) -> Iterator[tuple[Steps, object]]:
    yield steps, part
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(part, dict | list):
        inner = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in inner:
        yield from _every_value(value, (*steps, key))


def _unknown_names(item: object) -> Problems:
    """Return the names that are not known, each with the nearest one that is."""
    misnamed: Problems = {}
    for error in _errors(item):
        if error.validator == "additionalProperties":
            names: Any = error.schema["properties"]  # type: ignore[index]
            instance: Any = error.instance
            kind = "metric" if names.keys() == SLOTS.keys() else "field"
            for key in islice((key for key in instance if key not in names), _MOST_UNKNOWN):
                near = difflib.get_close_matches(key, names, 1, 0.0)
                text = (
                    f"is not a known {kind}; did you mean {near[0]}?" if near else "is not known."
                )
                if tuple(names) == _STATISTICS:
                    text = f"is not one of {', '.join(_STATISTICS)}."
                misnamed[*error.absolute_path, key] = text
    return misnamed


def _errors(item: object) -> "Iterator[ValidationError]":
    for error in _validator().iter_errors(item):
        yield from leaves(error)


@cache
def _validator() -> Any:  # noqa: ANN401 - a validator of jsonschema
    return validator({key: part for key, part in schema().items() if key != "anyOf"})


_WANTED = {
    "number": "a number",
    "integer": "a whole number",
    "string": "text",
    "object": "an object",
    "boolean": "true or false",
}


def _sentence(error: "ValidationError") -> str:
    """Return what is wrong with a value and what is wanted, without its place."""
    value, rule, expected = error.instance, error.validator, error.validator_value
    limits: Any = error.schema
    meaning = _meaning(error.absolute_path)
    means = f" ({meaning})" if meaning else ""
    if rule == "enum":
        choices = ", ".join(choice for choice in limits["enum"] if choice is not None)
        return f"is {_brief(value)}: one of {choices} is wanted."
    if rule == "pattern":
        return f"is {_brief(value)}: {meaning} is wanted."
    if rule == "anyOf" or ("items" in limits and rule == "type"):
        return f"is {_brief(value)}: {_list(limits)} is wanted{means}."
    if rule == "maxItems":
        return f"has {len(value):,} entries; at most {expected:,} are read."  # type: ignore[arg-type]
    if rule in {"minimum", "exclusiveMinimum", "maximum"}:
        return f"is {value!r:.40}: {_out_of_range(limits, value, means)}"
    if tuple(limits.get("properties", ())) == _STATISTICS:
        return f'is {_brief(value)}: write {{"mean": ..., "p95": ...}}.'
    if limits.get("properties", {}).keys() == SLOTS.keys():
        return f"is {_brief(value)}: an object from slot to statistics is wanted."
    kind: Any = expected if isinstance(expected, str) else expected[0]  # type: ignore[index]
    return f"is {_brief(value)}: {_WANTED[kind]} is wanted{means}."


def _list(limits: Mapping[str, Any]) -> str:
    """Return what sort of list is wanted."""
    counts = " or ".join(
        str(part["minItems"]) for part in limits.get("anyOf", ()) if part["minItems"]
    )
    kinds = {"string": "texts", "number": f"{counts} numbers".strip()}
    items = kinds.get(limits["items"].get("type"))
    return f"a list of {items}" if items else "a list"


def _out_of_range(limits: Mapping[str, Any], value: Any, means: str) -> str:  # noqa: ANN401 - a number
    low, above, high = (limits.get(k) for k in ("minimum", "exclusiveMinimum", "maximum"))
    if abs(value) > LARGEST:
        return f"no job measures that much{means}."
    if above is not None and value <= above:
        return f"more than {above:g} is wanted{means}."
    if low is not None and value < low:
        return f"less than {low:g} is not possible{means}."
    if (low, high) == (0, 1) and value <= 100:  # noqa: PLR2004 - percent
        return f"a fraction runs from 0 to 1; for {value:g} % write {value / 100:g}."
    return f"more than {high:g} is not possible{means}."


def _meaning(steps: Iterable[str | int]) -> str:
    """Return what the field at a place means; of statistics what they are of."""
    part, meaning = schema(), ""
    for step in steps:
        while "type" not in part:
            name = part.get("$ref", "").rpartition("/")[2]
            part = schema()["$defs"][name] if name else part["anyOf"][0]
        part = part["items"] if isinstance(step, int) else part["properties"][step]
        meaning = part.get("description", meaning)
    return meaning


def _brief(raw: object) -> str:
    shown = json.dumps(raw, default=str) if isinstance(raw, str | int | float) else None
    named = {dict: "an object", list: "a list", type(None): "null"}
    return named.get(type(raw), "a value") if shown is None else shown[:40]


def to_json(profile: Profile) -> dict[str, object]:
    """Return the profile as JSON values, in the order of the declaration."""
    return {"schema": SCHEMA, **_plain(profile)}


def dump(profiles: tuple[Profile, ...]) -> str:
    """Return the text of a file: an object for one profile, an array for several."""
    items = [to_json(profile) for profile in profiles]
    document = items[0] if len(items) == 1 else items
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(profile: Profile) -> dict[str, Any]:
    messages = save(note for note in profile.provenance.notes if isinstance(note, Message))
    provenance = msgspec.structs.replace(profile.provenance, messages=messages or None)
    profile = msgspec.structs.replace(profile, provenance=provenance)
    plain: dict[str, Any] = _short(
        msgspec.to_builtins(
            profile, builtin_types=(datetime,), order="deterministic", enc_hook=as_json
        )
    )
    return plain


def _short(value: Any) -> Any:  # noqa: ANN401 - JSON values
    """Return JSON values with ten significant digits, whole numbers without a point."""
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    rounded = float(f"{value:.10g}")
    return int(rounded) if rounded == int(rounded) else rounded


@cache
def schema() -> Schema:
    """Return the JSON Schema (2020-12) of `profile.json`, from the declared fields.

    What several fields share stands once, under `$defs`: each record by the name of its class, the
    statistics by their limits.
    """
    _, classes = json_schema(Profile)
    classes |= {kind.__name__: {"enum": [*kind, None]} for kind in (JobKind, Parallelism)}
    del classes[Statistics.__name__]
    figures: dict[str, Schema] = {}
    for cls in Record.__subclasses__():
        if cls.__name__ in classes:
            classes[cls.__name__] = _of_record(cls, classes[cls.__name__], figures)
    classes |= figures
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gpucost:profile:v1",
        "title": "gpucost profile",
        **(record := classes.pop(Profile.__name__)),
        "properties": {"schema": {"const": SCHEMA}, **record["properties"]},
        "anyOf": [
            *({"required": [name]} for name in ("hardware", "job", "work")),
            {"required": ["gpus"], "properties": {"gpus": {"type": "array", "minItems": 1}}},
        ],
        "$defs": dict(sorted(classes.items())),
    }


def _of_record(cls: type, schema: Schema, figures: dict[str, Schema]) -> Schema:
    """Return the schema of a record: each field with its meaning, null allowed everywhere."""
    means, properties = meanings(cls), schema["properties"]
    for name in properties:
        default = properties[name].pop("default", None)
        body = (
            _figure(name, figures)
            if "Statistics" in str(properties[name])
            else _nullable(properties[name])
        )
        if name == "metrics":
            slots = {slot: _figure(slot, figures) for slot in SLOTS}
            body = {"type": ["object", "null"], "properties": slots, "additionalProperties": False}
        if default is not None and isinstance(default, str | int):
            body["default"] = default
        properties[name] = {"description": means[name].removesuffix("."), **body}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _nullable(body: Schema) -> Schema:
    if "$ref" in body:
        return {"anyOf": [body, {"type": "null"}]}
    if "enum" in body:
        return {"type": ["string", "null"], "enum": [*body["enum"], None]}
    if body.get("format") == "date-time":
        return {"type": ["string", "null"], "format": "date-time"}
    return {**body, "type": [body["type"], "null"]} if isinstance(body.get("type"), str) else body


def _figure(name: str, figures: dict[str, Schema]) -> Schema:
    """Return a reference to statistics within the limits of a slot, or of a figure of the host.

    They are an object, or the mean alone.
    """
    low, high = _limits(name)
    parts = (
        "Statistics",
        *(f"from{low:g}",) * (low > -LARGEST),
        *(f"to{high:g}",) * (high < LARGEST),
    )
    numbers = {"type": ["number", "null"], "minimum": low, "maximum": high}
    body = {
        "type": "object",
        "properties": dict.fromkeys(_STATISTICS, numbers),
        "additionalProperties": False,
    }
    figures["-".join(parts)] = {"anyOf": [body, numbers]}
    slot = SLOTS.get(name)
    described = {"description": f"{slot.meaning} [{slot.unit}]"} if slot else {}
    return {**described, "$ref": f"#/$defs/{'-'.join(parts)}"}
