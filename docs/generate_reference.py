"""Writes docs/reference from the code, so that the two cannot differ.

Run `python docs/generate_reference.py` after a change of options, rules, fields or prices; the
tests compare what it would write with what is there.
"""  # noqa: INP001 - a script, not a package

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import code_pages
import format_page
from page_text import MADE, prose, table

from gpucost.arguments.parameters import OPTIONS
from gpucost.arguments.settings import long_options
from gpucost.cli import COMMANDS, load_command
from gpucost.schemas.documents import DOCUMENTS
from planner.choice.requirements import BOOT_DISK_GIB
from planner.json_schema import Schema
from planner.profile.codec import schema as profile_schema
from planner.profile.kinds import SLOTS
from planner.profile.model import Statistics
from pricing.billing.provider_rules import rules_of as billing_rules
from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import Catalog, load_catalog
from pricing.catalog.offer import Offer
from pricing.money import HOURS_PER_MONTH, show

REFERENCE = Path(__file__).resolve().parent / "reference"
_LINE = 90
_COMMON = frozenset(("--quiet", "--verbose", "--no-color", "--help"))


def pages() -> dict[str, str]:
    """Return the text of every generated file by its name in docs/reference."""
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "cli.md": _cli,
        "options.md": _options,
        "findings.md": code_pages.findings,
        "actions.md": code_pages.actions,
        "formats.md": format_page.formats,
        "prices.md": _prices,
        "profile.md": _profile,
        "schemas.md": _schemas,
    }
    made = {name: "\n".join(maker()) + "\n" for name, maker in makers.items()}
    schemas = {
        f"schemas/{name}.schema.json": f"{_flat(one.schema)}\n" for name, one in DOCUMENTS.items()
    }
    return {**made, **schemas}


