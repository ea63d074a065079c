"""`gpucost explain`: what a finding or an action code means; also for the reference."""

import difflib
import re
from collections.abc import Iterator

import click

from gpucost.schemas.small_documents import ExplainedCode
from gpucost.views.output import Output, language_option, output_options, print_if_json
from planner.actions import ACTIONS, Action
from planner.actions.effects import EFFECTS
from planner.diagnosis.rules import RULES, Rule
from planner.signals.condition import Test
from planner.signals.signals import SIGNALS
from pricing.errors import InputError
from templates.language.translate import _, join, translate_text, word

_SETTING = re.compile(r"\{\w+\}")
_OF = {
    "loading": "loading and preparing input",
    "copying": "copying input to the GPU",
    "launching": "code on the host: launches, waiting, serial Python",
    "checkpointing": "writing checkpoints",
    "arithmetic": "the GPU's own kernels",
    "exchange": "exchange between GPUs",
}
_GRADES = {
    "measured": "measured on published data that we evaluated",
    "published": "published by others",
    "computed": "computed from the profile",
    "estimate": "our estimate, in part at least",
    "unknown": "not known, so nothing counts on it",
}


def test_words(test: Test) -> str:
    """Return a test with the name of its reading: `GPU busy < 0.5`."""
    alternative = _(", or not measured") if test.or_unknown else ""
    return f"{word('reading', SIGNALS[test.signal].name)} {test.words}{alternative}"


def rule_lines(rule: Rule) -> Iterator[str]:
    """Yield a finding: its cases with tests and waste, what speaks against it, what helps."""
    yield from (_("{code} (finding)", code=rule.code), rule.meaning, "")
    for case in rule.cases:
        sure, cause = word("confidence", case.confidence), translate_text(case.cause)
        yield _("{what}: {text}", what=sure, text=cause)
        for test in case.tests:
            yield f"  {test_words(test)} [{test.signal}]"
        if case.waste:
            yield _labelled(_("  wastes"), case.waste.words)
        if case.actions is not None:
            yield _labelled(_("  do"), join(case.actions))
    if rule.against:
        yield ""
        yield _labelled(_("Speaks against it"), _("; ").join(map(test_words, rule.against)))
    yield ""
    yield _labelled(_("Do"), join(rule.actions) or _("nothing to change"))
    yield _labelled(_("Source"), rule.source)


def _labelled(label: str, text: str) -> str:
    return _("{what}: {text}", what=label, text=text)


def action_lines(action: Action) -> Iterator[str]:
    """Yield an action: what it gains and costs, when it applies, how it is done."""
    kind = word("kind of action", action.kind)
    yield _("{code} (action, {kind})", code=action.code, kind=kind)
    yield from (translate_text(action.title), "")
    for label, text in action_facts(action):
        yield _labelled(word("fact", label), text)
    yield from ("", _("How"))
    for label, text in how_lines(action.code):
        yield _labelled(f"  {word('fact', label)}", text)


def action_facts(action: Action) -> Iterator[tuple[str, str]]:
    """Yield what is known of an action, as label and text."""
    yield ("Gains", _gain(action))
    grade = _GRADES.get(action.grade)
    yield ("Rests on", f"{grade}. {_sentence(action.source)}" if grade else f"{action.source}.")
    if action.memory:
        yield (
            "GPU memory",
            f"x{action.memory[0]:g} to x{action.memory[2]:g}, typically x{action.memory[1]:g}",
        )
    if action.effort_hours:
        yield ("Effort", f"about {action.effort_hours:g} h (our estimate)")
    if action.when:
        yield ("Applies where", "; ".join(test_words(test) for test in action.when))
    if action.excludes:
        yield ("Not together with", ", ".join(action.excludes))
    if action.remark:
        yield ("Watch", _sentence(action.remark))


def how_lines(code: str) -> Iterator[tuple[str, str]]:
    """Yield how an action is applied, as label and text."""
    how = ACTIONS[code]
    for name, value in how.environment.items():
        yield ("environment", f"{name}={_SETTING.sub('N', value)}")
    for name, value in how.launcher.items():
        yield ("launcher", f"{name}: {value}")
    yield from how.lines.items()
    for name, way in how.programs.items():
        yield (name, f"{way.line} ({way.source})")
    if how.words:
        yield ("also" if how.lines else "do", how.words)


def _gain(action: Action) -> str:
    if action.grade == "planned":
        return "what the plan shows for each offer"
    if action.mechanism is None:
        return "not known" if action.grade == "unknown" else "the time that was idle"
    if action.effect is None:
        return f"{_OF[action.mechanism]}, as the profile allows; without the readings nothing"
    low, mid, high = action.effect
    gain = f"{_OF[action.mechanism]} x{low:g} to x{high:g}, typically x{mid:g}"
    return f"{gain}; narrower where the profile says more" if action.code in EFFECTS else gain


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


@click.command(name="explain", epilog="Example: gpucost explain data-loading")
@click.argument("code")
@output_options
@language_option
def command(code: str, output: Output) -> None:
    """Explain a finding or an action: tests, limits, effects, sources, and how it is done."""
    lines = _explain(code)
    if not print_if_json(ExplainedCode(code=code, text=tuple(lines)), output):
        click.echo("\n".join(lines))


def _explain(code: str) -> list[str]:
    rule = next((rule for rule in RULES if rule.code == code), None)
    if rule is not None:
        return list(rule_lines(rule))
    if code in ACTIONS:
        return list(action_lines(ACTIONS[code]))
    codes = [*(rule.code for rule in RULES), *ACTIONS]
    near = difflib.get_close_matches(code, codes, 3)
    hint = f"did you mean {', '.join(near)}?" if near else "`gpucost plan -v` prints the codes."
    raise InputError(f"{code!r} is not a finding or action code; {hint}")
