"""The shape of the code: short functions, packages that say what they are.

How much code there is at most, and what may lie between its files: tests/test_budget.py.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.conftest import PROOFS, SLOW, THINNED
from tests.source_tree import PACKAGES, ROOT, Module, modules

FOLDERS = (*PACKAGES, "tests", "examples", "benchmarks")
MOST_FUNCTION_LINES = 50
VAGUE = re.compile(r"(util|helper|manager|handler|common|misc|stuff|data\d|info)s?")
MONEY = re.compile(r"usd|cost|price|dollar|budget|saves", re.IGNORECASE)

# "There is no", "is no longer" and "is no dearer than" are plain English; "is no price" is not.
COMPARED = "more|longer|worse|better|dearer|slower|faster|surer|narrower"
IS_NO = re.compile(rf"(?<![Tt]here )\b(is|are) no (?!({COMPARED})\b)\w.{{0,30}}")

# A function's docstring begins with one of these, in the imperative. Another verb is added here.
VERBS = """
    add answer append apply arm ask attach become begin bill bring call check close compare
    count create declare destroy divide do draw drop end enter explain find fit forget fork
    format free give group hand have hide hold keep launch lay learn leave let list load log
    look make measure merge move name note open pass patch place plan predict price print prove
    put quote raise rank read reap refresh refuse remember remove rename return rewrite run
    sample say score send set share show sort start stop store take tell try turn wait watch
    weigh widen wrap write yield
"""
NOUN = re.compile(r"\w+ of\b|\w+ and \w+ of\b")  # "Share of the time", "Name and memory of a GPU"

# What the core asks nobody for, and the libraries through which it could.
OUTSIDE = frozenset(("os.environ", "os.getenv", "date.today", "datetime.now", "time.time", "print"))
OUTER_LIBRARIES = frozenset(("socket", "urllib", "http", "requests", "click", "rich"))

# Where a float of money is meant: ratios and orders, never an amount that is shown or added.
FLOATS_OF_MONEY = frozenset(
    (
        "planner/choice/worth.py",  # days until paid back are a ratio
        "planner/models/costs.py",  # a saving's fraction is a ratio
        "planner/plan/draft.py",  # payback in days is a ratio
        "templates/report_text.py",  # percentages
        "templates/page/whole_page.py",  # the same
        "templates/reports/fleet_screen.py",  # the same
        "templates/reports/job_screen.py",  # the same
    )
)

# What is put on the path of the user's program: it runs there, and writes down when things happen.
PROBE = "telemetry/probe/path"
MEASURE = "telemetry/measure/"


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return a function's length without the longest tuple, list or dict of values in it."""
    tables = [
        (node.end_lineno or node.lineno) - node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Tuple | ast.List | ast.Dict)
    ]
    return (function.end_lineno or 0) - function.lineno + 1 - max(tables, default=0)


def test_a_function_fits_on_a_screen() -> None:
    """No function is longer than 50 lines, apart from a table of data inside it."""
    lines = {
        f"{module.name}: {function.name}": _lines(function)
        for module in modules(*FOLDERS)
        for function in module.functions()
    }
    assert {name: n for name, n in lines.items() if n > MOST_FUNCTION_LINES} == {}


def test_a_module_is_named_after_what_it_does() -> None:
    """No module is called utils, helpers, manager or the like."""
    assert [m.name for m in modules(*FOLDERS) if VAGUE.fullmatch(m.path.stem)] == []


