"""The shape of the code: small modules, short functions, packages that say what they are."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gpucost", "planner", "pricing", "providers", "templates")
FOLDERS = (*PACKAGES, "tests", "examples", "benchmarks")
MOST_LINES = 400
MOST_FUNCTION_LINES = 50
VAGUE = re.compile(r"(util|helper|manager|handler|common|misc|stuff|data\d|info)s?")
MONEY = re.compile(r"usd|cost|price|dollar|budget|saves", re.IGNORECASE)

# Where a float of money is meant: ratios and orders, never an amount that is shown or added.
FLOATS_OF_MONEY = frozenset(
    (
        "planner/options/data_transfer.py",  # days until paid back are a ratio
        "planner/plan_document/from_option.py",  # saves.fraction is a ratio
        "planner/plan_document/from_plan.py",  # the same
        "planner/plan/roi.py",  # payback in days is a ratio
        "templates/wording.py",  # percentages
    )
)

# What is put on the path of the user's program: it runs there, and writes down when things happen.
PROBE = "planner/telemetry/probe/path"
MEASURE = "planner/telemetry/measure/"


def _sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _table_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of the longest tuple, list or dict of values in a function."""
    tables = [
        (node.end_lineno or node.lineno) - node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Tuple | ast.List | ast.Dict)
    ]
    return max(tables, default=0)


@pytest.mark.parametrize("path", _sources(*FOLDERS), ids=_id)
def test_a_module_fits_in_a_head(path: Path) -> None:
    """No module is longer than 400 lines."""
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_LINES, f"{_id(path)} has {lines} lines; split it"


@pytest.mark.parametrize("path", _sources(*FOLDERS), ids=_id)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    """No function is longer than 50 lines, apart from a table of data inside it."""
    long = {
        function.name: (function.end_lineno or 0) - function.lineno + 1 - _table_lines(function)
        for function in _functions(path)
    }
    assert {name: n for name, n in long.items() if n > MOST_FUNCTION_LINES} == {}


@pytest.mark.parametrize("path", _sources(*FOLDERS), ids=_id)
def test_a_module_is_named_after_what_it_does(path: Path) -> None:
    """No module is called utils, helpers, manager or the like."""
    assert not VAGUE.fullmatch(path.stem)


@pytest.mark.parametrize("path", _sources(*PACKAGES), ids=_id)
def test_a_module_says_what_it_is(path: Path) -> None:
    """Every module and package of ours begins with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_code_is_a_package_with_types(package: str) -> None:
    """A folder that holds modules has an __init__.py; every package ships py.typed."""
    assert (ROOT / package / "py.typed").is_file()
    for folder in {path.parent for path in _sources(package)} - {ROOT / PROBE}:
        assert (folder / "__init__.py").is_file(), folder


@pytest.mark.parametrize("path", _sources("tests"), ids=_id)
def test_a_test_states_its_guarantee(path: Path) -> None:
    """Every test has a docstring."""
    silent = [
        function.name
        for function in _functions(path)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert silent == []


@pytest.mark.parametrize("path", _sources(*PACKAGES), ids=_id)
def test_money_does_not_become_a_float(path: Path) -> None:
    """`float(...)` is not called on what is named after money, but for the ratios listed above."""
    if _id(path) in FLOATS_OF_MONEY:
        pytest.skip("ratios of money")
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "float"
        and MONEY.search(ast.unparse(node))
    ]
    assert calls == []


@pytest.mark.parametrize("path", _sources("planner", "pricing"), ids=_id)
def test_the_core_asks_neither_clock_nor_environment(path: Path) -> None:
    """`planner` and `pricing` read no clock, no environment, no network, and print nothing."""
    if _id(path).startswith((PROBE, MEASURE)):
        pytest.skip("runs inside the user's program, or beside it to measure it")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    forbidden = {"os.environ", "os.getenv", "date.today", "datetime.now", "time.time", "print"}
    used = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in forbidden
    }
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert used == set()
    assert imported.isdisjoint(("socket", "urllib", "http", "requests", "click", "rich"))
