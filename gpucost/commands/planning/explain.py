"""`gpucost explain`: what a finding or an action code means, and where its figures come from."""

import difflib

import click

from gpucost.schemas.small_documents import ExplainedCode
from gpucost.views.code import action_lines, rule_lines
from gpucost.views.output import Output, output_options, print_json
from planner.actions import ACTIONS
from planner.diagnosis.rules import RULES
from pricing.errors import InputError


@click.command(name="explain", epilog="Example: gpucost explain data-loading")
@click.argument("code")
@output_options
def command(code: str, output: Output) -> None:
    """Explain a finding or an action: tests, limits, effects, sources, and how it is done."""
    lines = _explain(code)
    if output.format == "json":
        print_json(ExplainedCode(code=code, text=tuple(lines)))
    else:
        click.echo("\n".join(lines))


def _explain(code: str) -> list[str]:
    rule = next((rule for rule in RULES if rule.code == code), None)
    if rule is not None:
        return list(rule_lines(rule))
    if code in ACTIONS:
        return list(action_lines(ACTIONS[code]))
    known = [*(rule.code for rule in RULES), *ACTIONS]
    near = difflib.get_close_matches(code, known, 3) or known
    raise InputError(f"{code!r} is not a finding or action code; near it: {', '.join(near)}.")
