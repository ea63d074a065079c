"""The documentation is true: it is current, its links lead somewhere, its commands run."""

import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import gpucost
import planner
import pricing
import providers
from gpucost.cli import COMMANDS, INTERRUPTED
from gpucost.cost_gate import FAILED_OVER
from gpucost.profiling.measurement import AROUND_CHILD
from gpucost.schemas.documents import DOCUMENTS
from gpucost.version import __version__
from planner.actions import ACTIONS
from planner.diagnosis.rules import RULES
from pricing.errors import GpucostError
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.conftest import ROOT
from tests.console_blocks import as_shown, commands, masked, run, saved_files, shows

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("examples/*.md")])
WRITTEN = (
    "actions.md",
    "cli.md",
    "findings.md",
    "formats.md",
    "options.md",
    "prices.md",
    "profile.md",
    "schemas.md",
    *(f"schemas/{name}.schema.json" for name in DOCUMENTS),
)
CAPTURES = ROOT / "tests" / "fixtures" / "telemetry"

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "generate_reference.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("docs/generate_reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(DOCS))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS))
    return module


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """What the generator would write now, by name."""
    pages: dict[str, str] = _generator().pages()
    return pages


def test_every_generated_page_is_kept(generated: dict[str, str]) -> None:
    """The generator writes the pages that the next test compares."""
    assert sorted(generated) == sorted(WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_generated_reference_is_current(name: str, generated: dict[str, str]) -> None:
    """A generated page is what `python docs/generate_reference.py` writes now."""
    kept = (REFERENCE / name).read_text(encoding="utf-8")
    assert kept == generated[name], "run: python docs/generate_reference.py"


def test_every_command_is_documented() -> None:
    """Each command has a section of its own."""
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^## gpucost (\S+)$", page, re.MULTILINE) == list(COMMANDS)


def test_every_code_is_documented() -> None:
    """Each finding and each action has a section."""
    for name, codes in (("findings.md", [r.code for r in RULES]), ("actions.md", list(ACTIONS))):
        page = (REFERENCE / name).read_text(encoding="utf-8")
        assert re.findall(r"^### (\S+)$", page, re.MULTILINE) == codes


def test_every_aim_has_codes() -> None:
    """Each aim names findings and actions that exist; each action of running a job serves one."""
    page = (REFERENCE / "actions.md").read_text(encoding="utf-8")
    aims = page.partition("## By aim")[2].partition("## Overview")[0]
    rows = [line.split(" | ") for line in aims.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for _, findings, actions in rows:
        assert set(re.findall(r"`([^`]+)`", findings)) <= {rule.code for rule in RULES}
        assert set(re.findall(r"`([^`]+)`", actions)) <= set(ACTIONS)
    of_buying = {"end-job", "idle-shutdown", "reduce-egress"}
    assert {code for code in ACTIONS if f"`{code}`" not in aims} == of_buying


def _exit_codes(cls: type[GpucostError]) -> Iterator[int]:
    yield cls.exit_code
    for child in cls.__subclasses__():
        yield from _exit_codes(child)


def test_every_exit_code_is_documented() -> None:
    """Each code that a command can end with has a row."""
    for package in (
        gpucost,
        planner,
        pricing,
        providers,
    ):  # a subclass counts once its module is loaded
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] != "__main__":
                importlib.import_module(module.name)
    page = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    codes = {0, FAILED_OVER, INTERRUPTED, AROUND_CHILD, *_exit_codes(GpucostError)}
    assert {2, 3} < codes
    assert [code for code in codes if f"| {code} |" not in page] == []


@pytest.mark.parametrize(
    ("capture", "section"),
    [
        ("dmon.txt", "## nvidia-smi dmon"),
        ("dmon_dated.txt", "## nvidia-smi dmon"),
        ("wandb_events.jsonl", "## W&B system metrics"),
    ],
)
def test_documented_columns_are_what_the_reader_fills(capture: str, section: str) -> None:
    """Each column that a reader takes from the capture stands on the page with its slot."""
    page = (REFERENCE / "formats.md").read_text(encoding="utf-8")
    told = page.partition(section)[2].partition("\n## ")[0]
    (profile,) = read_telemetry([str(CAPTURES / capture)], Hints())
    columns = [column for one in profile.provenance.sources for column in one.columns]
    filled = [(re.sub(r"\.\d+\.", ".N.", c.source), c.slot) for c in columns if c.slot]
    assert filled
    assert [row for row in filled if not _has_row(told, *row)] == []


def _has_row(page: str, source: str, slot: str) -> bool:
    plain = source.replace("gpu.process.", "gpu.")
    return f"| `{plain}` | `{slot}` |" in page or slot.startswith("host.")


def _anchors(page: Path) -> set[str]:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken(page: Path) -> Iterator[str]:
    for link in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = target.is_relative_to(ROOT) and target.exists()
        if not inside or (anchor and anchor not in _anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file of the repository, and a heading in it."""
    assert list(_broken(page)) == []


@pytest.mark.parametrize("folder", ["docs", "docs/adr"])
def test_an_index_names_every_page(folder: str) -> None:
    """The index of a folder links to each page below it."""
    index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    pages = (path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*.md"))
    wanted = [str(p) for p in pages if p.name != "README.md" and (p.parts[0] != "adr")]
    assert [name for name in wanted if f"({name})" not in index] == []


def test_the_changelog_knows_this_version() -> None:
    """What this version brings is told."""
    assert f"\n## {__version__} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


EXAMPLES = "gpucost examples examples"
RUN = [page for page in PAGES if [*commands(page.read_text(encoding="utf-8"))]]


def test_the_first_pages_show_commands() -> None:
    """README and tutorial show commands, so that the next test has something to run."""
    assert {"README.md", "docs/tutorial.md"} <= {_name(page) for page in RUN}


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_documented_commands_print_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The commands of a page run in order in one folder; amounts, dates and ages may differ."""
    text = page.read_text(encoding="utf-8")
    if any("examples/" in command.line for command in commands(text)):
        assert EXAMPLES in text, "a reader without the repository needs that command first"
        assert run(EXAMPLES, tmp_path).returncode == 0
    for name, content in saved_files(text):
        (tmp_path / name).write_text(content, encoding="utf-8")
    wrong, current = [], text
    for command in commands(text):
        ran = run(command.line, tmp_path)
        assert ran.returncode == 0, f"{command.line}\n{ran.stdout}"
        if command.shown and not shows(command.shown, ran.stdout):
            wrong.append(f"$ {command.line}\n{ran.stdout}")
        if command.shown:
            lines = "".join(f"{line}\n" for line in as_shown(command.shown, ran.stdout))
            place = command.start + len(current) - len(text)
            current = current[:place] + lines + current[command.end - command.start + place :]
    if request.config.getoption("--update-golden"):
        page.write_text(current, encoding="utf-8")
    else:
        assert wrong == [], "pytest tests/test_docs.py --update-golden, and look at the diff"


@pytest.mark.parametrize(
    ("shown", "printed", "right"),
    [
        (("You pay $407 a month.",), "You pay $1,412.50 a month.\n", True),
        (("read 2026-10-08  stale",), "read 2026-11-01  44 days\n", True),
        (("a b", "..."), "a b\nc\nd\n", True),
        (("a b",), "a b\nc\n", False),
        (("paid back in: never",), "does not pay back\n", False),
        (("29-66 % less",), "12-31 % more\n", False),
    ],
)
def test_a_page_that_shows_something_else_is_noticed(
    shown: tuple[str, ...], printed: str, *, right: bool
) -> None:
    """Amounts, dates, ages and left-out lines are no difference; words are."""
    assert shows(shown, printed) is right


@pytest.mark.proof  # 40 commands, 20 s: every night
def test_what_guides_ask_for_is_said_by_its_command(tmp_path: Path) -> None:
    """Each row of the page of what is covered: its command ends well and prints its line."""
    text = (ROOT / "docs" / "explanation" / "coverage.md").read_text(encoding="utf-8")
    for name, content in saved_files(text):
        (tmp_path / name).write_text(content, encoding="utf-8")
    for command in commands(text):
        assert run(command.line, tmp_path).returncode == 0
    rows = re.findall(
        r"^\| (R\d+) \| .* \| `(gpucost .*?)` \| (.*?) \| (.*) \|$", text, re.MULTILINE
    )
    missing, printed = [], dict[str, str]()
    for number, line, shown, state in rows:
        if state.startswith("not run"):
            continue
        if line not in printed:
            ran = run(line, tmp_path)
            printed[line] = " ".join(masked([ran.stdout if ran.returncode == 0 else ""]))
        parts = (" ".join(masked([part])) for part in shown.replace("`", "").split("; "))
        missing += [f"{number} {line}: {part}" for part in parts if part not in printed[line]]
    assert len(rows) > 30
    assert missing == []


_PATH = re.compile(
    r"`((?:gpucost|planner|pricing|providers|templates|tests|research|docs)/[\w./<>-]+)`"
)
_NAMED = re.compile(r"in `([A-Z_]+)`, `([\w/]+\.py)`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_guides_name_files_that_are_there(page: str) -> None:
    """A path that a guide names exists, and so does the table that it names in it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = {path for path in _PATH.findall(text) if "<" not in path}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    tables = _NAMED.findall(text)
    assert tables
    assert [
        (name, path)
        for name, path in tables
        if not re.search(rf"^{name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ] == []
