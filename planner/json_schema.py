"""Values as JSON: what msgspec does not write, the schema of a class, what is wrong with one."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from pricing.money import Amount

if TYPE_CHECKING:
    from jsonschema import ValidationError

Schema = dict[str, Any]
Sentence = Callable[["ValidationError"], str]

AMOUNT: Schema = {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}
_DAY: Schema = {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_TIME: Schema = {"type": "string", "format": "date-time", "pattern": "^[0-9-]{10}T[0-9:]{8}Z$"}
_ANYTHING = "$comment"  # msgspec wants at least one key of a type that it does not know
_DROPPED = ("title", _ANYTHING)
_BRIEF = 40
_ENTRY = re.compile(r"^ {4}(?P<names>\w+(?:, \w+)*): (?P<said>.*)$")


def as_json(value: object) -> object:
    """Return what msgspec does not write: messages, read-only mappings, floats of NumPy.

    A message is its sentence.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(type(value))


def json_schema(*kinds: Any) -> tuple[list[Schema], dict[str, Schema]]:  # noqa: ANN401 - types
    """Return the JSON Schema of each type, and of the classes in them by name.

    Each type of value is told in one word where it can be: a number, not an integer or a number.
    """
    schemas, classes = msgspec.json.schema_components(
        kinds, schema_hook=_of_amount, ref_template="#/$defs/{name}"
    )
    return [simplified(part) for part in schemas], {
        name: simplified(schema) for name, schema in classes.items()
    }


def _of_amount(kind: type) -> Schema:
    if kind is Amount:
        return dict(AMOUNT)
    if kind is object:
        return {_ANYTHING: ""}
    raise NotImplementedError(kind)


def simplified(schema: Any) -> Any:  # noqa: ANN401 - JSON values
    """Return a schema of msgspec's without its alternatives of plain types."""
    if isinstance(schema, list):
        return [simplified(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: simplified(part) for key, part in schema.items() if key not in _DROPPED}
    if inner.get("format") == "decimal":
        return {key: part for key, part in inner.items() if key != "format"} | AMOUNT
    if inner.get("format") == "date":
        return {**inner, **_DAY}
    if inner.get("format") == "date-time":
        return {**inner, **_TIME}
    parts = inner.pop("anyOf", None)
    return inner if parts is None else {**inner, **_either(parts)}


def _either(parts: list[Schema]) -> Schema:
    kinds = [part for part in parts if part != {"type": "null"}]
    if {"type": "integer"} in kinds and any(part.get("type") == "number" for part in kinds):
        kinds.remove({"type": "integer"})
    has_null = len(kinds) < len(parts) and {"type": "null"} in parts
    if len(kinds) == 1 and (not has_null or isinstance(kinds[0].get("type"), str)):
        single = kinds[0]
        return {**single, "type": [single["type"], "null"]} if has_null else single
    if len(kinds) == 1 and "enum" in kinds[0]:
        return {"enum": [*kinds[0]["enum"], None]}
    return {"anyOf": [*kinds, *([{"type": "null"}] if has_null else [])]}


def meanings(cls: type) -> dict[str, str]:
    """Return what the docstring of a class, or of one that it is made of, says of each field."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        named: tuple[str, ...] = ()
        for line in inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2].split("\n"):
            entry = _ENTRY.match(line)
            if entry:
                named = tuple(entry["names"].split(", "))
                texts |= dict.fromkeys(named, entry["said"])
            elif line.startswith(" " * 8):
                texts |= {name: f"{texts[name]} {line.strip()}" for name in named}
            elif line:
                break
    return texts


def find_problems(kind: type, raw: object, sentence: Sentence) -> Iterator[str]:
    """Yield every value of a document that is not as its class declares, with its place.

    Args:
        kind: the class.
        raw: the JSON values.
        sentence: what to say of a value; the place stands before it: `jobs[0].name is missing`.
    """
    errors = (leaf for error in _validator(kind).iter_errors(raw) for leaf in leaves(error))
    yield from dict.fromkeys(f"{place_of(leaf)}{sentence(leaf)}" for leaf in errors)


@cache
def _validator(kind: type) -> Any:  # noqa: ANN401 - a validator of jsonschema
    (whole,), classes = json_schema(kind)
    return validator({**whole, "$defs": classes})


def validator(schema: Schema) -> Any:  # noqa: ANN401 - a validator of jsonschema
    """Return what yields the errors of JSON values; a number is finite, an instant is a text."""
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - on failure only
    from jsonschema.validators import extend  # noqa: PLC0415

    kinds = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "number": lambda _, part: is_number(part),
            "integer": lambda _, part: is_number(part) and isinstance(part, int),
            "string": lambda _, part: isinstance(part, str | datetime),
        }
    )
    checker = extend(Draft202012Validator, type_checker=kinds)  # type: ignore[no-untyped-call]
    return checker(schema, format_checker=FormatChecker(formats=["date"]))


def is_number(value: object) -> bool:
    """Return whether a JSON value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # nor NaN, nor a whole number beyond all floats


def leaves(error: "ValidationError") -> Iterator["ValidationError"]:
    """Yield the errors of the alternative that is meant: the first one of the value's own type."""
    alternatives: dict[Any, list[ValidationError]] = {}
    for part in error.context or () if error.validator == "anyOf" else ():
        if part.schema != {"type": "null"}:
            alternatives.setdefault(part.schema_path[0], []).append(part)
    if not alternatives or "type" in error.schema:  # type: ignore[operator]
        yield error
        return
    fitting = (
        parts
        for parts in alternatives.values()
        if not any(part.validator == "type" and not part.path for part in parts)
    )
    for part in next(fitting, next(iter(alternatives.values()))):
        yield from leaves(part)


def place_of(error: "ValidationError") -> str:
    """Return where a value stands: `jobs[0].name`; empty for the whole document."""
    return path(error.absolute_path)


def path(steps: Iterable[str | int]) -> str:
    """Return the steps to a value as one text: `jobs[0].name`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps).lstrip(
        "."
    )


def brief(value: object) -> str:
    """Return a JSON value in a few characters."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _BRIEF else f"{shown[: _BRIEF - 3]}..."


_KINDS: Mapping[str, str] = {
    "string": "text",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def plain_sentence(error: "ValidationError") -> str:
    """Return what to say of a value in a file that gpucost wrote itself."""
    expected: Any = error.validator_value
    schema: Any = error.schema
    if error.validator == "required":
        missing = re.findall("'(.*)'", error.message)[0]
        return f"{'.' if error.absolute_path else ''}{missing} is missing"
    if error.validator == "enum":
        text = f"one of {', '.join(str(part) for part in expected if part is not None)}"
    elif schema.get("pattern") == AMOUNT["pattern"]:
        text = "an amount as text"
    elif schema.get("format") == "date":
        text = "a day such as 2026-11-22"
    elif error.validator == "type":
        text = _KINDS[expected if isinstance(expected, str) else expected[0]]
    else:
        return f": {error.message}"
    return f" is {brief(error.instance)}, not {text}"
