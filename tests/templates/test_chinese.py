"""Reports in Chinese: a sentence for each that a report says, a cause, an action, a reason."""

import ast
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest
from jinja2 import nodes

from planner.actions import ACTIONS
from planner.choice.requirements import Reason
from planner.diagnosis.rules import RULES
from planner.documents.plan_change import plan_change
from planner.models.document import to_text
from planner.plan.plan import Plan
from planner.plan.read import read_plan
from planner.signals.signals import SIGNALS
from templates.language.translate import (
    ExchangeRate,
    _,
    page_words,
    sentences,
    showing,
    translate_text,
    use_language,
    word_lists,
)
from templates.render import environment, render_change, render_report
from tests.source_tree import modules
from tests.templates.documents import CASES, planned

ROOT = Path(__file__).parents[2]
STYLES = ("md", "html", "github-comment")
# Two words of English side by side, as no code, name or unit is written.
_ENGLISH = re.compile(r"(?<![\w/.=(-])[A-Za-z][a-z']+,? [a-z][a-z']+ [a-z][a-z']+")
# What is not ours to translate: a user's notes in a profile, the name of a source, a command.
_USERS = re.compile(
    r"^(- |<li>)[\w-]+(?:: |：)(Source|Assumed|Declared|Measured|no timestamps)[^\n]*", re.MULTILINE
)
# Kept in a name before it is said.
_SAID_OF_A_NAME = {
    "a month",
    "{n} min",
    "{n} s",
    "a run",
}
_SOURCES = re.compile(
    r"`[^`]*`|gpucost (?:(?:export|provision|recipe|run|verify) [\w.-]+|explain [a-z-]+)|"
    r"美元/小时[^\n]*|请核对[^\n]*|秒为单位计费（[^\n]*|依据原文：[^）]*）|<!--.*?-->",
    re.DOTALL,
)


def _said_in_python() -> Iterator[str]:
    for module in modules("templates", "gpucost"):
        for node in module.nodes(ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "_":
                yield from _texts(node.args[0])


def _texts(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _said_in_templates() -> Iterator[str]:
    for folder in ("reports", "page"):
        for path in sorted((ROOT / "templates" / folder).glob("*.j2")):
            parsed = environment().parse(path.read_text())
            for call in parsed.find_all(nodes.Call):
                if isinstance(call.node, nodes.Name) and call.node.name == "_":
                    first = call.args[0]
                    assert isinstance(first, nodes.Const), f"{path.name}: {call.lineno}"
                    yield first.value


def _fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def test_every_sentence_has_a_chinese_one() -> None:
    """No sentence of a report is without Chinese, none in the table is said by nobody."""
    known = sentences("zh")
    said = {*_said_in_python(), *_said_in_templates()}
    assert sorted(said - set(known)) == []
    assert sorted(set(known) - said - _SAID_OF_A_NAME) == []
    for english, chinese in known.items():
        assert _fields(chinese) <= _fields(english), english
        assert chinese.strip() or not english.strip(), english


def test_every_sentence_of_the_page_has_a_chinese_one() -> None:
    """The page's script says nothing that its table lacks."""
    script = (ROOT / "templates/page/page.js").read_text()
    said = re.findall(r'say\(\s*"([^"]*)"', script)
    known = page_words("zh")
    assert len(said) >= 10
    assert sorted(set(said) - set(known)) == []
    assert sorted(set(known) - set(said)) == []


def test_every_cause_action_reason_and_reading_has_chinese_words() -> None:
    """A cause, an action, a reason or a reading cannot be added without its Chinese."""
    with use_language("zh"):
        prose = [case.cause for rule in RULES for case in rule.cases]
        prose += [action.title for action in ACTIONS.values()]
        assert [one for one in prose if translate_text(one) == one] == []
    assert set(get_args(Reason)) == set(word_lists("zh")["reason"])
    unnamed = {"precision": "精度"}
    known = {**word_lists("zh")["reading"], **unnamed}
    assert sorted({signal.name for signal in SIGNALS.values()} - set(known)) == []


def _render(plan: Plan, style: str, lang: str = "zh") -> str:
    return render_report(plan, style=style, lang=lang)


@pytest.mark.parametrize("style", ["md", "github-comment"])
@pytest.mark.parametrize("case", sorted(CASES))
def test_a_chinese_report_holds_no_english_sentence(case: str, style: str) -> None:
    """Three English words in a row stand only in a user's own notes, a source or a command."""
    report = _SOURCES.sub("", _USERS.sub("", _render(planned(*CASES[case]), style)))
    assert _ENGLISH.findall(report) == []
    assert not re.search(r"[\u4e00-\u9fff][,;:!?](?!\d)", report)


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_saved_plan_is_said_as_the_plan_was(case: str) -> None:
    """plan.json holds what its sentences were made of: read back it gives the same Chinese."""
    plan = planned(*CASES[case])
    saved = read_plan(to_text(plan), "plan.json")
    assert saved.jobs[0].messages
    for style in STYLES:
        assert _render(saved, style) == _render(plan, style)


def test_figures_codes_and_commands_are_those_of_the_english_report() -> None:
    """The same dollars, ids, codes and machines stand in both languages."""
    plan = planned(*CASES["visual-search"])
    for pattern in (r"\$[\d,.]+", r"`[a-z-]+`", r"\bo\d+\b", r"aws/[\w.]+", r"\d+(?=(?:-\d+)? ?%)"):
        english, chinese = (
            set(re.findall(pattern, _render(plan, "md", lang))) for lang in ("en", "zh")
        )
        assert english == chinese, pattern


def test_what_changed_is_said_in_chinese() -> None:
    """A comment on two plans has its causes, findings and jobs in Chinese."""
    plan = planned(*CASES["visual-search"])
    comment = render_change(plan_change(plan, planned(*CASES["leave-it"])), lang="zh")
    assert "更换机器" in comment
    assert _ENGLISH.findall(_SOURCES.sub("", comment)) == []


def test_a_users_own_sentence_stays_as_it_is() -> None:
    """What no message is, a note in a profile, is said as it was written."""
    with use_language("zh"):
        for own in ("mine: bought by hand, with a voucher. It ends in May.", ""):
            assert translate_text(own) == own


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("style", STYLES)
def test_another_currency_stands_beside_dollars(style: str, lang: str) -> None:
    """Dollars stay, the other currency stands beside them, and the rate's day is said."""
    rate = ExchangeRate(currency="CNY", per_usd=Decimal("7.1"), day=date(2026, 11, 20))
    plan = planned(*CASES["visual-search"])
    with showing(rate):
        report = _render(plan, style, lang)
    today = plan.jobs[0].baseline.cost.total
    assert today is not None
    assert f"${today:,.0f}" in report
    assert f"CNY {today * rate.per_usd:,.0f}" in report
    assert "7.1" in report
    assert "2026-11-20" in report
    assert "CNY" not in _render(plan, style, lang)


def test_the_language_ends_with_what_it_was_asked_for() -> None:
    """Outside of the block English is spoken again, also after an error."""
    with use_language("zh"):
        assert _("keep as is") == "保持现状"
        with pytest.raises(KeyError), use_language("en"):
            _("You pay {known}{usd} {period}.", known="")
        assert _("keep as is") == "保持现状"
    assert _("keep as is") == "keep as is"
