"""Writes a recipe's settings in the form that a framework reads: JSON, YAML or Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.documents.framework_config import FrameworkConfig, Value

_SYMBOLS = ("torch.",)
_MADE = "Written by gpucost for {option}: what is safe, and the numeric actions asked for."


def render_config(config: FrameworkConfig) -> str:
    """Return the file of a framework."""
    return _FORMS.get(config.framework, _python)(config)


def _json(config: FrameworkConfig) -> str:
    """Return the text of JSON, which has no comments; what is left is said beside the file."""
    return json.dumps(config.settings, indent=1) + "\n"


def _yaml(config: FrameworkConfig) -> str:
    lines = [*_comments(config)]
    for name, value in config.settings.items():
        if isinstance(value, dict):
            lines += [f"{name}:", *(f"  {inner}: {json.dumps(v)}" for inner, v in value.items())]
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return "\n".join(lines or ["{}"]) + "\n"


def _python(config: FrameworkConfig) -> str:
    lines = list(_comments(config))
    symbols = any(_is_symbol(v) for part in _sections(config) for v in part[1].values())
    lines += ["", "import torch"] if symbols else []
    for name, values in _sections(config):
        inner = "".join(f"    {key!r}: {_literal(value)},\n" for key, value in values.items())
        lines += ["", f"{name.upper()} = {{\n{inner}}}"]
    return "\n".join(lines) + "\n"


def _sections(config: FrameworkConfig) -> Iterator[tuple[str, Mapping[str, Value]]]:
    for name, value in config.settings.items():
        if isinstance(value, dict):
            yield name, value


def _is_symbol(value: Value) -> bool:
    return isinstance(value, str) and value.startswith(_SYMBOLS)


def _literal(value: Value) -> str:
    return str(value) if _is_symbol(value) else repr(value)


def _comments(config: FrameworkConfig) -> Iterator[str]:
    yield f"# {_printable(_MADE.format(option=config.option))}"
    for name, value in config.environment.items():
        yield f"# environment: {name}={_printable(value)}"
    for one in config.left:
        yield f"# {one.code}: {_printable(one.how)}"


def _printable(text: str) -> str:
    """Return text that stays on its line."""
    return "".join(c if c.isprintable() else " " for c in text)


_FORMS: dict[str, Callable[[FrameworkConfig], str]] = {
    "transformers": _json,
    "accelerate": _yaml,
    "lightning": _yaml,
}