def _flat(document: dict[str, Any]) -> str:
    """Return JSON with each list of words or numbers, and each small object, on one line."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    for opened, closed in (("[", "]"), ("{", "}")):
        inner = re.compile(rf"\{opened}\s+([^][}}{{]*?)\s+\{closed}")
        text = inner.sub(lambda found: _on_one_line(found, opened, closed), text)  # noqa: B023
    return text


def _on_one_line(found: re.Match[str], opened: str, closed: str) -> str:
    words = " ".join(line.strip() for line in found[1].splitlines())
    return f"{opened}{words}{closed}" if len(words) < _LINE else found[0]


# --- cli.md ---


def _cli() -> Iterator[str]:
    yield from ("# Command line", "", MADE, "")
    yield from prose(
        "Every command also takes `-q` (no messages), `-v` (more messages), `--no-color` and "
        "`--help`, except `completion`, which takes `--help` only. Data goes to standard "
        "output, messages to standard error. Durations read `90s 15m 8h 8.5h 2d`, sizes "
        "`500GB 500GiB 2TiB`. Exit codes: [exit-codes.md](exit-codes.md). Defaults from files "
        "and the environment: [settings.md](settings.md)."
    )
    yield ""
    yield from table(
        ("command", "what it does"),
        [
            (f"[`gpucost {name}`](#gpucost-{name})", summary)
            for name, (_, summary) in COMMANDS.items()
        ],
    )
    for name in COMMANDS:
        yield from _command(name)


def _command(name: str) -> Iterator[str]:
    command = load_command(name)
    if not isinstance(command, click.Group):
        yield from _section(f"gpucost {name}", command, "##")
        return
    yield from ("", f"## gpucost {name}", "", command.help or "")
    if command.epilog:
        yield from ("", f"`{command.epilog.removeprefix('Example: ')}`")
    for below in command.commands.values():
        yield from _section(f"gpucost {name} {below.name}", below, "###")


def _section(path: str, command: click.Command, mark: str) -> Iterator[str]:
    with click.Context(command, info_name=path, parent=None) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        records = [
            record
            for parameter in command.get_params(context)
            if not _COMMON.intersection(parameter.opts)
            and (record := parameter.get_help_record(context)) is not None
        ]
    yield from ("", f"{mark} {path}", "", command.help or "", "")
    yield from ("```text", f"{path} {usage}", "```")
    if records:
        yield ""
        yield from table(("option", "meaning"), [(f"`{left}`", right) for left, right in records])
    if command.epilog:
        yield from ("", f"`{command.epilog.removeprefix('Example: ')}`")


# --- options.md ---


def _options() -> Iterator[str]:
    yield from ("# Options", "", MADE, "")
    yield from prose(
        "Every option of every command, each with the one meaning that it has wherever it is "
        "taken; what a command adds to it, its help says. Earlier names stay callable."
    )
    yield ""
    takes: dict[str, list[str]] = {}
    for name in COMMANDS:
        for flag in long_options(load_command(name)):
            takes.setdefault(flag, []).append(name)
    rows = []
    for flag, row in OPTIONS.items():
        names = sorted({name for word in _flags(flag, row) for name in takes.get(word, ())})
        if not row.get("hidden"):
            earlier = ", ".join(f"`{word}`" for word in row.get("earlier", ()))
            commands = "all" if len(names) > _MOST_COMMANDS else ", ".join(names)
            meaning = row["means"].rstrip(".") if _is_whole(row) else f"{row['means']} ..."
            rows.append((f"`--{flag}`", meaning, commands, earlier))
    yield from table(("option", "meaning", "commands", "earlier name"), rows)


_MOST_COMMANDS = 20


def _flags(flag: str, row: Mapping[str, Any]) -> Iterator[str]:
    yield flag
    yield from (word.removeprefix("--") for word in row.get("flags", ()))


def _is_whole(row: Mapping[str, Any]) -> bool:
    return "more" not in row and not any("more" in v for v in row.values() if isinstance(v, dict))


# --- prices.md ---


def _prices() -> Iterator[str]:
    catalog = load_catalog()
    yield from ("# Prices that come with this version", "", MADE, "")
    yield from prose(
        f"{catalog.count} offers of {len(_by_provider(catalog))} providers, seen from "
        f"{catalog.as_of}, the newest day on which a price was read. They "
        "age with the version unless [refreshed](../how-to/refresh-prices.md). A price is "
        "fresh for 14 days after it was read, then ageing, and old after 60 days or without a "
        "stated day; every output says so. Each row "
        "carries its source, its date and how far it can be trusted: "
        "`gpucost prices -f json`. How the "
        "files are kept: [pricing/data/README.md](../../pricing/data/README.md)."
    )
    yield ""
    yield from table(
        ("provider", "offers", "GPU models", "regions", "read from", "to", "bills"),
        [
            _provider(name, offers, catalog)
            for name, offers in sorted(_by_provider(catalog).items())
        ],
    )
    yield from ("", "*bills*: how time is rounded, as the provider documents it; where it is not")
    yield from prose(
        "documented, whole hours are billed, with a warning. A row read on 2025-01-01 has a "
        "source that prints no exact date."
    )
    yield from ("", "## What stands beside machine time", "")
    yield from prose(
        f"What a plan adds for each machine that lives a month (730 h), in dollars: a boot disk of "
        f"{BOOT_DISK_GIB} GiB (`--boot-disk`) and a public IPv4 address (`--no-public-address`), "
        "where its cheapest machine on demand is. 0.00 comes with the machine; where no price is "
        "known the total says at least."
    )
    yield ""
    yield from table(
        ("provider", "where", "boot disk", "address"),
        [_beside(name, offers) for name, offers in sorted(_by_provider(catalog).items())],
    )
    yield from ("", "## GPU models with a price", "")
    counts = Counter(offer.gpu for offer in catalog.offers)
    rows = [(gpu, str(n), ", ".join(_sellers(catalog, gpu))) for gpu, n in sorted(counts.items())]
    yield from table(("GPU", "offers", "sold by"), rows)


def _beside(name: str, offers: list[Offer]) -> tuple[str, ...]:
    sold = [offer for offer in offers if offer.purchase == "on_demand"] or offers
    offer = min(sold, key=lambda one: (one.usd_per_hour, one.place))
    month = Usage(
        duration_s=HOURS_PER_MONTH * 3600,
        as_of=offer.as_of,
        boot_disk_bytes=BOOT_DISK_GIB * 2**30,
        addresses=1,
    )
    bill = quote(offer, month)
    known = {line.what: show(line.usd) for line in bill.lines}
    shown = (known.get(what, "unknown") for what in ("boot-disk", "address"))
    return (name, offer.region_text, *shown)


def _by_provider(catalog: Catalog) -> dict[str, list[Offer]]:
    found: dict[str, list[Offer]] = {}
    for offer in catalog.offers:
        found.setdefault(offer.provider, []).append(offer)
    return found


def _sellers(catalog: Catalog, gpu: str) -> list[str]:
    return sorted({offer.provider for offer in catalog.offers if offer.gpu == gpu})


def _provider(name: str, offers: list[Offer], catalog: Catalog) -> tuple[str, ...]:
    regions = {offer.region for offer in offers if offer.region != "*"}
    return (
        name,
        str(len(offers)),
        str(len({offer.gpu for offer in offers})),
        str(len(regions)) if regions else "one price",
        min(offer.as_of for offer in offers).isoformat(),
        max(offer.as_of for offer in offers).isoformat(),
        billing_rules(name, catalog.as_of).compute_text.partition(" (")[0],
    )


def _profile() -> Iterator[str]:
    yield from ("# profile.json", "", MADE, "")
    yield from prose(
        "What one job measured. Everything is optional; what was not measured is null or "
        "absent, never 0. Fractions run from 0 to 1. The JSON Schema is "
        "[schemas/profile.schema.json](schemas/profile.schema.json). A file may also hold an array "
        "of profiles."
    )
    yield from ("", '`schema` is `"gpucost.profile/v1"`.')
    yield from _record("", profile_schema())
    yield from ("", "## Statistics", "")
    names = ", ".join(f"`{name}`" for name in Statistics.__struct_fields__)
    yield from prose(
        f"Any subset of {names}, weighted by time over the active window. A single number "
        "stands for the mean."
    )
    yield from ("", "## Metric slots", "", "The keys of `gpus[].metrics`.", "")
    yield from table(
        ("slot", "unit", "what is counted"),
        [(f"`{slot.name}`", slot.unit, slot.meaning) for slot in SLOTS.values()],
    )


def _schemas() -> Iterator[str]:
    yield from ("# JSON Schemas", "", MADE, "")
    yield from prose(
        "Every document that gpucost writes has a JSON Schema (2020-12), made from the fields that "
        "its class declares: what each one means, its unit, and where it may be null. "
        "`gpucost schema` lists the documents, `gpucost schema NAME` prints one; they are these "
        "files. Dollars are text, such as `12.50`; days and times are ISO 8601, UTC."
    )
    yield ""
    yield from prose(
        "A schema allows the fields of its version and no other. Later versions may add fields, so "
        "check a document against the schema of the version that wrote it. A profile is read as "
        "well as written: a field that is not known is refused with the nearest name that is, but "
        "in a file that gpucost wrote (its `provenance` names a source by its digest), where it "
        "is another version's, is left alone and noted."
    )
    yield ""
    forms = {"one": "an object", "cut": "an object", "list": "an array", "line": "an object a line"}
    yield from table(
        ("document", "is", "written by"),
        [
            (f"[{name}](schemas/{name}.schema.json)", forms[one.form], one.written)
            for name, one in DOCUMENTS.items()
        ],
    )
    yield ""
    yield from prose(
        "What `export` and `iam-policy` print has the form of other tools, and no schema of ours."
    )


def _record(path: str, record: Schema) -> Iterator[str]:
    fields = {name: field for name, field in record["properties"].items() if name != "schema"}
    yield from ("", f"## {path}" if path else "## The whole", "")
    yield from table(
        ("field", "type", "meaning"),
        [(f"`{name}`", _type(field), _meaning(field)) for name, field in fields.items()],
    )
    for name, field in fields.items():
        if _type(field) in ("object", "list"):
            inner = f"{path}.{name}".lstrip(".") + ("[]" if "items" in field else "")
            yield from _record(inner, _shared(field))


def _shared(field: Schema) -> Schema:
    """Return the schema that a field, or each of its items, refers to; its own where to none."""
    part = field.get("items", field)
    reference = part.get("anyOf", [part])[0].get("$ref", "")
    return profile_schema()["$defs"].get(reference.rpartition("/")[2], part)


def _type(field: Schema) -> str:
    kind, shared = field.get("type", ["any"])[0], _shared(field)
    if kind == "array":
        items = shared.get("type")
        return {"string": "texts", "number": "numbers"}.get(items, "list")
    if "enum" in shared:
        return "text"
    if kind == "object":
        values = field.get("additionalProperties")
        saved = isinstance(values, dict) and values.get("$ref", "").endswith("/SavedMessage")
        return "sentence -> code and parameters" if saved else "slot -> statistics"
    if kind == "any" and shared is not field:
        return "statistics" if "anyOf" in shared else "object"
    named = {"string": "text", "boolean": "flag"}
    return "ISO 8601 time" if "format" in field else named.get(kind, kind)


def _meaning(field: Schema) -> str:
    words = [field["description"]]
    if choices := [choice for choice in _shared(field).get("enum", ()) if choice is not None]:
        words.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    limits = _shared(field).get("anyOf", [None, field.get("items", field)])[1]
    low, above = limits.get("minimum"), limits.get("exclusiveMinimum")
    if (low, limits.get("maximum")) == (0, 1):
        words.append("0 to 1")
    elif low and low > 0:
        words.append(f"at least {low:g}")
    elif above is not None:
        words.append(f"more than {above:g}")
    return "; ".join(words)


def main() -> None:
    """Write every generated file."""
    (REFERENCE / "schemas").mkdir(exist_ok=True, parents=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