def test_a_module_says_what_it_is() -> None:
    """Every module and package of ours begins with a docstring."""
    assert [m.name for m in modules(*PACKAGES) if not ast.get_docstring(m.tree)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_code_is_a_package_with_types(package: str) -> None:
    """A folder that holds modules has an __init__.py; every package ships py.typed."""
    assert (ROOT / package / "py.typed").is_file()
    for folder in {module.path.parent for module in modules(package)} - {ROOT / PROBE}:
        assert (folder / "__init__.py").is_file(), folder


def test_what_is_called_slow_is_there() -> None:
    """Every file and folder that `make quick` leaves out by its name exists."""
    places = {module.name.removeprefix("tests/") for module in modules("tests")}
    assert [name for name in SLOW if not any(place.startswith(name) for place in places)] == []


def test_what_is_called_a_proof_is_there(request: pytest.FixtureRequest) -> None:
    """Every test that `make test` leaves out exists, and so does each case of it that stays."""
    names = {
        f"{module.name.removeprefix('tests/')}::{function.name}"
        for module in modules("tests")
        for function in module.functions()
    }
    assert (PROOFS.keys() | THINNED.keys()) - names == set()
    cases: dict[str, set[str]] = {}
    for item in request.session.items:
        name, _, case = item.nodeid.removeprefix("tests/").partition("[")
        cases.setdefault(name, set()).add(case.removesuffix("]"))
    gone = {name: set(PROOFS[name]) - cases[name] for name in PROOFS.keys() & cases.keys()}
    assert {name: those for name, those in gone.items() if those} == {}


def test_a_test_states_its_guarantee() -> None:
    """Every test has a docstring."""
    silent = [
        f"{module.name}: {function.name}"
        for module in modules("tests")
        for function in module.functions()
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert silent == []


def test_money_does_not_become_a_float() -> None:
    """`float(...)` is not called on what is named after money, but for the ratios listed above."""
    calls = [
        f"{module.name}: {ast.unparse(call)}"
        for module in modules(*PACKAGES)
        if module.name not in FLOATS_OF_MONEY
        for call in module.nodes(ast.Call)
        if isinstance(call.func, ast.Name)
        and call.func.id == "float"
        and MONEY.search(ast.unparse(call))
    ]
    assert calls == []


def test_the_exceptions_are_of_this_tree() -> None:
    """A module that may turn money into a float exists: the list holds no ghosts."""
    assert {module.name for module in modules(*PACKAGES)} >= FLOATS_OF_MONEY


def _is_called(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is called as one: a property is read like an attribute."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return not any(re.search(r"property$|\.setter$", name) for name in decorators)


@pytest.mark.parametrize(
    ("sentence", "imperative"),
    [
        ("Return the bill.", True),
        ("Fit, and print the table.", True),
        ("The bill of a month.", False),
        ("Whether it is gone.", False),
        ("Share of the time that waits.", False),
        ("Returns the bill.", False),
    ],
)
def test_the_rule_knows_the_imperative(sentence: str, *, imperative: bool) -> None:
    """A verb of the list passes; a noun, a question and the third person do not."""
    assert _is_imperative(sentence) is imperative


def _is_imperative(sentence: str) -> bool:
    word = re.split(r"\W", sentence, maxsplit=1)[0]
    return word[:1].isupper() and word.lower() in VERBS.split() and not NOUN.match(sentence)


def test_a_docstring_says_what_to_do() -> None:
    """A function's docstring begins with a verb in the imperative; a property's may be a noun."""
    others = [
        f"{module.name}: {function.name}: {said.splitlines()[0]}"
        for module in modules(*PACKAGES, "research")
        for function in module.functions()
        if (said := ast.get_docstring(function)) is not None
        and _is_called(function)
        and not _is_imperative(said)
    ]
    assert others == [], "begin with a verb, such as Return"


_OUTSIDE_NAMES = frozenset(name.rpartition(".")[2] for name in OUTSIDE)


def _last_name(node: ast.AST) -> str:
    """Return `c` of `a.b.c`: to write out every name of the tree takes seconds."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _uses(module: Module) -> Iterator[str]:
    yield from (
        used
        for node in module.nodes(ast.Attribute, ast.Name)
        if _last_name(node) in _OUTSIDE_NAMES and (used := ast.unparse(node)) in OUTSIDE
    )
    imported = [
        *(alias.name for node in module.nodes(ast.Import) for alias in node.names),
        *(node.module or "" for node in module.nodes(ast.ImportFrom)),
    ]
    yield from (name for name in imported if name.split(".")[0] in OUTER_LIBRARIES)


def test_the_core_asks_neither_clock_nor_environment() -> None:
    """`planner` and `pricing` read no clock, no environment, no network, and print nothing."""
    used = [
        f"{module.name}: {use}"
        for module in modules("planner", "pricing", "telemetry")
        if not module.name.startswith((PROBE, MEASURE))  # those run in or beside the user's program
        for use in _uses(module)
    ]
    assert used == []


def test_a_list_is_written_out() -> None:
    """No literal tuple or list is unpacked into another: `*("a", "b")` hides a list's shape."""
    hidden = [
        f"{module.name}:{starred.lineno}"
        for module in modules(*FOLDERS, "research")
        for starred in module.nodes(ast.Starred)
        if isinstance(starred.value, ast.Tuple | ast.List)
    ]
    assert hidden == []


def test_sentences_are_plain_english() -> None:
    """What is denied is "not a", never "is no"."""
    odd = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for folder in (*PACKAGES, "docs", "research")
        for kind in ("*.py", "*.toml", "*.md", "*.j2", "*.sh")
        for path in sorted((ROOT / folder).rglob(kind))
        for found in IS_NO.finditer(path.read_text(encoding="utf-8"))
    ]
    assert odd == []


def _fields(class_: ast.ClassDef) -> set[str]:
    names = (line.target for line in class_.body if isinstance(line, ast.AnnAssign))
    return {name.id for name in names if isinstance(name, ast.Name)}


def _field_sets(*, of_structs: bool) -> list[set[str]]:
    """The fields of every dataclass, or of every msgspec Struct, of the product and the tests."""
    found = []
    for module in modules(*FOLDERS):
        for node in module.nodes(ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            kinds = [ast.unparse(decorator) for decorator in node.decorator_list]
            is_struct = any(base.endswith("Struct") for base in bases)
            if is_struct if of_structs else any("dataclass" in kind for kind in kinds):
                found.append(_fields(node))
    return found


def test_dataclasses_replace_is_not_for_structs() -> None:
    """`dataclasses.replace` with the fields of a Struct fails; `msgspec.structs.replace` is meant.

    mypy finds it in the product, but it does not read tests.
    """
    dataclasses, structs = _field_sets(of_structs=False), _field_sets(of_structs=True)
    wrong = []
    for module in modules(*FOLDERS):
        named = {
            name.asname or name.name
            for node in module.nodes(ast.ImportFrom)
            if node.module == "dataclasses"
            for name in node.names
            if name.name == "replace"
        }
        for node in module.nodes(ast.Call):
            if _last_name(node.func) in {*named, "replace"} and (
                ast.unparse(node.func) in {*named, "dataclasses.replace"}
            ):
                wanted = {keyword.arg for keyword in node.keywords if keyword.arg}
                if not any(wanted <= one for one in dataclasses) and any(
                    wanted <= one for one in structs
                ):
                    wrong.append(f"{module.path}:{node.lineno} {sorted(wanted)}")
    assert wrong == []
