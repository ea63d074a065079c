"""How JSON values become values of plan.json: strict about kinds, blind to what is not known.

The types stay plain dataclasses; what a text, an amount or a day must look like is here. Import it
only where a file is read: it brings cattrs.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, Literal, TypeGuard, get_args, get_origin

from cattrs import Converter
from cattrs.cols import homogenous_tuple_structure_factory, mapping_structure_factory
from cattrs.gen import make_dict_structure_fn, override

from planner.plan_document.encode import name_in_file
from planner.plan_document.options import SettingValue
from pricing.errors import InputError
from pricing.money import usd

_BRIEF = 40

Hook = Callable[[Any, Any], Any]


class MisfitError(ValueError):
    """A value is not of its field's kind; the message continues the field's name."""


@cache
def converter() -> Converter:
    """Return what structures a plan; every misfit of the document is collected."""
    made = Converter()
    for kind, hook in _SCALARS.items():
        made.register_structure_hook(kind, hook)
    made.register_structure_hook_func(lambda kind: kind is object, lambda raw, _: raw)
    made.register_structure_hook_func(lambda kind: kind == SettingValue, _scalar)
    made.register_structure_hook_func(_made_of(Literal), _word)
    made.register_structure_hook_factory(is_dataclass, lambda kind: _record(kind, made))
    made.register_structure_hook_factory(
        _made_of(tuple),
        lambda kind: _only(list, "a list", homogenous_tuple_structure_factory(kind, made)),
    )
    made.register_structure_hook_factory(
        _made_of(Mapping),
        lambda kind: _only(dict, "an object", mapping_structure_factory(kind, made)),
    )
    return made


def _made_of(origin: object) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


def _record(kind: type, made: Converter) -> Hook:
    names = {one.name: override(rename=name_in_file(one)) for one in fields(kind)}
    return _only(dict, "an object", make_dict_structure_fn(kind, made, **names))  # type: ignore[arg-type]


def _only(form: type, words: str, structure: Hook) -> Hook:
    """Return a hook that takes one form of JSON value only."""

    def read(raw: object, kind: object) -> object:
        if not isinstance(raw, form):
            raise _misfit(raw, words)
        return structure(raw, kind)

    return read


def _misfit(raw: object, wanted: str) -> MisfitError:
    shown = json.dumps(raw, ensure_ascii=False)
    brief = shown if len(shown) <= _BRIEF else f"{shown[: _BRIEF - 3]}..."
    return MisfitError(f"is {brief}, not {wanted}")


def _text(raw: object, _: object) -> str:
    if not isinstance(raw, str):
        raise _misfit(raw, "text")
    return sys.intern(raw)  # a fleet says the same of many jobs


def _flag(raw: object, _: object) -> bool:
    if not isinstance(raw, bool):
        raise _misfit(raw, "true or false")
    return raw


def _number(raw: object, _: object) -> float:
    """Return a number as it is written: 8 stays 8."""
    if not _is_number(raw):
        raise _misfit(raw, "a number")
    return raw


def _whole(raw: object, _: object) -> int:
    if not _is_number(raw) or raw != int(raw):
        raise _misfit(raw, "a whole number")
    return int(raw)


def _is_number(raw: object) -> TypeGuard[float]:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw)


def _amount(raw: object, _: object) -> Decimal:
    """Return dollars, or a quantity of a bill; both stand in the file as text."""
    try:
        return usd(_text(raw, None))
    except (InputError, MisfitError):
        raise _misfit(raw, "an amount as text") from None


def _day(raw: object, _: object) -> date:
    try:
        return date.fromisoformat(_text(raw, None))
    except ValueError:
        raise _misfit(raw, "a day such as 2026-11-22") from None


def _scalar(raw: object, _: object) -> object:
    return raw if isinstance(raw, str) else _number(raw, None)


def _word(raw: object, kind: object) -> object:
    words = get_args(kind)
    if raw not in words:
        raise _misfit(raw, f"one of {', '.join(words)}")
    return raw


_SCALARS: Mapping[type, Hook] = {
    str: _text,
    bool: _flag,
    int: _whole,
    float: _number,
    Decimal: _amount,
    date: _day,
}
