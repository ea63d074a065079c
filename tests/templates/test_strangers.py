"""Every field of a plan of a stranger, through every renderer: nothing of it comes alive."""

import ast
import csv
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from typing import Any
from unittest.mock import patch

import hcl2
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpucost.commands.planning.export import TOOLS, config_text, task_text
from gpucost.views.output import Output, Table, print_table
from planner.documents.task import TaskRequest
from planner.models.document import to_text
from planner.plan.plan import Plan
from planner.plan.read import read_plan
from pricing.errors import GpucostError
from pricing.tables import for_csv
from providers.redaction import RedactedStream
from templates.render import render_report
from templates.strangers import _CONTROL, _IN_MARKDOWN, for_markdown
from tests.conftest import ROOT
from tests.source_tree import PACKAGES, Module, modules
from tests.templates.documents import CASES, planned
from tests.templates.ways_out import PASS, Source, exported

EVIL = (
    "x <img src=http://e.example/a onerror=e()> ![i](http://e.example/b) [l](http://e.example/c) "
    "[r]: http://e.example/d\n# head\n\n<script>e()</script> @everyone #1 a/b#2 | ` "
    "![[n]](http://e.example/e) [[n]](http://e.example/f) _www.e.example "
    "a@e.example GH-1 _@everyone "
    "\x1b]0;owned\x07\x9b2J\x00 ${e} %{e} $(e) '\"\u2028evil: 1\x85evil: 2"
)

Path = tuple[Any, ...]  # of a text in a plan: keys and places

# Who fills templates, and what keeps strangers' text from coming alive there. A module that begins
# to do so must be named here, and walked below.
GATES = {
    "templates/page/whole_page.py": "autoescape",
    "templates/render.py": "for_markdown",
    "templates/task_files.py": "for_file",
    "templates/bootstrap_files.py": "names are reduced to plain letters",
    "templates/job_scripts.py": "shell",
}
# Who makes a text that leaves, and why what a stranger wrote in it is harmless there.
RENDERERS = {
    "walked here, or in test_strangers_documents": (
        "render_report render_change render_proof render_task render_fleet render_config "
        "plan_text task_text fleet_text config_text to_csv _as_markdown"
    ),
    "shell and cloud-init: plain letters and quoted values; tests/bootstrap, tests/gpucost/jobs": (
        "render_bootstrap render_files data_script data_sent_script environment_script "
        "gpucost_script job_script prepare_script sent_script task_script"
    ),
    "a terminal, whose stream takes commands out; a pipe gets what was written": (
        "_lines _cells _verdict _summary _explain log text broken_into_lines one_line join _ "
        "redact decode read steps_to_come"
    ),
    "texts of gpucost itself, and what the user typed": (
        "_bundled ender_manifest recording_rules settings_text"
    ),
    "JSON, which only gpucost reads again; what it keeps of its own": (
        "_files _step_lines dump outcome_line new_run this_owner _pieces _all_lines _items _write "
        "_run _answer"
    ),
    "no text of a file: a name, a choice, an address, what a provider answers about itself": (
        "kind_of_file select launch_of make_role catalog_address pull_catalog unknown_runs events "
        "_reason fault_of"
    ),
}
# Sentences and words, which screens and templates are filled with, and the gates.
WORDS = ("templates.report_text", "templates.language", "templates.reports", "templates.markdown")


def test_no_renderer_is_missing_from_the_list() -> None:
    """Who uses jinja2, whose text leaves, and who makes one in `templates` for others."""
    product = modules(*PACKAGES)
    environments = {
        module.name
        for module in product
        for call in module.nodes(ast.Call)
        if ast.unparse(call.func).endswith(("Environment", "templates_in", "Template"))
    }
    assert environments == {*GATES, "templates/__init__.py"}
    for name, gate in GATES.items():
        assert gate in (ROOT / name).read_text(encoding="utf-8")
    told = [name for names in RENDERERS.values() for name in names.split()]
    assert len(told) == len(set(told))
    made = {*Source(product).renderers()} | exported(
        [module for module in product if not module.imported_as.startswith(WORDS)], "templates"
    )
    assert made - {"for_markdown", "printable"} == set(told)
    passing = {
        node.name
        for module in product
        for node in module.nodes(ast.FunctionDef)
        if node.name in PASS and re.search(r"\b(printable|for_csv)\b", ast.unparse(node))
    }
    assert passing == PASS


