"""`gpucost explain`: what a finding or an action code means, and where its figures come from."""

import difflib

import click

from gpucost.output import Output, output_options, print_json
from planner.remedies import ACTIONS, Action
from planner.rule import Rule
from planner.rules import RULES
from planner.signals import SIGNALS
from pricing.errors import InputError


@click.command(name="explain", epilog="Example: gpucost explain data-loading")
@click.argument("code")
@output_options
def command(code: str, output: Output) -> None:
    """Explain a finding or an action code: tests, limits, sources."""
    lines = _explain(code)
    if output.format == "json":
        print_json({"code": code, "text": lines})
    else:
        click.echo("\n".join(lines))


def _explain(code: str) -> list[str]:
    rule = next((rule for rule in RULES if rule.code == code), None)
    if rule is not None:
        return _rule(rule)
    if code in ACTIONS:
        return _action(ACTIONS[code])
    known = [*(rule.code for rule in RULES), *ACTIONS]
    near = difflib.get_close_matches(code, known, 3) or known
    raise InputError(f"{code!r} is no finding or action code; near it: {', '.join(near)}.")


def _rule(rule: Rule) -> list[str]:
    lines = [f"{rule.code} (finding)", rule.meaning, ""]
    for case in rule.cases:
        lines.append(f"{case.confidence}: {case.cause}")
        for test in case.tests:
            unknown = " (or not measured)" if test.or_unknown else ""
            lines.append(f"  {SIGNALS[test.signal][1]} [{test.signal}] {test.words}{unknown}")
        if case.waste:
            lines.append(f"  wastes: {case.waste.words}")
    lines += ["", f"Do: {', '.join(rule.actions) or 'nothing'}", f"Source: {rule.source}"]
    return lines


def _action(action: Action) -> list[str]:
    lines = [f"{action.code} (action, {action.kind})", action.title, ""]
    if action.effect is not None:
        low, mid, high = action.effect
        lines.append(f"Speeds up the {action.part} part {low:g}x to {high:g}x, typically {mid:g}x.")
        lines.append(f"Source: {action.source}")
    else:
        lines.append("Its gain is not modelled in this version, so no option counts on it.")
    if action.effort_hours:
        lines.append(f"Effort: about {action.effort_hours:g} h (our estimate).")
    if action.remark:
        lines.append(f"Watch: {action.remark}.")
    return lines
