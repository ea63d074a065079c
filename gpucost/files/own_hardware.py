"""The section [own_hardware] of a settings file: what a machine of one's own costs."""

from dataclasses import MISSING, fields
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from gpucost.arguments.settings import OWN_HARDWARE, load_section
from pricing.alternatives import CLOUD, FIGURES, Ownership
from pricing.errors import InputError
from pricing.hardware import resolve

_ENDS = 3
_WORDS = ("name", "gpu")


class Figures(NamedTuple):
    """A machine of one's own, and the low and high ends that its owner gave."""

    own: Ownership
    bounds: dict[str, tuple[Decimal, Decimal]]


def load_own_hardware() -> Figures:
    """Return the machine of the settings file.

    A figure is a number, or `[low, expected, high]`.

    Raises:
        InputError: there is no such section, or figures are missing, unknown or out of range; all
            of them.
    """
    section, where = load_section(OWN_HARDWARE)
    needed = [f.name for f in fields(Ownership) if f.default is MISSING]
    problems = [f"{where} {name} is missing; add it." for name in needed if name not in section]
    values: dict[str, Any] = {}
    bounds: dict[str, tuple[Decimal, Decimal]] = {}
    for key, value in section.items():
        try:
            if key in _WORDS:
                values[key] = _word(key, value)
            elif key in FIGURES or key == CLOUD:
                low, values[key], high = _figure(value)
                if isinstance(value, list):
                    bounds[key] = (low, high)
            else:
                problems.append(
                    f"{where} {key} is not a figure of it; known: {', '.join(FIGURES)}."
                )
        except InputError as error:
            problems += [f"{where} {key}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    values.pop(CLOUD, None)
    return Figures(Ownership(**values), bounds)


def _word(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{value!r:.40} is not text.")
    if key != "gpu":
        return value
    return resolve(value).name


def _figure(value: object) -> tuple[Decimal, Decimal, Decimal]:
    """Return low, expected and high; all the same where one number is given."""
    if isinstance(value, list):
        if len(value) != _ENDS:
            raise InputError(f"{value!r:.40} is not a range; write one number or [low, mid, high].")
        low, mid, high = (_number(end) for end in value)
        if not low <= mid <= high:
            raise InputError(f"{value!r:.40} does not rise; write [low, mid, high].")
        return low, mid, high
    number = _number(value)
    return number, number, number


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{value!r:.40} is not a number.")
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise InputError(f"{value!r:.40} is not a number.") from None
    if not number.is_finite():
        raise InputError(f"{value!r:.40} is not a finite number.")
    return number