HIDDEN = """
def banana(plan: Plan) -> str:
    return f"<b>{plan.name}</b>"
def cherry(plan: Plan) -> Iterator[str]:
    yield f"| {plan.name} |"
def handed(target: str, text: str) -> None:
    write_file(target, text)
def write_file(path: str, text: str) -> None:
    Path(path).write_text(text)
"""
SHOP = "def sold(path: str, text: str) -> None:\n    Path(path).write_text(text)\n"


@pytest.mark.parametrize(
    "leaves",
    [
        "click.echo(banana(plan), nl=False)",
        "print(f'{banana(plan)}!')",
        "Path(target).write_text(banana(plan))",
        "handed(target, banana(plan))",
        "handed(text=banana(plan), target=target)",
        "fruit.sold(target, banana(plan))",
        "words = banana(plan)\n    handed(target, words.strip())",
        "words = []\n    words.append(banana(plan))\n    sys.stdout.write(''.join(words))",
        "for line in banana(plan).split('|'):\n        click.echo(line)",
        "pool.request('POST', url, json={'text': banana(plan)})",
        "with open(target) as stream:\n        stream.writelines(banana(plan))",
    ],
)
def test_a_renderer_of_any_name_is_found(leaves: str) -> None:
    """It is known by where its text goes; behind a gate it is none, and what is kept is none."""
    gated = leaves.replace("banana(plan)", "for_markdown(banana(plan))")
    expected = ((leaves, {"banana": {"mine.views.command"}}), (gated, {}), ("cherry(plan)", {}))
    for line, found in expected:
        text = f"from shop import fruit\n{HIDDEN}def command(plan):\n    {line}\n"
        modules = (_module(text), _module(SHOP, "shop/fruit.py"))
        assert Source(modules).renderers() == found


def test_a_renderer_that_others_import_is_found() -> None:
    """One by one, or with its module."""
    own = _module(HIDDEN, "templates/fruit.py")
    for line in ("from templates.fruit import banana", "from templates import fruit"):
        found = exported([own, _module(line)], "templates")
        assert found - {"cherry"} == {"banana"}


def _module(text: str, name: str = "mine/views.py") -> Module:
    return Module(name=name, text=text, tree=ast.parse(text))


@pytest.fixture(scope="module")
def plans() -> dict[str, str]:
    """The plans of two cases, as plan.json, short of options that have no field of their own."""
    return {name: _short(to_text(planned(*CASES[name]))) for name in ("visual-search", "fleet")}


def _short(text: str) -> str:
    """Return a plan with few options, so that it is read fast; every field of it is still there."""
    document = json.loads(text)
    for job in document["jobs"]:
        job["rejected"] = job["rejected"][:2]
        options = job.pop("options")
        first = {option["id"] for option in options[:2]}
        named = [o for o in options if o["id"] in first or f'"{o["id"]}"' in json.dumps(job)]
        job["options"] = named
    short = json.dumps(document)
    assert _names_of(short) == _names_of(text)
    return short


def _names_of(text: str) -> set[str]:
    return {_name(path) for path in _leaves(json.loads(text))}


def _name(path: Path) -> str:
    return ".".join("*" if isinstance(part, int) else part for part in path)


def _leaves(value: Any, path: Path = (), kinds: type = str) -> Iterator[Path]:
    """Yield the path of every text; of the items of a list the first stands for all."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key), kinds)
    elif isinstance(value, list):
        for n, inner in enumerate(value[:2]):
            yield from _leaves(inner, (*path, n), kinds)
    elif isinstance(value, kinds):
        yield path


@cache
def _fields(text: str) -> dict[str, Path]:
    """Return a path to each field that may hold any text: else it is a code, a date, money."""
    leaves = [*_leaves(json.loads(text))]
    fields: dict[str, Path] = {}
    # Whether a text is read is asked here, not why it is refused, which takes ten times as long.
    with patch("planner.plan.read.find_problems", return_value=["cannot be"]):
        for order in (leaves, leaves[::-1]):  # an id can be any text only where nothing names it
            places = {_name(path): path for path in order}
            fields |= _read_together(text, [(n, p) for n, p in places.items() if n not in fields])
    return fields


def _read_together(text: str, fields: list[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Return those of the fields that are read with another text, by halving what is refused."""
    if _evil(text, [path for _, path in fields]) is not None:
        return fields
    half = len(fields) // 2
    parts = (fields[:half], fields[half:]) if half else ()
    return [field for part in parts for field in _read_together(text, part)]


