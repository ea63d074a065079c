"""Holds what commands print against the JSON Schemas of documents, nothing beside them allowed."""

import copy
import json
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from gpucost.schemas.documents import DOCUMENTS

FOREIGN = ("export", "iam-policy", "schema", "run", "profile", "logs", "ssh", "completion")
"""Commands that print documents of other tools, JSON Schemas, or what a program of the user's."""

BY_COMMAND = {
    "prices": "prices",
    "prices list": "prices",
    "prices check": "prices-check",
    "prices history": "price-history",
    "prices update": "price-update",
    "doctor": "installation",
    "explain": "explanation",
    "reap": "reaped",
    "watch": "reaped",
}
"""The documents that do not name their schema."""


@cache
def validator(name: str) -> Draft202012Validator:
    """Return what checks a document of that name; every object of the schema is closed."""
    schema = copy.deepcopy(DOCUMENTS[name].schema)
    if name == "profile":  # it is open, as its reader is; what is written is not
        _close(schema)
    return Draft202012Validator(schema)


def _close(schema: Any) -> None:
    for inner in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(inner, dict | list):
            _close(inner)
    if isinstance(schema, dict) and "type" in schema and "properties" in schema:
        schema["additionalProperties"] = False


def faults(document: Any, name: str) -> list[str]:
    """Return what is wrong with a document, each with its place."""
    return [
        f"{error.instance_path}: {error.message[:200]}"
        for error in validator(name).iter_errors(document)
    ]


def hold(arguments: tuple[str, ...], printed: str) -> None:
    """Fail where a command printed a document without a schema, or one that its schema refuses."""
    if not printed.startswith(("{", "[")) or not arguments or arguments[0] in FOREIGN:
        return
    try:
        document = json.loads(printed)
    except ValueError:
        return  # a table, or the log of something
    named = document if isinstance(document, list) else [document]
    if named and all(isinstance(one, dict) and "schema" in one for one in named):
        for one in named:
            name = str(one["schema"]).removeprefix("gpucost.").removesuffix("/v1")
            assert not (wrong := faults(one, name)), f"{wrong}: gpucost {' '.join(arguments)}"
        return
    words = [word for word in arguments[:2] if not word.startswith("-")]
    name = BY_COMMAND.get(" ".join(words)) or BY_COMMAND.get(words[0], "")
    assert name, f"what `gpucost {' '.join(arguments)}` prints has no schema"
    assert not (wrong := faults(document, name)), f"{wrong}: gpucost {' '.join(arguments)}"
