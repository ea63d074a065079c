"""The JSON Schema of a document's class, and every problem that a document has with it."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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


def find_problems(kind: type, raw: object, sentence: Sentence) -> Iterator[str]:
    """Yield every value of a document that is not as its class declares, with its place.

    Args:
        kind: the class.
        raw: the JSON values.
        sentence: what to say of a value; the place stands before it: `jobs[0].name is missing`.
    """
    leaves = (leaf for error in _validator(kind).iter_errors(raw) for leaf in _leaves(error))
    yield from dict.fromkeys(f"{place_of(leaf)}{sentence(leaf)}" for leaf in leaves)


@cache
def _validator(kind: type) -> Any:  # noqa: ANN401 - a validator of jsonschema
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - on failure only
    from jsonschema.validators import extend  # noqa: PLC0415

    numbers = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": lambda _, part: _is_number(part), "integer": lambda _, part: _is_whole(part)}
    )
    (whole,), classes = json_schema(kind)
    schema = {**whole, "$defs": classes}
    validator = extend(Draft202012Validator, type_checker=numbers)  # type: ignore[no-untyped-call]
    return validator(schema, format_checker=FormatChecker(formats=["date"]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return _is_number(value) and isinstance(value, int)


def _leaves(error: "ValidationError") -> Iterator["ValidationError"]:
    """Yield the errors of the alternative that is meant: the one that is not null."""
    inner = [part for part in error.context or () if part.schema != {"type": "null"}]
    if error.validator != "anyOf" or not inner:
        yield error
        return
    for part in inner:
        yield from _leaves(part)


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