def _evil_plans(text: str, together: int = 1) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with its texts replaced, so many at once, as far as they are read at all."""
    fields = _fields(text)
    names = list(fields)
    for at in range(0, len(names), together):
        batch = names[at : at + together]
        plan = _evil(text, [fields[name] for name in batch])
        if plan is not None:
            yield " ".join(batch), plan


def _evil(text: str, paths: list[Path]) -> Plan | None:
    document = msgspec.json.decode(text)
    for path in paths:
        _put(document, path, EVIL)
    try:
        return read_plan(msgspec.json.encode(document), "plan.json")
    except GpucostError:
        return None


def _put(document: Any, path: Path, text: str) -> None:
    for part in path[:-1]:
        document = document[part]
    document[path[-1]] = text


class _Tags(HTMLParser):
    """What of a page would act: its elements with attributes, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.evil: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that came from the payload."""
        values = " ".join(value or "" for name, value in attrs if name in ("href", "src"))
        if "e.example" in values or any(name == "onerror" for name, _ in attrs):
            self.evil.append(f"{tag} {attrs}")


def alive_in_markdown(text: str) -> Iterator[str]:
    """Yield what a Markdown reader, and GitHub after it, would make of the payload."""
    markdown = pytest.importorskip("markdown_it", reason="no Markdown reader is installed")
    reader = markdown.MarkdownIt("gfm-like", {"linkify": False, "html": True})
    yield from _alive_in_html(reader.render(text))
    github = pytest.importorskip("cmarkgfm", reason="GitHub's own Markdown reader is not installed")
    unsafe = github.cmark.Options.CMARK_OPT_UNSAFE
    yield from _alive_in_html(github.github_flavored_markdown_to_html(text, unsafe))
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]", text):
        yield "a control character"


def _alive_in_html(html: str) -> Iterator[str]:
    yield from _Tags(html).evil
    if re.search(r"<(script|img|h\d>head)", html):
        yield "an element of its own"
    shown = re.sub(r"<code>.*?</code>|<[^>]*>", "", html, flags=re.DOTALL)
    if re.search(r"@everyone", shown):
        yield "a mention"
    if re.search(r"(?<![\w&])#[12]\b|a/b#2|GH-1", shown):
        yield "a reference to an issue"


@given(st.lists(st.sampled_from([*"@#<[]():/ aB1-.\n", "\u202e", "gh", "WWW", "ftp", "HTTPS"])))
def test_the_quick_look_misses_nothing(pieces: list[str]) -> None:
    """A text that is passed on unread is one that no pattern would change."""
    text = "".join(pieces)
    looked_at = _CONTROL.sub(" ", text)
    for pattern, replacement in _IN_MARKDOWN:
        looked_at = pattern.sub(replacement, looked_at)
    assert for_markdown(text) == looked_at


@pytest.mark.parametrize("case", ["visual-search", "fleet"])
@pytest.mark.parametrize("style", ["md", "github-comment", "html"])
def test_no_field_comes_alive_in_a_report(plans: dict[str, str], case: str, style: str) -> None:
    """Raw HTML, images, links, mentions, references, headings, control characters: none."""
    fields, alive = 0, []
    for name, plan in _evil_plans(plans[case], together=60):
        text = render_report(plan, style=style)
        fields += len(name.split())
        found = _Tags(text).evil if style == "html" else alive_in_markdown(text)
        alive += [f"{name}: {one}" for one in found]
    assert alive == []
    assert fields > 50


@pytest.mark.parametrize("tool", TOOLS)
def test_no_field_comes_alive_in_a_file_of_a_tool(plans: dict[str, str], tool: str) -> None:
    """Two readers of YAML, and one of HCL, see the same keys as of the plan as it was."""
    request = TaskRequest(command="python train.py", ttl_s=28_800, image="python:3.12")
    plan = read_plan(plans["visual-search"].encode(), "plan.json")
    for option in plan.jobs[0].options:
        try:
            good = _keys(
                tool, task_text(tool, plan, (f"{plan.jobs[0].name}/{option.id}",), request, ())[1]
            )
        except GpucostError:
            continue
        break
    else:
        pytest.skip("the tool starts no option of it")
    written = 0
    for name, evil in _evil_plans(plans["visual-search"], together=12):
        job = evil.jobs[0]
        for choice in job.options[:3]:
            try:
                text = task_text(tool, evil, (f"{job.name}/{choice.id}",), request, ())[1]
            except (GpucostError, ValueError):  # a kind of job that there is not
                continue
            written += 1
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text), name
            keys = _keys(tool, text)
            assert "evil" not in keys, name
            if choice.id == option.id and "machine" not in name:
                assert keys == good, name
    assert written > 10


@pytest.mark.parametrize("framework", ["pytorch", "keras", "accelerate", "transformers"])
def test_no_setting_of_a_stranger_is_code(plans: dict[str, str], framework: str) -> None:
    """Settings, numbers too, with code in their place: constants, and names of torch, are left."""
    attack = "torch.x if __import__('os').system('e') else 0"
    document = json.loads(plans["visual-search"])
    places = [path for path in _leaves(document, kinds=object) if "settings" in path]
    for path in places:
        _put(document, path, attack)
    assert len(places) > 5
    document["jobs"][0]["options"][0]["actions"].append("dataloader-workers")
    plan = read_plan(json.dumps(document).encode(), "plan.json")
    names = (f"{plan.jobs[0].name}/{plan.jobs[0].options[0].id}",)
    _, written = config_text(framework, plan, names, ("mixed-precision",))
    if framework in ("pytorch", "keras"):
        calls = [node for node in ast.walk(ast.parse(written)) if isinstance(node, ast.Call)]
        assert calls == []
    else:
        yaml.safe_load(written)
    assert "system" in written


def _keys(tool: str, text: str) -> set[str]:
    if tool == "terraform":
        return set(_names(hcl2.loads(text)))
    documents = list(yaml.safe_load_all(text))
    ruamel = pytest.importorskip("ruamel.yaml", reason="no second reader of YAML is installed")
    others = list(ruamel.YAML(typ="safe").load_all(text))
    assert json.dumps(documents, default=str) == json.dumps(others, default=str)
    return set(_names(documents))


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


class _Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_a_terminal_obeys_no_stranger() -> None:
    """Pyte draws what passes the stream: no title, no answer, no clipboard; colours stay."""
    pyte = pytest.importorskip("pyte")
    terminal = _Terminal()
    attacks = "\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x1b[6n\x1b[c\x1bP$q\x1b\\\x9b2J\x1bc\x1b[3J"
    stream = RedactedStream(terminal)
    stream.write(f"\x1b[32mgreen\x1b[0m {attacks} end\r\n")
    stream.write("\x1b")  # a sequence that two parts of a log hold
    stream.write("]0;owned\x07 late\r\n")
    screen = pyte.Screen(200, 5)
    answers: list[str] = []
    screen.write_process_input = answers.append
    pyte.Stream(screen).feed(terminal.getvalue())
    assert screen.title == ""
    assert answers == []
    assert screen.display[0].startswith("green ")
    assert " end" in screen.display[0]
    assert screen.buffer[0][0].fg == "green"
    assert " late" in screen.display[1]


def test_a_pipe_gets_what_was_written() -> None:
    """A log that is stored stays as it is; only secrets are hidden."""
    pipe = io.StringIO()
    RedactedStream(pipe).write("\x1b]0;t\x07")
    assert pipe.getvalue() == "\x1b]0;t\x07"


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "=-"])
def test_a_cell_is_no_formula(cell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a spreadsheet would work out begins with a quote."""
    table = Table(columns=("a",), rows=((cell,),))
    print_table(table, Output(format="csv"))
    (row,) = list(csv.reader(io.StringIO(capsys.readouterr().out)))[1:]
    assert row[0].lstrip()[:1] not in "=+-@" or row[0].lstrip() == ""


@pytest.mark.parametrize("cell", ["-12.50", "+3", "-$4.20", "12 %", "-", "-1e-05", "a=b"])
def test_a_number_stays_one(cell: str) -> None:
    """Programs read it as before."""
    assert for_csv(cell) == cell
