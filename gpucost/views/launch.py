"""Prints the preview of a launch: what it costs, each changing call, what must be known."""

import json
from decimal import Decimal
from typing import Any

import click

from gpucost.views.output import Output, Table, print_json, print_table
from pricing.billing.quote import offer_json
from pricing.money import cents, plain, show
from providers.interface import Creation
from providers.launch_preview import Preview

_LONGEST = 60
SCHEMA = "gpucost.preview/v1"
_TENTH = Decimal("0.1")


def show_preview(seen: Preview, output: Output, *, dry: bool) -> None:
    """Print a preview: on standard output in a dry run, else for people on standard error."""
    if dry and output.format == "json":
        print_json(document(seen))
        return
    if dry and output.format in ("csv", "md"):
        print_table(_calls(seen), output)
        return
    for line in _lines(seen, dry=dry):
        if dry:
            click.echo(line)
        else:
            output.say(line)


def _lines(seen: Preview, *, dry: bool) -> list[str]:
    spec = seen.spec
    first = spec.places[0]
    lines = [f"{spec.count} x {spec.provider}/{first.text}, {first.purchase}"]
    if seen.total is not None and seen.most is not None:
        lines += [f"  {line.what}: ${show(line.usd)} = {line.how}" for line in seen.total.lines]
        hours = plain((spec.ttl_s / 3600).quantize(_TENTH))
        lines.append(f"  at most ${show(seen.total.exact)} by the deadline, {hours} h from now")
        later = f"up to {plain(spec.end_s)} s later" if spec.end_s else "if it is ended then"
        lines.append(f"  at most ${show(seen.most.exact)} by the end of the bill, {later}")
        lines.append(f"  cap: ${show(spec.max_usd)}")
    lines.append(f"  owner {spec.marks.owner}, plan {spec.marks.plan}")
    lines += [f"  {remark}" for remark in seen.remarks]
    others = [place.text for place in spec.places[1:]]
    if others:
        lines.append(f"  if there is no capacity: {', '.join(others)}")
    lines.append("calls that change something:" if dry else "calls:")
    lines += [f"  {_call(creation)}" for creation in seen.calls]
    lines.append("to end it:")
    lines += [f"  {end}" for end in seen.ends]
    return [*lines, *(f"note: {warning}" for warning in seen.warnings)]


def _call(creation: Creation) -> str:
    told = {key: _short(value) for key, value in creation.arguments.items()}
    if told.get("region") == "":
        told["region"] = "(chosen at launch)"
    return f"{creation.call} {json.dumps(told, ensure_ascii=False)}"


def _short(value: Any) -> Any:  # noqa: ANN401 - arguments of any call
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST].splitlines()[0]} ... ({len(value)} characters)"
    return value


def _calls(seen: Preview) -> Table:
    rows = tuple((one.call, one.kind, one.name, one.region) for one in seen.calls)
    return Table(columns=("call", "makes", "name", "region"), rows=rows)


def document(seen: Preview) -> dict[str, Any]:
    """The preview as JSON."""
    spec, total = seen.spec, seen.total
    first = spec.places[0]
    return {
        "schema": SCHEMA,
        "currency": "USD",
        "provider": spec.provider,
        "type": first.instance_type,
        "region": first.region or None,
        "offer": None if first.offer is None else offer_json(first.offer),
        "count": spec.count,
        "ttl_s": int(spec.ttl_s),
        "deadline": spec.marks.deadline.isoformat(),
        "owner": spec.marks.owner,
        "plan": spec.marks.plan,
        "total_at_ttl": "0.00" if total is None else str(total.total),
        "end_s": int(spec.end_s),
        "total_at_end": "0.00" if seen.most is None else str(seen.most.total),
        "max_cost": str(cents(spec.max_usd)),
        "calls": [
            {"call": one.call, "kind": one.kind, "name": one.name, "arguments": dict(one.arguments)}
            for one in seen.calls
        ],
        "ends": list(seen.ends),
        "warnings": [*seen.remarks, *seen.warnings, *seen.refusals],
    }


def question(seen: Preview) -> str:
    """What is asked before anything is made."""
    if seen.most is None:
        return f"Set up {seen.spec.places[0].text}?"
    cost = f"at most ${show(seen.most.exact)}"
    return f"Launch {seen.spec.count} x {seen.spec.places[0].text} for {cost}?"
