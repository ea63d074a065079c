"""The documents that gpucost writes, one row each: what writes it, and the class it is made of."""

import csv
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from planner.json_schema import Schema, json_schema, meanings
from pricing.tables import from_row

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_UNITS = (  # how names end, the longer ones first
    ("usd_per_gpu_hour", "USD/h"),
    ("usd_per_hour", "USD/h"),
    ("usd", "USD"),
    ("_fraction", "0 to 1"),
    ("_percent", "%"),
    ("_gib", "GiB"),
    ("_days", "days"),
    ("_hours", "h"),
    ("_per_s", "1/s"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_h", "h"),
    ("_w", "W"),
)


def schema_of(name: str, cls: type, *, many: bool = False, tagged: bool = False) -> Schema:
    """Return the JSON Schema (2020-12) of a document; nothing beside its fields is allowed.

    Args:
        name: of the document, as `plan`.
        cls: a class that `planner.models.document.encode` writes.
        many: whether the document is an array of them.
        tagged: whether `schema` stands before the fields, without being one of them.
    """
    _, classes = _published(cls)
    schema = classes[cls.__name__] if many else classes.pop(cls.__name__)
    own = {"schema": {"const": f"gpucost.{name}/v1"}}
    if tagged:
        schema["properties"] = {**own, **schema["properties"]}
        schema["required"] = ["schema", *schema["required"]]
    elif "schema" in schema["properties"]:
        schema["properties"]["schema"] = own["schema"]
    meaning = schema["description"]
    if many:
        schema = {"type": "array", "items": {"$ref": f"#/$defs/{cls.__name__}"}}
    return _document(name, meaning, schema, classes)


def one_of(name: str, meaning: str, kinds: Sequence[type]) -> Schema:
    """Return the JSON Schema of a document that has the fields of one of several classes."""
    schemas, classes = _published(*kinds)
    return _document(name, meaning, {"anyOf": schemas}, classes)


def _document(name: str, meaning: str, schema: Schema, classes: dict[str, Schema]) -> Schema:
    head = {"$schema": _DRAFT, "$id": f"urn:gpucost:{name}:v1", "title": f"gpucost {name}"}
    definitions = {"$defs": dict(sorted(classes.items()))} if classes else {}
    return {**head, "description": meaning, **schema, **definitions}


def _published(*kinds: type) -> tuple[list[Schema], dict[str, Schema]]:
    schemas, classes = json_schema(*kinds)
    for cls in set(_classes(kinds, set())):
        _publish(cls, classes[cls.__name__])
    return schemas, classes


def _publish(cls: type, schema: Schema) -> None:
    """Say what each field means, and that this version writes all of them and no other."""
    texts, kinds = meanings(cls), get_type_hints(cls)
    names = _names(cls)
    properties = {name: schema["properties"][name] for name in names}
    schema["properties"] = properties
    for name, keywords in properties.items():
        keywords.pop("default", None)
        description = " ".join(
            filter(None, (texts.get(names[name], ""), _unit(names[name], texts)))
        )
        properties[name] = {**({"description": description} if description else {}), **keywords}
    schema["description"] = " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())
    schema["required"] = [
        name for name, field in names.items() if msgspec.UnsetType not in get_args(kinds[field])
    ]
    schema["additionalProperties"] = False


def _names(cls: type) -> dict[str, str]:
    """Return the fields of a class by their names in the file."""
    if issubclass(cls, msgspec.Struct):
        return dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
    return {name: name for name in vars(cls)["__dataclass_fields__"]}


def _classes(kinds: Sequence[Any], visited: set[Any]) -> Iterator[type]:
    """Yield the classes of documents in types, and in the fields of those classes."""
    for kind in kinds:
        if is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            if kind not in visited:
                visited.add(kind)
                yield kind  # type: ignore[misc]
                yield from _classes(tuple(get_type_hints(kind).values()), visited)
        else:
            yield from _classes(get_args(kind), visited)


def _unit(name: str, meanings: Mapping[str, str]) -> str:
    """Return the unit that the name of a field ends with; empty where its meaning has one."""
    if "[" in meanings.get(name, ""):
        return ""
    return next((f"[{unit}]" for end, unit in _UNITS if name.endswith(end)), "")


Form = Literal["one", "list", "line", "cut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDocument:
    """A document that gpucost writes.

    Attributes:
        name: as in its `schema`, and in docs/reference/schemas.
        written: what writes it.
        source: the class whose fields it has, `module:Class`; imported where it is asked for.
        form: an object, an array of objects, an object a line, or an object without `schema` and
            with as much of its list as an agent is told.
        tagged: whether `schema` stands before the fields, without being one of them.
    """

    name: str
    written: str
    source: str
    form: Form = "one"
    tagged: bool = False

    @property
    def schema(self) -> Schema:
        """Its JSON Schema; that of each line where it is lines."""
        module, _, name = self.source.partition(":")
        source = getattr(import_module(module), name)
        if not isinstance(source, type):  # a profile is read, too: its own declared fields say how
            own: Schema = source()
            return own
        schema = schema_of(self.name, source, many=self.form == "list", tagged=self.tagged)
        return _cut(schema) if self.form == "cut" else schema


def _cut(schema: Schema) -> Schema:
    """Return the schema of a document of which only so much is told, and how much is left out."""
    properties = {name: part for name, part in schema["properties"].items() if name != "schema"}
    properties["left_out"] = {"description": "how many more there are.", "type": "integer"}
    return {**schema, "properties": properties, "required": list(properties)}


_TABLE = (files("gpucost.schemas") / "documents.csv").read_text(encoding="utf-8").splitlines()
DOCUMENTS: Mapping[str, WrittenDocument] = MappingProxyType(
    {
        row["name"]: from_row(WrittenDocument, row, tagged=row["name"] == "outcome")
        for row in csv.DictReader(_TABLE)
    }
)
"""By name."""
