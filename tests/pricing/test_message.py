"""Messages: every code in both languages, with the same parameters, used, as Babel reads it."""

import ast
import pickle
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from pricing.message import Message, SavedMessage, catalog, join, restore, save
from tests.source_tree import PACKAGES, modules

ROOT = Path(__file__).parents[2]
CATALOGS = ROOT / "pricing/data/messages"
# Asked for by `pricing.message` itself.
ENDED = str(Message("read.job-ended", last=7.5, minutes=40.0))
_OWN = re.compile(r"(list|separator)\.")


def _params(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def _code_patterns() -> Iterator[str]:
    """Every text of the product as a pattern; the fields of an f-string stand for any word."""
    for module in modules(*PACKAGES):
        for node in module.everything:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.escape(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (
                    re.escape(part.value) if isinstance(part, ast.Constant) else r"[\w-]+"
                    for part in node.values
                    if not isinstance(part, ast.Constant) or isinstance(part.value, str)
                )
                yield "".join(parts)


def test_both_languages_say_every_code_with_the_same_parameters() -> None:
    """A code that one catalog lacks, or a parameter that one language leaves out, is named."""
    english, chinese = catalog("en"), catalog("zh")
    assert sorted(english.keys() ^ chinese.keys()) == []
    assert [c for c in english if _params(english[c]) != _params(chinese[c])] == []
    same = [code for code in chinese if chinese[code] == english[code]]
    assert [c for c in same if re.search(r"[a-z]{2}", re.sub(r"\{.*?\}", "", english[c]))] == []


def test_every_template_is_used() -> None:
    """A code stands in the program as it is, or as an f-string that makes it."""
    made = {pattern for pattern in _code_patterns() if "." in pattern}
    exact = {pattern.replace("\\", "") for pattern in made}
    patterns = [re.compile(pattern) for pattern in made if "[" in pattern]
    unused = [
        code
        for code in catalog("en")
        if code not in exact
        and not _OWN.match(code)
        and not any(pattern.fullmatch(code) for pattern in patterns)
    ]
    assert unused == []


@pytest.mark.parametrize("path", sorted(CATALOGS.glob("*/*.po")), ids=str)
def test_translators_tools_read_the_same_catalog(path: Path) -> None:
    """Babel, which did not write them, finds the same codes and templates, each once."""
    pofile = pytest.importorskip("babel.messages.pofile", reason="babel is not installed")
    with path.open("rb") as file:
        entries = [(m.id, m.string) for m in pofile.read_po(file, abort_invalid=True) if m.id]
    ours = catalog(path.parent.name)
    assert len(entries) == path.read_text(encoding="utf-8").count("\nmsgid ")
    assert {code: ours[code] for code, _ in entries} == dict(entries)
    assert {code.partition(".")[0] for code, _ in entries} <= {path.stem, "list", "separator"}


def test_a_message_is_its_english_sentence_and_can_be_said_again() -> None:
    """Numbers keep their format, lists the separator of the language, parts their own words."""
    message = Message(
        "speed.weak", why=Message("speed.host-cores", busy=7.25, cores=Decimal("4.0"))
    )
    assert message == "weak: the host keeps 7.2 cores busy and has 4.0"
    assert message.translate_to("zh") == "依据薄弱：作业用到主机 7.2 个核，那里有 4.0 个"
    both = join(["a", "", Message("sharing.alone")])
    assert isinstance(both, Message)
    assert both.translate_to("zh") == "a；独占 GPU"
    assert join(["a"]) == "a"
    assert join([]) == ""


def test_a_message_survives_a_process_and_a_catalog_of_another_version() -> None:
    """What cannot be said in a language stays in English."""
    message = pickle.loads(pickle.dumps(Message("speed.weak", why="x")))  # noqa: S301 - our own
    assert (message.code, message.params) == ("speed.weak", {"why": "x"})
    assert Message.saved("Of 2030.", "speed.unheard-of", {}).translate_to("zh") == "Of 2030."
    assert Message.saved("Of 2020.", "speed.weak", {"reason": "x"}).translate_to("zh") == "Of 2020."
    with pytest.raises(KeyError):
        Message("speed.weak", reason="x")


def test_a_saved_sentence_is_the_message_again_that_it_was() -> None:
    """A saved profile holds sentences: what hangs on a code, and Chinese, must find it there."""
    ended = Message("read.job-ended", last=7.5, minutes=40.0)
    about = Message("note.about", job="a.log", note=Message("read.no-seconds", rows=12.0))
    table = save([ended, about])
    for message in (ended, about, about.params["note"]):
        again = restore(str(message), table)
        assert isinstance(again, Message)
        assert isinstance(message, Message)
        assert (again, again.code) == (message, message.code)
        assert again.translate_to("zh") == message.translate_to("zh")
    assert not isinstance(restore("a note of one's own: 8 GPUs", table), Message)


@pytest.mark.parametrize(
    ("code", "params"),
    [
        ("read.job-ended", {"last": 7.5, "minutes": 41.0}),  # makes another sentence
        ("read.job-ended", {"last": "soon", "minutes": 40.0}),
        ("read.job-ended", {"last": 7.5}),
        ("read.unheard-of", {}),
        ("note.about", {"job": "a", "note": ENDED}),  # a part of itself
    ],
)
def test_a_sentence_takes_no_code_that_does_not_make_it(code: str, params: dict[str, Any]) -> None:
    """A stranger, or another version, may give a sentence the code of another."""
    table = {ENDED: SavedMessage(code=code, params=params)}
    assert not isinstance(restore(ENDED, table), Message)
